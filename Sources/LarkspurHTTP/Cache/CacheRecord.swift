import LarkspurBytes

/// A stored response as a file.
///
///     4 bytes    the format's name: of an entry or of a head alone
///     4          the size of the head
///     8          a checksum of all bytes from here to the end of the head
///     8          the generation
///     8          the size of the body
///     8          a checksum of the body
///     ...        the head: numbers, and texts behind their sizes
///     ...        the body
///
/// A head alone takes the place of the head of the entry that has an equal generation: a revalidation writes a head and
/// no body (decision 27). A head alone has no body: its body size is the size of the entry's body, and its body
/// checksum is zero.
///
/// Numbers are little-endian. A file that is truncated, or that was changed by accident, is not a record. The checksums
/// do not protect against intentional changes: an attacker with write access to a user's files needs no cache to do
/// harm.
public struct CacheRecord: Sendable {
  /// The metadata of a response that did not come over HTTP.
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
  /// The time at which the response was stored, in seconds since 1970.
  public var storedTime: Double

  /// The time at which the response was requested, or stored if it did not come over HTTP.
  public var requestedTime: Double {
    if case .http(_, let response) = kind { response.requestTime } else { storedTime }
  }

  public var kind: Kind
  /// Data that the program has attached to the response.
  public var userInfo: [UInt8]
  /// The number of the body: no two bodies that are stored under one name have an equal number.
  public var generation: UInt64

  public init(key: String, uri: String, storedTime: Double, kind: Kind, userInfo: [UInt8] = [], generation: UInt64 = 0)
  {
    self.key = key
    self.uri = uri
    self.storedTime = storedTime
    self.kind = kind
    self.userInfo = userInfo
    self.generation = generation
  }

  public static let prefixCount = 40
  /// Maximum size of a head in bytes. A larger size is refused: with it, a damaged file would determine how much memory
  /// is allocated.
  public static let headBytesMax = 1 << 20
  /// Maximum size of the file of a head alone, in bytes.
  public static let headFileBytesMax = prefixCount + headBytesMax

  private static let entryName: [UInt8] = Array("LKC2".utf8)
  private static let headName: [UInt8] = Array("LKH2".utf8)

  /// Returns the file's bytes before the body, or `nil` if the head is too large.
  public func head(body: Span<UInt8>) -> [UInt8]? {
    file(Self.entryName, bodyCount: body.count, bodyChecksum: Checksum.of(body))
  }

  /// Returns the file of a head alone, or `nil` if the head is too large.
  ///
  /// - Parameter bodyCount: The size in bytes of the body that the head belongs to.
  public func headAlone(bodyCount: Int) -> [UInt8]? { file(Self.headName, bodyCount: bodyCount, bodyChecksum: 0) }

  private func file(_ name: [UInt8], bodyCount: Int, bodyChecksum: UInt64) -> [UInt8]? {
    var writer = RecordWriter()
    writer.number(generation)
    writer.number(UInt64(clamping: bodyCount))
    writer.number(bodyChecksum)
    write(to: &writer)
    let headCount = writer.bytes.count - (Self.prefixCount - Self.coveredStart)
    guard headCount <= Self.headBytesMax else { return nil }
    var prefix = RecordWriter()
    prefix.bytes = name
    prefix.number(UInt32(headCount))
    prefix.number(Checksum.of(writer.bytes.span))
    return prefix.bytes + writer.bytes
  }

  /// Position at which the bytes of the first checksum begin.
  private static let coveredStart = 16

  /// Reads the prefix of an entry's file.
  ///
  /// - Returns: The size of the prefix and the head together in bytes, or `nil` if the prefix is not an entry's.
  public static func headEnd(prefix: [UInt8]) -> Int? { headEnd(prefix, entryName) }

  private static func headEnd(_ prefix: [UInt8], _ name: [UInt8]) -> Int? {
    guard prefix.count >= prefixCount, prefix.starts(with: name) else { return nil }
    var reader = RecordReader(bytes: prefix[4..<8])
    guard let count = reader.number(UInt32.self), count <= headBytesMax else { return nil }
    return prefixCount + Int(count)
  }

  /// Reads an entry's file.
  ///
  /// - Parameter checksBody: Whether to check the body. If `false`, the file may lack its body, and the returned
  ///   range is empty.
  /// - Returns: The record and the range of its body, or `nil` if the file is damaged or truncated.
  public static func parse(_ file: [UInt8], checksBody: Bool = true) -> (record: CacheRecord, body: Range<Int>)? {
    guard let headEnd = headEnd(prefix: file), let head = head(of: file, end: headEnd) else { return nil }
    guard checksBody else { return (head.record, headEnd..<headEnd) }
    guard head.bodyCount == UInt64(file.count - headEnd),
      head.bodyChecksum == Checksum.of(file.span.extracting(headEnd..<file.count))
    else { return nil }
    return (head.record, headEnd..<file.count)
  }

  /// Reads the file of a head alone.
  ///
  /// - Returns: The record and the size of the body that the head belongs to, or `nil` unless the file is whole.
  public static func parseHead(_ file: [UInt8]) -> (record: CacheRecord, bodyCount: UInt64)? {
    guard let headEnd = headEnd(file, headName), headEnd == file.count, let head = head(of: file, end: headEnd),
      head.bodyChecksum == 0
    else { return nil }
    return (head.record, head.bodyCount)
  }

  private static func head(
    of file: [UInt8], end: Int
  ) -> (record: CacheRecord, bodyCount: UInt64, bodyChecksum: UInt64)? {
    guard end <= file.count else { return nil }
    var prefix = RecordReader(bytes: file[8..<prefixCount])
    guard let checksum = prefix.number(UInt64.self), let generation = prefix.number(UInt64.self),
      let bodyCount = prefix.number(UInt64.self), let bodyChecksum = prefix.number(UInt64.self),
      checksum == Checksum.of(file.span.extracting(coveredStart..<end))
    else { return nil }
    var reader = RecordReader(bytes: file[prefixCount..<end])
    guard var record = CacheRecord(from: &reader) else { return nil }
    record.generation = generation
    return (record, bodyCount, bodyChecksum)
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

  /// Whether the text contains a character that a field cannot contain (RFC 9110 5.5).
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
    var fields: FieldList = []
    for _ in 0..<fieldCount {
      guard let name = reader.text(), let value = reader.text(), !name.isEmpty, name.utf8.allSatisfy(Scan.isToken),
        !hasControls(value)
      else { return nil }
      fields.append(Field(name, value))
    }
    guard let selectionCount = reader.number(UInt32.self) else { return nil }
    var selection: [(name: String, value: String?)] = []
    for _ in 0..<selectionCount {
      guard let name = reader.text(), let value = reader.optional() else { return nil }
      selection.append((name: name, value: value.text))
    }
    let range = part.text.flatMap(ContentRange.init)
    // A part that does not state its bytes would count as the whole.
    guard (range == nil) == (part.text == nil), status != 206 || range != nil else { return nil }
    return StoredResponse(
      status: Int(status), fields: fields, requestTime: Double(bitPattern: requestTime),
      responseTime: Double(bitPattern: responseTime), selection: CacheSelection(fields: selection), part: range,
      bodyCount: Int(clamping: bodyCount), isDecoded: isDecoded != 0)
  }
}
