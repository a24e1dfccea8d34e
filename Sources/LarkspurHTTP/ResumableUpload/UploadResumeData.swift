import LarkspurBytes

/// The content of an upload's resume data: the point to continue from, the program's request, and the file with the
/// facts by which it is recognized.
///
/// The encoding is a magic number, the version of the format, and the values in a fixed order: numbers as eight bytes,
/// the highest first, and texts behind their length in bytes. Data of another version is refused, never guessed at. The
/// encoding proves nothing about its origin: the owner adds an authentication code, as for downloads, because foreign
/// data could make a program send any of its files.
package struct UploadResumeData: Hashable, Sendable {
  package var point: UploadPoint
  /// The absolute URL of the program's request.
  package var url: String
  package var method: String
  /// The fields that the program has set.
  package var fields: FieldList
  /// The absolute path of the file.
  package var path: String
  package var file: FileStatus
  /// Settings of the request that HTTP does not have, such as its timeout, in an encoding of the owner's.
  package var attributes: [UInt8]

  package init(
    point: UploadPoint, url: String, method: String, fields: FieldList, path: String,
    file: FileStatus, attributes: [UInt8] = []
  ) {
    self.point = point
    self.url = url
    self.method = method
    self.fields = fields
    self.path = path
    self.file = file
    self.attributes = attributes
  }

  /// Maximum size of the encoded form in bytes.
  package static let bytesMax = 1 << 20

  static let magic = Array("LarkspurUpload".utf8)
  static let formatVersion: UInt8 = 1

  /// The reason for which bytes are not accepted.
  package enum Refusal: Error, Hashable, Sendable {
    /// The data is larger than `bytesMax`.
    case tooLong
    /// The data does not begin with the magic number.
    case foreign
    /// The data has this version of the format, which is not the supported version.
    case version(UInt8)
    /// The data ends too early, or has bytes left over, or a text is not UTF-8.
    case damaged
    /// The values contradict each other or the protocol.
    case inconsistent
  }

  // MARK: - As bytes

  /// - Returns: The bytes, or `nil` if they would be refused.
  package func encoded() -> [UInt8]? {
    guard isConsistent else { return nil }
    var writer = Writer()
    writer.bytes = Self.magic + [Self.formatVersion]
    writer.number(point.version.rawValue)
    writer.text(point.resource)
    for value in [point.length, point.acknowledged, point.sent] { writer.number(value) }
    let limits = point.limits
    for limit in [limits.maxSize, limits.minSize, limits.maxAppendSize, limits.minAppendSize, limits.maxAge] {
      writer.optional(limit.map { UInt64(truncatingIfNeeded: $0) })
    }
    writer.optional(point.expiry?.bitPattern)
    writer.text(url)
    writer.text(method)
    writer.number(fields.count)
    for field in fields {
      writer.text(field.name)
      writer.text(field.value)
    }
    writer.text(path)
    writer.number(file.size)
    writer.number(UInt64(bitPattern: file.modificationSeconds))
    writer.number(UInt64(file.modificationNanoseconds))
    writer.number(file.inode)
    writer.list(attributes)
    return writer.bytes.count <= Self.bytesMax ? writer.bytes : nil
  }

  package static func decoded(_ bytes: [UInt8]) throws(Refusal) -> UploadResumeData {
    guard bytes.count <= bytesMax else { throw .tooLong }
    guard bytes.starts(with: magic), bytes.count > magic.count else { throw .foreign }
    let format = bytes[magic.count]
    guard format == formatVersion else { throw .version(format) }
    var reader = Reader(bytes: bytes, index: magic.count + 1)
    let versionNumber = try reader.integer()
    let resource = try reader.text()
    let (length, acknowledged, sent) = (try reader.integer(), try reader.integer(), try reader.integer())
    var limits = UploadLimits()
    limits.maxSize = try reader.optionalInteger()
    limits.minSize = try reader.optionalInteger()
    limits.maxAppendSize = try reader.optionalInteger()
    limits.minAppendSize = try reader.optionalInteger()
    limits.maxAge = try reader.optionalInteger()
    let expiry = try reader.optional().map { Double(bitPattern: $0) }
    let (url, method) = (try reader.text(), try reader.text())
    var fields: FieldList = []
    // A false count ends at the end of the bytes: each field takes 16 of them.
    let fieldCount = try reader.integer()
    for _ in 0..<fieldCount {
      let name = try reader.text()
      fields.append(Field(name, try reader.text()))
    }
    let path = try reader.text()
    let size = try reader.integer()
    let seconds = Int64(bitPattern: try reader.number())
    guard let nanoseconds = UInt32(exactly: try reader.number()) else { throw .damaged }
    let inode = try reader.number()
    let attributes = try reader.list()
    guard reader.index == bytes.count else { throw .damaged }
    guard let version = ResumableUploadVersion(rawValue: versionNumber) else { throw .inconsistent }
    let data = UploadResumeData(
      point: UploadPoint(
        version: version, resource: resource, length: length, acknowledged: acknowledged, sent: sent, limits: limits,
        expiry: expiry),
      url: url, method: method, fields: fields, path: path,
      file: FileStatus(
        size: size, modificationSeconds: seconds, modificationNanoseconds: nanoseconds, inode: inode),
      attributes: Array(attributes))
    guard data.isConsistent else { throw .inconsistent }
    return data
  }

  /// Whether a machine can continue with the values, and a request can be made of them.
  private var isConsistent: Bool {
    point.isConsistent && point.length == file.size && file.modificationNanoseconds < 1_000_000_000
      && ResumableUploadMachine.origin(of: point.resource) != nil && ResumableUploadMachine.origin(of: url) != nil
      && Self.isToken(method) && path.utf8.first == ASCII.slash && !path.utf8.contains(0)
      && fields.allSatisfy { Self.isToken($0.name) && !$0.value.utf8.contains(where: Self.isControl) }
      && ![point.resource, url].contains { $0.utf8.contains { Self.isControl($0) || $0 == ASCII.space } }
  }

  private static func isToken(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    return !bytes.isEmpty && Scan.endOfToken(in: bytes.span, from: 0, to: bytes.count) == bytes.count
  }

  private static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != ASCII.tab || byte == 0x7f }

  private struct Writer {
    var bytes: [UInt8] = []

    mutating func number(_ value: UInt64) {
      for shift in stride(from: 56, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
    }

    mutating func number(_ value: Int) { number(UInt64(truncatingIfNeeded: value)) }

    mutating func optional(_ value: UInt64?) {
      bytes.append(value == nil ? 0 : 1)
      if let value { number(value) }
    }

    mutating func list(_ content: [UInt8]) {
      number(content.count)
      bytes += content
    }

    mutating func text(_ text: String) { list(Array(text.utf8)) }
  }

  private struct Reader {
    let bytes: [UInt8]
    var index: Int

    mutating func take(_ count: Int) throws(Refusal) -> ArraySlice<UInt8> {
      guard count <= bytes.count - index else { throw .damaged }
      defer { index += count }
      return bytes[index..<index + count]
    }

    mutating func number() throws(Refusal) -> UInt64 { try take(8).reduce(0) { $0 << 8 | UInt64($1) } }

    /// Reads a number that is not negative as an `Int`.
    mutating func integer() throws(Refusal) -> Int {
      guard let value = Int(exactly: try number()) else { throw .damaged }
      return value
    }

    mutating func optional() throws(Refusal) -> UInt64? {
      switch try take(1).first {
      case 0: return nil
      case 1: return try number()
      default: throw .damaged
      }
    }

    mutating func optionalInteger() throws(Refusal) -> Int? {
      guard let value = try optional() else { return nil }
      guard let value = Int(exactly: value) else { throw .damaged }
      return value
    }

    mutating func list() throws(Refusal) -> ArraySlice<UInt8> { try take(try integer()) }

    mutating func text() throws(Refusal) -> String {
      guard let text = String(validating: try list(), as: UTF8.self) else { throw .damaged }
      return text
    }
  }
}
