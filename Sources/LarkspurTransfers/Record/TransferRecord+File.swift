/// A record as the bytes of a file. A record grows with each redirect, response and error, most of which a server can make
/// large.
extension TransferRecord {
  /// The version of the format. Every change of the parts or of their meaning gets a new one.
  public static let formatVersion: UInt32 = 6
  /// Maximum size of a record's file in bytes. A larger file, which no journal writes, would fill the memory.
  public static let bytesMax = 1 << 20
  /// Maximum size of a new record's file in bytes. What the task gets later has room up to `bytesMax`.
  public static let newBytesMax = bytesMax - (256 << 10)
  /// Maximum size of all URLs of redirects together, in bytes. Those beyond it are not kept.
  public static let redirectsBytesMax = 64 << 10
  /// Maximum size of an error's text in bytes. Longer texts are cut.
  public static let messageBytesMax = 4096
  /// Maximum size of a task's description in bytes. Longer descriptions are cut.
  public static let descriptionBytesMax = 64 << 10

  /// Returns the bytes of the record's file.
  ///
  /// - Throws: `invalid`, `tooLarge`.
  public func encoded() throws(TransferValueError) -> [UInt8] {
    let bytes = TransferEnvelope.wrapped(try bytes(), version: Self.formatVersion)
    guard bytes.count <= Self.bytesMax else { throw .tooLarge(bytes.count, max: Self.bytesMax) }
    return bytes
  }

  /// Reads a record's file. The bytes are untrusted.
  ///
  /// - Throws: `otherVersion`, `damaged`, `tooLarge`.
  public init(file: [UInt8]) throws(TransferValueError) {
    guard file.count <= Self.bytesMax else { throw .tooLarge(file.count, max: Self.bytesMax) }
    try self.init(bytes: TransferEnvelope.content(of: file, version: Self.formatVersion))
  }

  /// Whether the record is valid, and its file has at most this size in bytes.
  public func fits(_ count: Int) -> Bool { ((try? encoded())?.count).map { $0 <= count } ?? false }

  /// Leaves parts out until the record has at most this size: first those that only show how the task came to its state.
  ///
  /// - Returns: Whether the record has that size now, and can be written.
  @discardableResult
  public mutating func leaveOutParts(until count: Int = bytesMax) -> Bool {
    let parts: [(inout TransferRecord) -> Void] = [
      { $0.currentRequest?.body = nil }, { $0.response?.fields = [] }, { $0.redirects = [] },
      { $0.currentRequest = nil },
      { $0.response = nil }, { $0.cookies = nil }, { $0.uploadPoint = nil }, { $0.resumePoint = nil },
    ]
    for leaveOut in parts {
      if fits(count) { return true }
      leaveOut(&self)
    }
    return fits(count)
  }

  /// Returns the beginning of a text, of at most `count` bytes.
  public static func cut(_ text: String, toBytes count: Int) -> String {
    guard text.utf8.count > count else { return text }
    var end = text.utf8.index(text.startIndex, offsetBy: count)
    while end.samePosition(in: text.unicodeScalars) == nil { end = text.utf8.index(before: end) }
    return String(text[..<end])
  }
}
