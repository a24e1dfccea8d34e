import Foundation
import Larkspur

/// A form under construction.
final class MultipartForm: AFMultipartFormData {
  private let boundary: String
  private var parts: [(head: [UInt8], content: BodySegment)] = []
  private var packetBytesMax = Int.max
  private var delay: TimeInterval = 0
  private let types: MIMETypes

  init(types: MIMETypes = .system) {
    // 128 random bits from the system: the boundary cannot be guessed, so no part can contain it on purpose.
    boundary = (0..<16).reduce(into: "Boundary+") { text, _ in
      let byte = String(UInt8.random(in: 0...255), radix: 16, uppercase: true)
      text += byte.count == 1 ? "0" + byte : byte
    }
    self.types = types
  }

  /// Appends parameters as fields, with the keys of a query.
  ///
  /// - Throws: `URLError.cannotDecodeContentData` for a text with characters that the encoding does not have.
  func append(_ parameters: [String: Any], encoding: String.Encoding) throws {
    for pair in QueryString.pairs(of: parameters) {
      let data: Data? =
        switch pair.value {
        case let data as Data: data
        case is NSNull: Data()
        default: TextCoding.bytes(of: QueryString.text(ofValue: pair.value), in: encoding)
        }
      guard let data else {
        throw RequestProblem.make(.cannotDecodeContentData, "The field \(pair.field) has no bytes in \(encoding).")
      }
      appendPart(withForm: data, name: pair.field)
    }
  }

  func appendPart(withFileURL fileURL: URL, name: String) throws {
    try appendPart(
      withFileURL: fileURL, name: name, fileName: fileURL.lastPathComponent,
      mimeType: types.type(ofExtension: fileURL.pathExtension))
  }

  func appendPart(withFileURL fileURL: URL, name: String, fileName: String, mimeType: String) throws {
    guard fileURL.isFileURL else { throw RequestProblem.make(.badURL, "Expected URL to be a file URL") }
    let attributes: [FileAttributeKey: Any]
    do {
      // Take the size of the file, not of a link to it.
      attributes = try FileManager.default.attributesOfItem(atPath: fileURL.resolvingSymlinksInPath().path)
    } catch {
      throw RequestProblem.make(.badURL, "File URL not reachable.", underlying: error)
    }
    guard attributes[.type] as? FileAttributeType == .typeRegular, let size = attributes[.size] as? NSNumber,
      FileManager.default.isReadableFile(atPath: fileURL.path)
    else { throw RequestProblem.make(.badURL, "The URL is not that of a file that can be read.") }
    append(FormHead.file(name: name, fileName: fileName, type: mimeType), .file(fileURL, count: size.int64Value))
  }

  func appendPart(with inputStream: InputStream?, name: String, fileName: String, length: Int64, mimeType: String) {
    let head = FormHead.file(name: name, fileName: fileName, type: mimeType)
    guard let inputStream else { return append(head, .bytes([])) }
    append(head, .stream(SharedStream(inputStream), count: max(length, 0)))
  }

  func appendPart(withFileData data: Data, name: String, fileName: String, mimeType: String) {
    append(FormHead.file(name: name, fileName: fileName, type: mimeType), .data(data))
  }

  func appendPart(withForm data: Data, name: String) { append(FormHead.field(name: name), .data(data)) }

  func appendPart(withHeaders headers: [String: String]?, body: Data) {
    append(FormHead.fields(headers ?? [:]), .data(body))
  }

  func throttleBandwidth(withPacketSize numberOfBytes: UInt, delay: TimeInterval) {
    packetBytesMax = max(Int(clamping: numberOfBytes), 1)
    self.delay = delay.isFinite ? max(delay, 0) : 0
  }

  private func append(_ head: [UInt8], _ content: BodySegment) { parts.append((head, content)) }

  /// Returns the body, or `nil` if the form has no parts.
  func body() -> SegmentedBody? {
    guard !parts.isEmpty else { return nil }
    var body = SegmentedBody(boundary: boundary, parts: parts)
    body.packetBytesMax = packetBytesMax
    body.delay = delay
    body.error = { RequestProblem.make(.requestBodyStreamExhausted, $0, underlying: $1) }
    return body
  }

  /// Makes the form the request's body. A form without parts changes nothing.
  func finish(_ request: NSMutableURLRequest) {
    guard let body = body() else { return }
    request.httpBodyStream = SegmentedBodyStream(body)
    request.setValue("multipart/form-data; boundary=\(boundary)", forHTTPHeaderField: "Content-Type")
    request.setValue("\(body.count)", forHTTPHeaderField: "Content-Length")
  }
}

/// Writes the header fields of parts, with the empty line that ends them.
enum FormHead {
  static func field(name: String) -> [UInt8] {
    lines([("Content-Disposition", "form-data; name=\"\(SegmentedBody.escaped(newlines(name)))\"")])
  }

  static func file(name: String, fileName: String, type: String) -> [UInt8] {
    lines([
      (
        "Content-Disposition",
        "form-data; name=\"\(SegmentedBody.escaped(newlines(name)))\"; filename=\"\(SegmentedBody.escaped(fileName))\""
      ), ("Content-Type", type),
    ])
  }

  /// Orders the fields like those of other parts: first the disposition, then the type, then the others by name.
  static func fields(_ fields: [String: String]) -> [UInt8] {
    func rank(_ name: String) -> Int {
      switch name.lowercased() {
      case "content-disposition": 0
      case "content-type": 1
      default: 2
      }
    }
    return lines(
      fields.filter { isToken($0.key) }.sorted { (rank($0.key), $0.key) < (rank($1.key), $1.key) }
        .map { ($0.key, $0.value) })
  }

  private static func lines(_ fields: [(name: String, value: String)]) -> [UInt8] {
    Array((fields.map { "\($0.name): \(oneLine($0.value))\r\n" }.joined() + "\r\n").utf8)
  }

  /// Replaces line ends and NUL, which could start another field or the body (RFC 9110 5.5), by spaces.
  private static func oneLine(_ value: String) -> String {
    String(String.UnicodeScalarView(value.unicodeScalars.map { ["\r", "\n", "\0"].contains($0) ? " " : $0 }))
  }

  /// Converts all line ends to CR LF, in names, but not in file names (WHATWG HTML, multipart form data).
  private static func newlines(_ name: String) -> String {
    var result = String.UnicodeScalarView()
    var previous: Unicode.Scalar?
    for scalar in name.unicodeScalars {
      if previous == "\r", scalar != "\n" { result.append("\n") }
      if scalar == "\n", previous != "\r" { result.append("\r") }
      result.append(scalar)
      previous = scalar
    }
    if previous == "\r" { result.append("\n") }
    return String(result)
  }

  /// Whether the name is a token (RFC 9110 5.6.2).
  private static func isToken(_ name: String) -> Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        switch byte | 0x20 {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): byte < 128
        default: UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }
}
