import Foundation
import Glibc
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

extension PythonServer {
  private struct Environment {
    var directory: URL
    var python: String
  }

  /// A virtual environment with `websockets`, in a directory that is deleted when the tests' process exits. The first
  /// test to use the environment makes it.
  private static let environment: Result<Environment, any Error> = Result {
    let environment = try makeEnvironment()
    atexit { PythonServer.removeEnvironment() }
    return environment
  }

  private static func makeEnvironment() throws -> Environment {
    let directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-websockets-\(UUID().uuidString)")
    do {
      let python = try PythonPackages.install(["websockets==15.0.1"], in: directory)
      return Environment(directory: directory, python: python)
    } catch {
      try? FileManager.default.removeItem(at: directory)
      throw error
    }
  }

  private static func removeEnvironment() {
    guard case .success(let environment) = environment else { return }
    try? FileManager.default.removeItem(at: environment.directory)
  }

  /// Starts a WebSocket server: see `Tests/LivePeers/websocket_server.py`.
  static func webSockets() throws -> PythonServer {
    let environment = try PythonPackages.require(environment, "websockets")
    return try PythonServer("Tests/LivePeers/websocket_server.py", python: environment.python)
  }

  /// The lines of an nginx location that passes WebSockets on to this server.
  ///
  /// - Parameter prefix: The path of the location, which the server does not see.
  func nginxLocation(_ prefix: String = "/", _ lines: String = "") -> String {
    """
    location \(prefix) {
      proxy_pass http://127.0.0.1:\(port)/;
      proxy_http_version 1.1;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection upgrade;
      proxy_set_header Host $http_host;
      \(lines)
    }
    """
  }

  /// The lines of Apache's configuration that pass WebSockets on to this server.
  func apacheProxy(_ prefix: String = "/") -> String {
    """
    LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
    LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
    ProxyPass \(prefix) http://127.0.0.1:\(port)/ upgrade=websocket
    """
  }
}

/// A WebSocket server, and a proxy of the server's side in front of it.
final class WebSocketFront {
  enum Kind: String, CaseIterable, Sendable {
    case none, nginx, haproxy, apache
  }

  let port: Int
  private let server: PythonServer
  /// The proxy, which runs as long as it is referenced.
  private let front: AnyObject?

  init(_ kind: Kind) throws {
    server = try PythonServer.webSockets()
    switch kind {
    case .none:
      front = nil
      port = server.port
    case .nginx, .apache:
      let proxy = try SessionServer(
        kind == .nginx ? .nginx : .apache, kind == .nginx ? server.nginxLocation() : server.apacheProxy())
      front = proxy
      port = Int(proxy.port)
    case .haproxy:
      let proxy = try HAProxyServer(before: server.port)
      front = proxy
      port = Int(proxy.port)
    }
  }

  /// Returns the URL of a path behind the proxy.
  func url(_ path: String) -> String { "ws://127.0.0.1:\(port)\(path)" }
}

/// A delegate that records the calls for one WebSocket task.
final class WebSocketRecorder: NSObject, URLSessionWebSocketDelegate {
  let events = Mutex<[String]>([])
  let (ends, end) = AsyncStream<Void>.makeStream()

  private func note(_ event: String) { events.withLock { $0.append(event) } }

  /// Waits for the end of the task.
  func wait() async {
    for await _ in ends {}
  }

  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
  ) { note("open \(`protocol` ?? "")") }

  func urlSession(
    _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
    didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
  ) { note("closed \(closeCode.rawValue) \(String(decoding: reason ?? Data(), as: UTF8.self))") }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    note(error.map { "\($0)" } ?? "complete")
    end.finish()
  }
}

extension URLSession {
  /// Opens a WebSocket that receives messages of up to 16 MiB.
  func openSocket(_ url: String, protocols: [String] = []) throws -> URLSessionWebSocketTask {
    let socket = webSocketTask(with: try #require(URL(string: url)), protocols: protocols)
    socket.maximumMessageSize = 16 << 20
    socket.resume()
    return socket
  }
}

extension URLSessionWebSocketTask {
  /// Receives a message, which has to be text.
  func receiveText() async throws -> String {
    guard case .string(let text) = try await receive() else { throw URLError(.cannotDecodeContentData) }
    return text
  }

  /// Receives a message, which has to be bytes.
  func receiveData() async throws -> Data {
    guard case .data(let data) = try await receive() else { throw URLError(.cannotDecodeContentData) }
    return data
  }
}
