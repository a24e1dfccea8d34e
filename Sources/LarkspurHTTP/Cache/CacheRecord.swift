import LarkspurBytes

/// A stored response as a file.
///
///     4 bytes    the format's name
///     4          the size of the head
///     8          a checksum of everything up to the body but itself
///     8          the size of the body
///     8          a checksum of the body
///     ...        the head: numbers, and texts behind their sizes
///     ...        the body
///
/// Numbers are little-endian. A file that is cut off, or that somebody has changed in passing, is no record. It is
/// not proof against those who mean it: whoever may write to a user's files needs no such tricks.
public struct CacheRecord: Sendable {
  /// What it holds of a response that did not come over HTTP.
  public struct Plain: Sendable {
    public var mimeType: String?
    public var expectedCount: Int64
    public var textEncodingName: String?

    public init(mimeType: String?, expectedCount: Int64, textEncodingName: String?) {
      self.mimeType = mimeType
      self.expectedCount = expectedCount
      self.textEncodingName = textEncodingName
    }
  }

  public enum Kind: Sendable {
    case http(version: String, StoredResponse)
    case plain(Plain)
  }

  public var key: String
  public var uri: String
  /// Seconds since 1970.
  public var storedTime: Double
  public var kind: Kind
  /// What the program has put beside it.
  public var userInfo: [UInt8]

  public init(key: String, uri: String, storedTime: Double, kind: Kind, userInfo: [UInt8] = []) {
    self.key = key
    self.uri = uri
    self.storedTime = storedTime
    self.kind = kind
    self.userInfo = userInfo
  }

  public static let prefixCount = 32
  /// A head larger than this is not believed: its size would be how much memory a broken file makes us ask for.
  public static let headBytesMax = 1 << 20

  private static let name: [UInt8] = Array("LKC1".utf8)

  /// Everything before the body. Nil: the head is too large.
  public func head(body: Span<UInt8>) -> [UInt8]? {
    var writer = RecordWriter()
    write(to: &writer)
    let head = writer.bytes
    guard head.count <= Self.headBytesMax else { return nil }
    var sizes = RecordWriter()
    sizes.number(UInt64(body.count))
    sizes.number(Checksum.of(body))
    let covered = sizes.bytes + head
    var prefix = RecordWriter()
    prefix.bytes = Self.name
    prefix.number(UInt32(head.count))
    prefix.number(Checksum.of(covered.span))
    return prefix.bytes + covered
  }

  /// What a file that starts so says of its head: how many bytes the prefix and the head have together.
  public static func headEnd(prefix: [UInt8]) -> Int? {
    guard prefix.count >= prefixCount, prefix.starts(with: name) else { return nil }
    var reader = RecordReader(bytes: prefix[4..<8])
    guard let count = reader.number(UInt32.self), count <= headBytesMax else { return nil }
    return prefixCount + Int(count)
  }

  /// The record, and where its body is: in a file that is all there. Of a file without its body it reads the head, if
  /// `isBodyWanted` is false.
  public static func parse(_ file: [UInt8], isBodyWanted: Bool = true) -> (record: CacheRecord, body: Range<Int>)? {
    guard let headEnd = headEnd(prefix: file), headEnd <= file.count else { return nil }
    var sizes = RecordReader(bytes: file[8..<prefixCount])
    guard let checksum = sizes.number(UInt64.self), let bodyCount = sizes.number(UInt64.self),
      let bodyChecksum = sizes.number(UInt64.self),
      checksum == Checksum.of(file.span.extracting(16..<headEnd))
    else { return nil }
    var reader = RecordReader(bytes: file[prefixCount..<headEnd])
    guard let record = CacheRecord(from: &reader) else { return nil }
    guard isBodyWanted else { return (record, headEnd..<headEnd) }
    guard bodyCount == UInt64(file.count - headEnd),
      bodyChecksum == Checksum.of(file.span.extracting(headEnd..<file.count))
    else { return nil }
    return (record, headEnd..<file.count)
  }

  // MARK: - The head

  private func write(to writer: inout RecordWriter) {
    writer.text(key)
    writer.text(uri)
    writer.number(storedTime.bitPattern)
    writer.data(userInfo)
    switch kind {
    case .plain(let plain):
      writer.number(UInt8(0))
      writer.optional(plain.mimeType)
      writer.number(UInt64(bitPattern: plain.expectedCount))
      writer.optional(plain.textEncodingName)
    case .http(let version, let stored):
      writer.number(UInt8(1))
      writer.text(version)
      writer.number(UInt32(clamping: stored.status))
      writer.number(stored.requestTime.bitPattern)
      writer.number(stored.responseTime.bitPattern)
      writer.number(UInt64(clamping: stored.bodyCount))
      writer.number(UInt8(stored.isDecoded ? 1 : 0))
      writer.optional(stored.part?.text)
      writer.number(UInt32(clamping: stored.fields.count))
      for field in stored.fields {
        writer.text(field.name)
        writer.text(field.value)
      }
      writer.number(UInt32(clamping: stored.selection.fields.count))
      for field in stored.selection.fields {
        writer.text(field.name)
        writer.optional(field.value)
      }
    }
  }

  private init?(from reader: inout RecordReader) {
    guard let key = reader.text(), let uri = reader.text(), let time = reader.number(UInt64.self),
      let userInfo = reader.data(), let kind = reader.number(UInt8.self), Double(bitPattern: time).isFinite
    else { return nil }
    self.init(
      key: key, uri: uri, storedTime: Double(bitPattern: time),
      kind: .plain(Plain(mimeType: nil, expectedCount: -1, textEncodingName: nil)), userInfo: userInfo)
    switch kind {
    case 0:
      guard let mimeType = reader.optional(), let count = reader.number(UInt64.self), let name = reader.optional()
      else { return nil }
      guard ![mimeType.text, name.text].contains(where: { $0.map(Self.hasControls) ?? false }) else { return nil }
      self.kind = .plain(
        Plain(mimeType: mimeType.text, expectedCount: max(-1, Int64(bitPattern: count)), textEncodingName: name.text))
    case 1:
      guard let version = reader.text(), !Self.hasControls(version), let stored = Self.stored(from: &reader) else {
        return nil
      }
      self.kind = .http(version: version, stored)
    default: return nil
    }
    guard reader.isAtEnd else { return nil }
  }

  /// Whether there is a character in it that no field has (RFC 9110 5.5).
  private static func hasControls(_ text: String) -> Bool {
    text.utf8.contains { $0 < 0x20 && $0 != ASCII.tab || $0 == 0x7F }
  }

  private static func stored(from reader: inout RecordReader) -> StoredResponse? {
    guard let status = reader.number(UInt32.self), status <= 999, let requestTime = reader.number(UInt64.self),
      let responseTime = reader.number(UInt64.self), let bodyCount = reader.number(UInt64.self),
      let isDecoded = reader.number(UInt8.self), let part = reader.optional(),
      let fieldCount = reader.number(UInt32.self), Double(bitPattern: requestTime).isFinite,
      Double(bitPattern: responseTime).isFinite
    else { return nil }
    var fields: CacheFields = []
    for _ in 0..<fieldCount {
      guard let name = reader.text(), let value = reader.text(), !name.isEmpty, name.utf8.allSatisfy(Scan.isToken),
        !hasControls(value)
      else { return nil }
      fields.append((name: name, value: value))
    }
    guard let selectionCount = reader.number(UInt32.self) else { return nil }
    var selection: [(name: String, value: String?)] = []
    for _ in 0..<selectionCount {
      guard let name = reader.text(), let value = reader.optional() else { return nil }
      selection.append((name: name, value: value.text))
    }
    let range = part.text.flatMap(ContentRange.init)
    guard (range == nil) == (part.text == nil) else { return nil }
    return StoredResponse(
      status: Int(status), fields: fields, requestTime: Double(bitPattern: requestTime),
      responseTime: Double(bitPattern: responseTime), selection: CacheSelection(fields: selection), part: range,
      bodyCount: Int(clamping: bodyCount), isDecoded: isDecoded != 0)
  }
}

/// A sum that shows whether bytes are those that were written (FNV-1a, 64 bits).
enum Checksum {
  static func of(_ bytes: Span<UInt8>) -> UInt64 {
    var sum: UInt64 = 0xcbf2_9ce4_8422_2325
    for index in bytes.indices { sum = (sum ^ UInt64(bytes[index])) &* 0x0000_0100_0000_01b3 }
    return sum
  }
}

private struct RecordWriter {
  var bytes: [UInt8] = []

  mutating func number(_ number: some FixedWidthInteger & UnsignedInteger) {
    for index in 0..<(number.bitWidth / 8) { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index))) }
  }

  mutating func data(_ data: [UInt8]) {
    number(UInt32(clamping: data.count))
    bytes += data
  }

  mutating func text(_ text: String) {
    number(UInt32(clamping: text.utf8.count))
    bytes += text.utf8
  }

  mutating func optional(_ text: String?) {
    number(UInt8(text == nil ? 0 : 1))
    if let text { self.text(text) }
  }
}

private struct RecordReader {
  var bytes: ArraySlice<UInt8>

  var isAtEnd: Bool { bytes.isEmpty }

  mutating func number<Number: FixedWidthInteger & UnsignedInteger>(_ type: Number.Type) -> Number? {
    let count = Number.bitWidth / 8
    guard bytes.count >= count else { return nil }
    var number: Number = 0
    for byte in bytes.prefix(count).reversed() { number = (count > 1 ? number << 8 : 0) | Number(byte) }
    bytes = bytes.dropFirst(count)
    return number
  }

  mutating func data() -> [UInt8]? {
    guard let count = number(UInt32.self), Int(count) <= bytes.count else { return nil }
    let data = Array(bytes.prefix(Int(count)))
    bytes = bytes.dropFirst(Int(count))
    return data
  }

  mutating func text() -> String? { data().map { String(decoding: $0, as: UTF8.self) } }

  /// Nil: it cannot be read.
  mutating func optional() -> (text: String?, Void)? {
    guard let flag = number(UInt8.self), flag <= 1 else { return nil }
    guard flag == 1 else { return (nil, ()) }
    guard let text = text() else { return nil }
    return (text, ())
  }
}
