import Foundation
import Glibc

/// A real server on a loopback port that keeps connections for the time and the number of requests that a test sets. It
/// serves `/small`, refuses bodies above 1 KiB at `/refuse`, and reports the client's port of each request.
final class KeepAliveServer {
  enum Kind: String, CaseIterable, Sendable {
    case nginx, apache, haproxy
  }

  /// The limits after which the server closes a connection.
  struct Patience: Sendable {
    var requestsMax = 100_000
    var idleMilliseconds = 60_000
  }

  let port: UInt16
  private let directory: URL
  private let process: ServerProcess
  private let hasChildren: Bool

  init(_ kind: Kind, _ patience: Patience) throws {
    switch kind {
    case .nginx: try RealServer.Kind.nginx.check()
    case .apache: try RealServer.Kind.apache.check()
    case .haproxy: try HAProxyServer.check()
    }
    hasChildren = kind != .nginx
    directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-\(kind)-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory.appending(path: "tmp"), withIntermediateDirectories: true)
    // The server may run as another user.
    for place in [directory, directory.appending(path: "tmp")] { chmod(place.path, 0o777) }
    try Data("Hello, world!".utf8).write(to: directory.appending(path: "small"))
    (port, process) = try RealServer.onFreePort { [directory] port throws in
      try kind.configuration(directory.path, port, patience).write(
        to: directory.appending(path: "configuration"), atomically: false, encoding: .utf8)
      return try ServerProcess(kind.program, kind.arguments(directory.path), readyText: kind.readyText)
    }
  }

  deinit {
    process.end(hasChildren: hasChildren)
    try? FileManager.default.removeItem(at: directory)
  }
}

extension KeepAliveServer.Kind {
  var program: String {
    switch self {
    case .nginx: RealServer.Kind.nginx.program
    case .apache: RealServer.Kind.apache.program
    case .haproxy: HAProxyServer.program
    }
  }

  var readyText: String {
    switch self {
    case .nginx: RealServer.Kind.nginx.readyText
    case .apache: RealServer.Kind.apache.readyText
    case .haproxy: HAProxyServer.readyText
    }
  }

  func arguments(_ directory: String) -> [String] {
    switch self {
    case .nginx: ["-p", directory, "-c", directory + "/configuration", "-e", "stderr"]
    case .apache: ["-d", directory, "-f", directory + "/configuration", "-DFOREGROUND"]
    case .haproxy: HAProxyServer.arguments(directory + "/configuration")
    }
  }

  func configuration(_ directory: String, _ port: UInt16, _ patience: KeepAliveServer.Patience) -> String {
    switch self {
    case .nginx: nginx(directory, port, patience)
    case .apache: apache(directory, port, patience)
    case .haproxy: haproxy(port, patience)
    }
  }

  private func nginx(_ directory: String, _ port: UInt16, _ patience: KeepAliveServer.Patience) -> String {
    NginxServer.configuration(
      directory,
      """
      keepalive_requests \(patience.requestsMax);
      keepalive_timeout \(patience.idleMilliseconds)ms;
      # For a connection that is opened and not used.
      client_header_timeout 3s;
      lingering_close always;
      server {
        listen 127.0.0.1:\(port);
        root \(directory);
        add_header X-Port $remote_port-$connection always;
        location /refuse { client_max_body_size 1k; }
      }
      """)
  }

  private func apache(_ directory: String, _ port: UInt16, _ patience: KeepAliveServer.Patience) -> String {
    let modules = ["mpm_event", "authz_core", "headers"]
      .map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n")
    return """
      \(modules)
      ServerName a.example
      Listen 127.0.0.1:\(port)
      PidFile \(directory)/httpd.pid
      DefaultRuntimeDir \(directory)/tmp
      Mutex pthread
      ErrorLog /dev/stderr
      LogLevel notice
      \(geteuid() == 0 ? "User www-data\nGroup www-data" : "")
      StartServers 1
      ServerLimit 1
      ThreadsPerChild 64
      MaxRequestWorkers 64
      KeepAlive On
      # Those behind the first one.
      MaxKeepAliveRequests \(patience.requestsMax - 1)
      # For a connection that is opened and not used, among other things.
      Timeout 3
      KeepAliveTimeout \(patience.idleMilliseconds)ms
      DocumentRoot \(directory)
      Header always set X-Port "expr=%{REMOTE_PORT}-%{CONN_LOG_ID}"
      <Directory />
        Require all granted
      </Directory>
      <Location /refuse>
        LimitRequestBody 1024
      </Location>
      """
  }

  /// Returns HAProxy's configuration, which has no limit on the number of requests.
  private func haproxy(_ port: UInt16, _ patience: KeepAliveServer.Patience) -> String {
    """
    defaults
      mode http
      timeout connect 10s
      timeout client 60s
      timeout server 60s
      # For a connection that is opened and not used: it is ended without a word.
      timeout http-request 3s
      option http-ignore-probes
      timeout http-keep-alive \(patience.idleMilliseconds)ms
    frontend http
      bind 127.0.0.1:\(port)
      http-request return status 413 hdr X-Port %[src_port] if { path /refuse } { req.body_size gt 1024 }
      http-request return status 200 content-type text/plain string "Hello, world!" hdr X-Port %[src_port]

    """
  }
}
