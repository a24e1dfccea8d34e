import Foundation
import Glibc
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import TestKit

/// A real proxy on a loopback port, which runs until the test ends. It knows one user, `me` with the password `secret`;
/// dante accepts every user.
final class RealProxy {
  enum Kind: String, CaseIterable, Sendable {
    case squid
    /// squid with Digest in place of Basic.
    case squidDigest
    case tinyproxy
    case dante
    case microsocks
  }

  /// The output of `openssl passwd -1 -salt larkspur secret`.
  private static let cryptedPassword = "$1$larkspur$ElyiTGmmnxxwToqt8My.X."
  static let realm = "larkspur"

  let port: UInt16
  /// squid's second port, for TLS.
  let securePort: UInt16
  private let files: Files
  private let kind: Kind
  private let process: ServerProcess

  /// - Parameter certificate: squid's certificate for TLS.
  init(_ kind: Kind, certificate: TestCertificate? = nil) throws {
    try requireProgram(kind.program, package: kind.package)
    self.kind = kind
    files = try Files()
    try files.write("users", "me:\(Self.cryptedPassword)\n")
    try files.write("digest-users", "me:secret\n")
    if let certificate {
      try files.write("chain.pem", certificate.chainPEM)
      try files.write("key.pem", certificate.privateKeyPEM)
    }
    var attempt = 1
    while true {
      let (port, securePort) = (try RealServer.freePort(), try RealServer.freePort())
      try files.write(
        "configuration", kind.configuration(files, port, certificate == nil ? nil : securePort))
      do throws(RealServer.Unavailable) {
        process = try ServerProcess(
          kind.program, kind.arguments(files, port), in: files.directory.path, readyText: kind.readyText)
        (self.port, self.securePort) = (port, securePort)
        break
      } catch {
        // Another process may take the port between the search and the proxy's bind.
        guard attempt < 5 else { throw error }
        attempt += 1
      }
    }
    waitUntilItListens(port)
    if certificate != nil { waitUntilItListens(securePort) }
  }

  deinit {
    process.end(hasChildren: kind == .dante)
  }

  /// Waits until a connection succeeds: microsocks prints nothing, and squid prints its message before it listens.
  private func waitUntilItListens(_ port: UInt16) {
    Wait.blocking(until: "\(kind) listens") { (try? BlockingSocket.connect(to: .loopback(port: port))) != nil }
  }

  /// Files in a directory of their own that every user can read, whichever the proxy runs as.
  final class Files: Sendable {
    let directory: URL

    init() throws {
      directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-proxy-\(UUID().uuidString)")
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
      chmod(directory.path, 0o755)
    }

    deinit {
      try? FileManager.default.removeItem(at: directory)
    }

    func path(_ name: String) -> String { directory.appending(path: name).path }

    func write(_ name: String, _ text: String) throws {
      try Data(text.utf8).write(to: directory.appending(path: name))
      chmod(path(name), 0o644)
    }
  }
}

extension RealProxy.Kind {
  var package: String {
    switch self {
    case .squid, .squidDigest: "squid"
    case .tinyproxy: "tinyproxy"
    case .dante: "dante-server"
    case .microsocks: "microsocks"
    }
  }

  var program: String {
    switch self {
    case .squid, .squidDigest: "/usr/sbin/squid"
    case .tinyproxy: "/usr/bin/tinyproxy"
    case .dante: "/usr/sbin/danted"
    case .microsocks: "/usr/bin/microsocks"
    }
  }

  /// The output after which the proxy serves, or `nil` if it prints nothing.
  var readyText: String? {
    switch self {
    case .squid, .squidDigest: "Accepting HTTP Socket connections"
    case .tinyproxy: "Accepting connections"
    case .dante: "running"
    case .microsocks: nil
    }
  }

  func arguments(_ files: RealProxy.Files, _ port: UInt16) -> [String] {
    switch self {
    case .squid, .squidDigest: ["-N", "-d1", "-f", files.path("configuration")]
    case .tinyproxy: ["-d", "-c", files.path("configuration")]
    case .dante: ["-f", files.path("configuration")]
    case .microsocks: ["-i", "127.0.0.1", "-p", "\(port)", "-u", "me", "-P", "secret"]
    }
  }

  func configuration(_ files: RealProxy.Files, _ port: UInt16, _ securePort: UInt16?) -> String {
    switch self {
    case .squid, .squidDigest:
      """
      \(securePort.map { "https_port 127.0.0.1:\($0) tls-cert=\(files.path("chain.pem")) tls-key=\(files.path("key.pem"))" } ?? "")
      http_port 127.0.0.1:\(port)
      \(authentication(files))
      acl known proxy_auth REQUIRED
      http_access allow known
      http_access deny all
      pid_filename none
      cache deny all
      cache_mem 1 MB
      cache_log /dev/null
      access_log none
      coredump_dir \(files.directory.path)
      visible_hostname squid.example
      shutdown_lifetime 0 seconds
      """
    case .tinyproxy:
      """
      Port \(port)
      Listen 127.0.0.1
      Timeout 60
      MaxClients 20
      LogLevel Info
      BasicAuth me secret
      """
    case .dante:
      """
      logoutput: stderr
      internal: 127.0.0.1 port = \(port)
      external: lo
      clientmethod: none
      socksmethod: none
      \(geteuid() == 0 ? "user.unprivileged: nobody" : "")
      client pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
      socks pass { from: 0.0.0.0/0 to: 0.0.0.0/0 }
      """
    case .microsocks: ""
    }
  }

  private func authentication(_ files: RealProxy.Files) -> String {
    self == .squidDigest
      ? """
      auth_param digest program /usr/lib/squid/digest_file_auth \(files.path("digest-users"))
      auth_param digest children 1 startup=1
      auth_param digest realm \(RealProxy.realm)
      """
      : """
      auth_param basic program /usr/lib/squid/basic_ncsa_auth \(files.path("users"))
      auth_param basic children 1 startup=1
      auth_param basic realm \(RealProxy.realm)
      """
  }
}
