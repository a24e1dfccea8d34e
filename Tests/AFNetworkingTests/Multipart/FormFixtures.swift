import AFNetworking
import Foundation
import Larkspur
import Synchronization
import Testing

/// A temporary directory for one test. Deinitialization removes it.
final class FormDirectory: Sendable {
  let url = FileManager.default.temporaryDirectory.appending(path: "larkspur-form-\(UUID().uuidString)")

  init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

  deinit { try? FileManager.default.removeItem(at: url) }

  func file(_ name: String, _ bytes: [UInt8]) throws -> URL {
    let file = url.appending(path: name)
    try Data(bytes).write(to: file)
    return file
  }
}

/// A form parsed as a server parses it, by RFC 2046 and independently of the sender's code.
struct ReadForm: Equatable {
  struct Part: Equatable {
    var fields: [String]
    var body: [UInt8]

    init(_ fields: [String], _ body: [UInt8]) {
      self.fields = fields
      self.body = body
    }

    init(_ fields: [String], _ body: String) { self.init(fields, Array(body.utf8)) }
  }

  struct Unreadable: Error {}

  var parts: [Part] = []

  init(_ bytes: [UInt8], contentType: String?) throws {
    guard let boundary = contentType?.split(separator: "boundary=").last, contentType?.contains("boundary=") == true
    else { throw Unreadable() }
    let delimiter = Array("\r\n--\(boundary)".utf8)
    // Adds the line break that precedes every delimiter except the first.
    var rest = (Array("\r\n".utf8) + bytes)[...]
    guard rest.starts(with: delimiter) else { throw Unreadable() }
    rest = rest.dropFirst(delimiter.count)
    while true {
      if rest.starts(with: Array("--\r\n".utf8)), rest.count == 4 { return }
      guard rest.starts(with: [13, 10]) else { throw Unreadable() }
      rest = rest.dropFirst(2)
      guard let end = rest.firstRange(of: delimiter) else { throw Unreadable() }
      let part = Array(rest[..<end.lowerBound])
      rest = rest[end.upperBound...]
      if part.starts(with: [13, 10]) {
        parts.append(Part([], Array(part.dropFirst(2))))
        continue
      }
      guard let head = part.firstRange(of: Array("\r\n\r\n".utf8)) else { throw Unreadable() }
      let lines = String(decoding: part[..<head.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
      parts.append(Part(lines, Array(part[head.upperBound...])))
    }
  }
}

/// Reads a stream to its end, in reads of at most `size` bytes.
func readAll(_ stream: InputStream, by size: Int = 64 * 1024) throws -> [UInt8] {
  stream.open()
  defer { stream.close() }
  var result: [UInt8] = []
  var buffer = [UInt8](repeating: 0, count: size)
  while true {
    let count = stream.read(&buffer, maxLength: size)
    if count < 0 { throw StreamBytes.error(of: stream) ?? ReadForm.Unreadable() }
    if count == 0 { return result }
    result += buffer[..<count]
  }
}

extension AFHTTPRequestSerializer {
  /// Makes a form request.
  func form(to url: String = "http://example.com", _ block: @escaping (any AFMultipartFormData) -> Void) throws
    -> NSMutableURLRequest
  {
    try multipartFormRequest(withMethod: "POST", urlString: url, parameters: nil, constructingBodyWith: block)
  }
}

extension NSURLRequest {
  /// Reads the request's body and parses it as a server does.
  func readForm(by size: Int = 64 * 1024) throws -> ReadForm {
    let stream = try #require(httpBodyStream)
    let bytes = try readAll(stream, by: size)
    #expect(value(forHTTPHeaderField: "Content-Length") == "\(bytes.count)")
    return try ReadForm(bytes, contentType: value(forHTTPHeaderField: "Content-Type"))
  }
}

/// A program's own stream that alternates between a few bytes and none, and reports this in `hasBytesAvailable`.
final class SlowStream: InputStream, NSCopying {
  private let bytes: [UInt8]
  private var offset = 0
  private var hesitates = true
  private var status = Stream.Status.notOpen

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    super.init(data: Data())
  }

  func copy(with zone: NSZone? = nil) -> Any { SlowStream(bytes) }

  override func open() { status = .open }
  override func close() { status = .closed }
  override var streamStatus: Stream.Status { status }
  override var streamError: (any Error)? { nil }
  override var hasBytesAvailable: Bool { status == .open && hesitates }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    hesitates.toggle()
    if !hesitates { return 0 }
    let count = min(len, 7, bytes.count - offset)
    for index in 0..<count { buffer[index] = bytes[offset + index] }
    offset += count
    if offset == bytes.count { status = .atEnd }
    return count
  }
}
