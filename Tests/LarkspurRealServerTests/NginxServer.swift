import Foundation
import LarkspurTestServer

/// nginx over TLS.
final class NginxServer: TLSServer {
  let tcpPort: UInt16
  private let files: TLSFiles
  private let process: ServerProcess

  /// - Parameter port: The port to listen on, or `nil` for a free one.
  init(_ plan: TLSPlan, port: UInt16? = nil) throws {
    try RealServer.Kind.nginx.check()
    files = try TLSFiles(plan)
    var attempt = 1
    while true {
      let port = try port ?? RealServer.freePort()
      try files.write("nginx.conf", Self.configuration(plan, files, port))
      do throws(RealServer.Unavailable) {
        process = try ServerProcess(
          RealServer.Kind.nginx.program, ["-p", files.directory.path, "-c", files.path("nginx.conf"), "-e", "stderr"],
          readyText: RealServer.Kind.nginx.readyText)
        tcpPort = port
        return
      } catch {
        // Another process may take the port between the search and the server's bind.
        guard attempt < 5, error.description.contains("Address already in use") else { throw error }
        attempt += 1
      }
    }
  }

  deinit {
    process.end()
  }

  private static func configuration(_ plan: TLSPlan, _ files: TLSFiles, _ port: UInt16) -> String {
    let directory = files.directory.path
    return Self.configuration(
      directory,
      """
      server {
        listen 127.0.0.1:\(port)\(plan.isPlain ? "" : " ssl");
        root \(directory);
        location = /name { default_type text/plain; return 200 $ssl_server_name; }
        \((plan.isPlain ? [] : security(plan, files)).map { $0 + ";" }.joined(separator: "\n  "))
        \(plan.nginxLines)
      }
      """)
  }

  /// Returns the configuration of a server in the foreground that keeps all its files in `directory`.
  static func configuration(_ directory: String, _ http: String) -> String {
    """
    daemon off;
    master_process off;
    pid \(directory)/nginx.pid;
    error_log stderr notice;
    events { use epoll; }
    http {
      access_log off;
      client_body_temp_path \(directory)/tmp/body;
      proxy_temp_path \(directory)/tmp/proxy;
      fastcgi_temp_path \(directory)/tmp/fastcgi;
      uwsgi_temp_path \(directory)/tmp/uwsgi;
      scgi_temp_path \(directory)/tmp/scgi;
      \(http)
    }
    """
  }

  private static func security(_ plan: TLSPlan, _ files: TLSFiles) -> [String] {
    var lines = ["ssl_certificate \(files.path("chain.pem"))", "ssl_certificate_key \(files.path("key.pem"))"]
    let names: [(TLSPlan.Version, String)] = [
      (.tls1_0, "TLSv1"), (.tls1_1, "TLSv1.1"), (.tls1_2, "TLSv1.2"), (.tls1_3, "TLSv1.3"),
    ]
    lines.append("ssl_protocols " + names.filter { plan.versions ~= $0.0 }.map(\.1).joined(separator: " "))
    let ciphers = [plan.ciphers ?? (plan.isWeak ? "ALL" : nil), plan.isWeak ? "@SECLEVEL=0" : nil]
    if let ciphers = ciphers.compactMap(\.self).joinedUnlessEmpty { lines.append("ssl_ciphers \(ciphers)") }
    if plan.dhParameters != nil { lines.append("ssl_dhparam \(files.path("dh.pem"))") }
    if plan.staple != nil { lines += ["ssl_stapling on", "ssl_stapling_file \(files.path("staple.der"))"] }
    switch plan.clients {
    case .anonymous: break
    case .asked:
      lines += ["ssl_verify_client optional", "ssl_client_certificate \(files.path("clients.pem"))"]
    case .required:
      lines += ["ssl_verify_client on", "ssl_client_certificate \(files.path("clients.pem"))"]
    }
    return lines
  }
}
