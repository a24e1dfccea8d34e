import Foundation
import Glibc

/// HAProxy in front of another server. A test can replace its process by a new one (`haproxy -sf`), which takes over
/// the listening sockets while the old process finishes its requests.
final class HAProxyServer {
  static let program = "/usr/sbin/haproxy"
  /// The output after its sockets are bound and its worker serves.
  static let readyText = "Loading success"

  static func check() throws { try requireProgram(program, package: "haproxy") }

  /// Returns the arguments for the foreground, with a worker process.
  static func arguments(_ configuration: String) -> [String] { ["-W", "-db", "-f", configuration] }

  let port: UInt16
  private let directory: URL
  private var process: ServerProcess

  /// - Parameter backend: The loopback port of the server behind the proxy.
  init(before backend: Int) throws {
    try Self.check()
    directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-haproxy-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    (port, process) = try RealServer.onFreePort { [directory] port throws in
      try Self.configuration(directory.path, port, backend).write(
        to: directory.appending(path: "configuration"), atomically: false, encoding: .utf8)
      return try ServerProcess(
        Self.program, Self.arguments(directory.path + "/configuration"), readyText: Self.readyText)
    }
  }

  deinit {
    process.end(hasChildren: true)
    try? FileManager.default.removeItem(at: directory)
  }

  /// Starts a new process in place of the present one, and waits until the old one has ended.
  func reload() throws {
    let old = process
    var attempt = 1
    while true {
      do throws(RealServer.Unavailable) {
        process = try ServerProcess(
          Self.program,
          Self.arguments(directory.path + "/configuration")
            + ["-x", directory.path + "/control", "-sf", "\(old.identifier)"], readyText: Self.readyText)
        break
      } catch {
        // The present process may be too busy to hand its sockets over in time, and continues.
        guard attempt < 5 else { throw error }
        attempt += 1
      }
    }
    // The new process has sent the signal, perhaps before the old one handled signals.
    try old.end(by: SIGUSR1)
  }

  /// Returns the configuration. A connection that is opened and not used is closed silently; an old process waits for
  /// such a connection for the timeout.
  private static func configuration(_ directory: String, _ port: UInt16, _ backend: Int) -> String {
    """
    global
      stats socket \(directory)/control level admin expose-fd listeners
    defaults
      mode http
      retries 0
      option http-ignore-probes
      timeout http-request 1s
      timeout connect 10s
      timeout client 60s
      timeout server 60s
      timeout http-keep-alive 60s
    frontend http
      bind 127.0.0.1:\(port)
      http-response set-header X-Port %[src_port]
      default_backend server
    backend server
      server one 127.0.0.1:\(backend)

    """
  }
}
