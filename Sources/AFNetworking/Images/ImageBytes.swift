/// Numbers at positions of an image's bytes. Each function throws ``AFImageError/truncated`` if the bytes end before.
struct ImageBytes: ~Escapable {
  private let bytes: Span<UInt8>

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) { self.bytes = bytes }

  var count: Int { bytes.count }

  func byte(at offset: Int) -> UInt8? { offset >= 0 && offset < bytes.count ? bytes[offset] : nil }

  /// Returns the number of `count` bytes, at most 7, with the most significant byte first.
  func big(at offset: Int, _ count: Int) throws(AFImageError) -> Int {
    try check(offset, count)
    var value = 0
    for index in 0..<count { value = value << 8 | Int(bytes[offset + index]) }
    return value
  }

  /// Returns the number of `count` bytes, at most 7, with the least significant byte first.
  func little(at offset: Int, _ count: Int) throws(AFImageError) -> Int {
    try check(offset, count)
    var value = 0
    for index in 0..<count { value |= Int(bytes[offset + index]) << (8 * index) }
    return value
  }

  /// Returns the four bytes of a box's or chunk's type as a number, for comparison with ``code(_:)``.
  func type(at offset: Int) throws(AFImageError) -> Int { try big(at: offset, 4) }

  /// The number that ``type(at:)`` returns for these four letters.
  static func code(_ letters: StaticString) -> Int {
    var value = 0
    for byte in letters.description.utf8 { value = value << 8 | Int(byte) }
    return value
  }

  private func check(_ offset: Int, _ count: Int) throws(AFImageError) {
    guard offset >= 0, count <= bytes.count, offset <= bytes.count - count else { throw .truncated }
  }
}
