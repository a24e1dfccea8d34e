import Foundation
import Glibc

/// HAProxy before another server, replaced by a new process whenever a test wants it: `haproxy -sf`, which lets the old one
/// finish what it has begun and hands its listening sockets over.
final class HAProxyServer {
  static let program = "/usr/sbin/haproxy"
  /// What it writes when its sockets are bound and its worker serves.
  static let readyWords = "Loading success"

  static func check() throws { try requireProgram(program, package: "haproxy") }

  /// In the foreground, with a worker process.
  static func arguments(_ configuration: String) -> [String] { ["-W", "-db", "-f", configuration] }

  let port: UInt16
  private let folder: URL
  private var process: ServerProcess

  /// - Parameter backend: The loopback port of the server that it stands before.
  init(before backend: Int) throws {
    try Self.check()
    folder = FileManager.default.temporaryDirectory.appending(path: "larkspur-haproxy-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    (port, process) = try RealServer.onFreePort { [folder] port throws in
      try Self.configuration(folder.path, port, backend).write(
        to: folder.appending(path: "configuration"), atomically: false, encoding: .utf8)
      return try ServerProcess(
        Self.program, Self.arguments(folder.path + "/configuration"), readyWords: Self.readyWords)
    }
  }

  deinit {
    process.end(hasChildren: true)
    try? FileManager.default.removeItem(at: folder)
  }

  /// Starts a new process in place of the present one, and waits until that has ended.
  func reload() throws {
    let old = process
    var attempt = 1
    while true {
      do throws(RealServer.Unavailable) {
        process = try ServerProcess(
          Self.program,
          Self.arguments(folder.path + "/configuration")
            + ["-x", folder.path + "/control", "-sf", "\(old.identifier)"], readyWords: Self.readyWords)
        break
      } catch {
        // The present one may be too busy to hand its sockets over in time, and goes on.
        guard attempt < 5 else { throw error }
        attempt += 1
      }
    }
    // Its successor has told it, perhaps before it listened.
    try old.end(by: SIGUSR1)
  }

  /// A connection that is opened and not used is ended without a word: an old process waits for it so long.
  private static func configuration(_ folder: String, _ port: UInt16, _ backend: Int) -> String {
    """
    global
      stats socket \(folder)/control level admin expose-fd listeners
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
