import Foundation
import Synchronization
import Testing

/// `option_server.py`, which is started once for all suites, and ends with the tests' process.
struct OptionServer: Sendable {
  /// The ports beside that of HTTP.
  private struct Ports: Decodable {
    /// Connections are accepted, and nothing reads from them.
    var silent: Int
    /// Connections get no answer from the kernel.
    var full: Int
  }

  let port: Int
  let silentPort: Int
  let fullPort: Int

  private static let script = "Tests/LivePeers/option_server.py"
  private static let running = Mutex<PythonServer?>(nil)
  private static let shared = Result {
    let server = try PythonServer(script)
    running.withLock { $0 = server }
    atexit { OptionServer.running.withLock { $0 = nil } }
    return try OptionServer(server)
  }

  static func get() throws -> OptionServer { try shared.get() }

  private init(_ server: PythonServer) throws {
    port = server.port
    let url = try #require(URL(string: "http://127.0.0.1:\(port)/ports"))
    let ports = try JSONDecoder().decode(Ports.self, from: Data(contentsOf: url))
    (silentPort, fullPort) = (ports.silent, ports.full)
  }

  func url(_ path: String) throws -> URL { try #require(URL(string: "http://127.0.0.1:\(port)\(path)")) }

  /// The server's report on a request with a body.
  struct Report: Decodable {
    /// The value of `Content-Encoding`.
    var coding: String?
    /// The value of `Trailer`.
    var announced: String?
    var trailers: [String: String]
    /// The number of bytes of the body as it was sent.
    var sent: Int
    /// The value of `Content-Length`.
    var length: String?
    /// The number of bytes of the body without its coding.
    var content: Int
    /// Whether the body is all of one letter, as in `content(_:)`.
    var isRight: Bool

    init(_ data: some Sequence<UInt8>) throws { self = try JSONDecoder().decode(Report.self, from: Data(data)) }
  }

  static func content(_ count: Int) -> [UInt8] { [UInt8](repeating: UInt8(ascii: "x"), count: count) }
}
