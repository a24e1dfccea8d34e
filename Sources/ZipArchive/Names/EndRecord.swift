/// The end record of an archive, which has the size and the place of the central directory (APPNOTE.TXT 4.3.16).
package enum EndRecord {
  /// Sizes in bytes: of the record without its comment, of the 64-bit record and of the locator that stands between both
  /// (4.3.14, 4.3.15).
  private static let size = 22
  private static let size64 = 56
  private static let locatorSize = 20
  private static let commentMax = 0xFFFF

  /// Returns the position in a file at which its archive starts, or 0 if the archive's offsets count from the start of
  /// the file.
  ///
  /// The central directory ends where the end record begins. So its size gives its place in the file, and its offset is
  /// smaller by the number of bytes before the archive. Info-ZIP, minizip and Python's zipfile read archives in this way.
  ///
  /// - Parameters:
  ///   - fileSize: The size of the file in bytes.
  ///   - read: Returns bytes of the file, from a position. Fewer than the count are an error.
  package static func archiveStart(fileSize: UInt64, read: (UInt64, Int) -> [UInt8]) -> UInt64 {
    let count = Int(clamping: min(fileSize, UInt64(size + commentMax + locatorSize + size64)))
    let tailStart = fileSize - UInt64(count)
    let tail = read(tailStart, count)
    guard tail.count == count, count >= size,
      let record = (0...count - size).last(where: { hasSignature(tail, at: $0, 5, 6) })
    else { return 0 }
    var (end, directorySize, offset) = (record, number(tail, at: record + 12, 4), number(tail, at: record + 16, 4))
    let (locator, record64) = (record - locatorSize, record - locatorSize - size64)
    if record64 >= 0, hasSignature(tail, at: locator, 6, 7), hasSignature(tail, at: record64, 6, 6) {
      (end, directorySize, offset) = (record64, number(tail, at: record64 + 40, 8), number(tail, at: record64 + 48, 8))
    }
    let directoryEnd = tailStart + UInt64(end)
    guard directorySize <= directoryEnd, offset <= directoryEnd - directorySize else { return 0 }
    let directory = directoryEnd - directorySize
    // Without a directory at that place, the numbers have another meaning.
    guard directorySize == 0 || hasSignature(read(directory, 4), at: 0, 1, 2) else { return 0 }
    return directory - offset
  }

  private static func hasSignature(_ bytes: [UInt8], at index: Int, _ third: UInt8, _ fourth: UInt8) -> Bool {
    index + 4 <= bytes.count && bytes[index] == UInt8(ascii: "P") && bytes[index + 1] == UInt8(ascii: "K")
      && bytes[index + 2] == third && bytes[index + 3] == fourth
  }

  private static func number(_ bytes: [UInt8], at index: Int, _ count: Int) -> UInt64 {
    bytes[index..<index + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }
}
