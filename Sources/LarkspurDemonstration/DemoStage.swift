import Foundation
import LarkspurBytes
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport

/// The resources common to all parts of the demo: the servers, the client's loop, and the output.
struct DemoStage {
  let server: TestServer
  /// A server that speaks TLS, for `localhost`, with a certificate of `ca`.
  let secureServer: TestServer
  let ca: TestCA
  let loop: ClientLoop

  init(on loop: ClientLoop) throws {
    self.loop = loop
    server = try TestServer()
    ca = try TestCA()
    secureServer = try TestServer(tls: .init(certificate: try ca.issue()))
  }

  var now: Deadline { loop.kernel.now() }

  func connect() async throws -> Connection {
    try await Connection.open(
      to: [.loopback(port: UInt16(clamping: server.port))], on: loop, deadline: now.advanced(by: .seconds(10)))
  }

  /// Connects to the server that speaks TLS, and returns the connection with its handshake and the handshake's
  /// duration.
  func connectSecurely(by security: Security) async throws -> SecureConnection {
    var (began, ended) = (now, now)
    var handshake: Handshake?
    let connection = try await Connection.open(
      to: [.loopback(port: UInt16(clamping: secureServer.port))], as: Self.secureHost, security: security, on: loop,
      deadline: now.advanced(by: .seconds(10)),
      observer: { event, time in
        switch event {
        case .securing: began = time
        case .secured(let made): (handshake, ended) = (made, time)
        default: break
        }
      })
    guard let handshake else { throw DemoFailure("the handshake has left no trace") }
    return SecureConnection(connection: connection, handshake: handshake, time: ended.duration(since: began))
  }

  struct SecureConnection {
    let connection: Connection
    let handshake: Handshake
    let time: Duration
  }

  static let secureHost = "localhost"

  /// Returns `http://127.0.0.1:port/...`, for parts that use a session.
  func url(_ target: String) throws -> URL {
    guard let url = URL(string: server.url(target)) else { throw DemoFailure("\(target) makes no URL") }
    return url
  }

  /// Returns `https://localhost:port/...`.
  func secureURL(_ target: String) -> String { secureServer.url(target, host: Self.secureHost) }

  /// Returns the TLS settings that trust `ca` alone and, if pins are given, only verified chains with one of their
  /// keys.
  func security(pins: Set<Pin> = []) throws -> Security {
    var configuration = TLSConfiguration()
    configuration.roots = .only(Certificate.read(ca.rootCertificateDER) ?? [])
    if !pins.isEmpty { configuration.pins = PinPolicy(PinPolicy.Host(Self.secureHost, pins: pins).map { [$0] } ?? []) }
    return Security(try TLSContext(configuration))
  }

  func secureRequest(_ target: String) throws -> RequestHead {
    try request(target, host: "\(Self.secureHost):\(secureServer.port)")
  }

  func request(_ target: String, _ fields: FieldList = []) throws -> RequestHead {
    try request(target, host: server.authority, fields)
  }

  private func request(_ target: String, host: String, _ fields: FieldList = []) throws -> RequestHead {
    var writer = try RequestWriter(method: "GET", target: target, host: host)
    try writer.field("User-Agent", "larkspur/demonstration")
    for field in fields { try writer.field(field.name, field.value) }
    return writer.finish()
  }

  /// Sends a request with a deadline of 60 s, so that a part fails rather than hangs.
  func send(_ request: RequestHead, over connection: Connection) async throws -> Exchange {
    try await connection.send(request, deadline: now.advanced(by: .seconds(60)))
  }

  /// Prints a line of a part.
  func say(_ line: String) { Console.print("   \(line)\n") }
}

extension DemoStage {
  /// Serves content that can be resumed. The server holds back what comes behind the first `cut` bytes until `signal`
  /// fires, and then breaks off: a client has enough time to stop there, and asks for the rest.
  func serveHeldBack(_ path: String, count: Int, cut: Int, until signal: TestServer.Signal) {
    server.route("GET", path) { request in
      let tag = "\"\(path)-1\""
      let fields: TestServer.Fields = ["ETag": tag, "Accept-Ranges": "bytes"]
      guard let range = request.fields["Range"], request.fields["If-Range"] == tag,
        let start = Int(range.dropFirst("bytes=".count).prefix { $0 != "-" }), start < count
      else {
        return TestServer.Response(
          fields: fields,
          body: .stream(count: count) { writer in
            for piece in stride(from: 0, to: cut, by: 1 << 16) {
              try writer.write(TestServer.content(piece..<min(piece + 1 << 16, cut)))
            }
            try writer.wait(signal)
          })
      }
      var rest = TestServer.Response(status: 206, fields: fields, body: .content(start..<count))
      rest.fields["Content-Range"] = "bytes \(start)-\(count - 1)/\(count)"
      return rest
    }
  }
}
