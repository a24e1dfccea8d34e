import LarkspurIO
import LarkspurTestServer
import Testing

/// A minimal HTTP client that blocks and does not validate responses.
final class RawClient {
  struct Response {
    var head = ""
    var body: [UInt8] = []
    /// The chunk lines of a chunked body, as they came over the wire.
    var rawBody = ""
    var trailers = ""

    var status: Int { Int(head.dropFirst("HTTP/1.1 ".count).prefix(3)) ?? 0 }
    var text: String { String(decoding: body, as: UTF8.self) }

    func field(_ name: String) -> String? {
      head.split(separator: "\r\n").dropFirst().first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
        .map { String($0.dropFirst(name.count + 2)) }
    }
  }

  struct EndOfStream: Error {}

  private let blocking: BlockingSocket
  var socket: SocketCarrier { SocketCarrier(socket: blocking) }
  /// The TLS client, or `nil` for a connection without TLS.
  let tls: ClientTLS?
  private var buffer: [UInt8] = []

  /// A reference to the server, so that it does not stop before its client is done.
  private let server: TestServer?

  /// Connects to the server, and with `tls` performs the handshake.
  init(_ server: TestServer, holdsServer: Bool = true, tls: ClientTLS? = nil) throws {
    let text = server.authority.hasPrefix("[") ? "::1" : "127.0.0.1"
    let address = try #require(SocketAddress(literal: text, port: UInt16(server.port)))
    self.server = holdsServer ? server : nil
    blocking = try BlockingSocket.connect(to: address)
    self.tls = tls
    try tls?.handshake(socket)
  }

  func send(_ text: String) throws { try send(Array(text.utf8)) }
  func send(_ bytes: [UInt8]) throws {
    if let tls { try tls.send(bytes, socket) } else { try socket.send(bytes) }
  }
  /// Ends the sending side of the TCP connection, without close_notify.
  func halfClose() { blocking.shutDownWriting() }
  func reset() { blocking.resetOnClose() }

  /// Sends a request without a body.
  func request(_ method: String, _ target: String, version: String = "HTTP/1.1", _ fields: String = "") throws {
    try send("\(method) \(target) \(version)\r\nHost: test\r\n\(fields)\r\n")
  }

  /// Sends a request without a body, and reads the response.
  func get(_ target: String, _ fields: String = "") throws -> Response {
    try request("GET", target, fields)
    return try response()
  }

  /// Reads a response.
  ///
  /// - Parameter hasBody: `false` for the response to a HEAD request.
  func response(hasBody: Bool = true) throws -> Response {
    var response = Response(head: try read(upTo: "\r\n\r\n"))
    if !hasBody || response.status < 200 || response.status == 204 || response.status == 304 { return response }
    if response.field("Transfer-Encoding") == "chunked" {
      while true {
        let line = try read(upTo: "\r\n")
        let count = try #require(Int(line.prefix { $0.isHexDigit }, radix: 16))
        response.rawBody += line
        if count == 0 { break }
        response.body += try read(count: count)
        _ = try read(count: 2)
      }
      while true {
        let line = try read(upTo: "\r\n")
        if line == "\r\n" { return response }
        response.trailers += line
      }
    } else if let length = response.field("Content-Length").flatMap({ Int($0) }) {
      response.body = try read(count: length)
    } else {
      response.body = try readToEnd()
    }
    return response
  }

  func read(count: Int) throws -> [UInt8] {
    while buffer.count < count { try fill() }
    defer { buffer.removeFirst(count) }
    return Array(buffer.prefix(count))
  }

  /// Reads until the server ends its side.
  func readToEnd() throws -> [UInt8] {
    defer { buffer = [] }
    while true {
      do { try fill() } catch is EndOfStream { return buffer }
    }
  }

  func textToEnd() throws -> String { String(decoding: try readToEnd(), as: UTF8.self) }

  private func read(upTo mark: String) throws -> String {
    let mark = Array(mark.utf8)
    var searched = 0
    while true {
      if let start = (searched..<max(searched, buffer.count - mark.count + 1)).first(where: {
        buffer[$0..<$0 + mark.count].elementsEqual(mark)
      }) {
        return String(decoding: try read(count: start + mark.count), as: UTF8.self)
      }
      searched = max(buffer.count - mark.count + 1, 0)
      try fill()
    }
  }

  private func fill() throws {
    let bytes = if let tls { try tls.receive(socket) } else { try socket.receive(atMost: 1 << 16) }
    if bytes.isEmpty { throw EndOfStream() }
    buffer += bytes
  }
}

extension RawClient: Carrier {
  func receive(atMost count: Int) throws -> [UInt8] {
    if buffer.isEmpty {
      do { try fill() } catch is EndOfStream { return [] }
    }
    return try read(count: min(count, buffer.count))
  }
}

struct SocketCarrier: Carrier {
  let socket: BlockingSocket
  func send(_ bytes: [UInt8]) throws { try socket.send(bytes) }
  func receive(atMost count: Int) throws -> [UInt8] { try socket.receive(atMost: count) }
}
