import Foundation
import Glibc
import LarkspurIO
import LarkspurTestServer
import Testing

/// nginx or Apache httpd on a loopback port, which runs until the test ends.
final class RealServer {
  enum Kind: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case nginx
    case apache

    var testDescription: String { rawValue }

    /// Debian's package, which is also the name of its program.
    var package: String { self == .nginx ? "nginx" : "apache2" }
    var program: String { "/usr/sbin/" + package }
    /// The output after its port is open and it serves.
    var readyText: String {
      self == .nginx ? "using the \"epoll\" event method" : "resuming normal operations"
    }

    func check() throws { try requireProgram(program, package: package) }
  }

  struct Unavailable: Error, CustomStringConvertible {
    var description: String
  }

  let kind: Kind
  let port: UInt16
  private let directory: URL
  private let process: ServerProcess

  static let hundredKiB = TestServer.content(count: 100 * 1024)
  static let largeCount = 16 << 20

  init(_ kind: Kind) throws {
    try kind.check()
    self.kind = kind
    directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-\(kind)-\(UUID().uuidString)")
    var attempt = 1
    while true {
      let port = try Self.freePort()
      try Self.write(kind, directory, port)
      do throws(Unavailable) {
        process = try ServerProcess(kind.program, Self.arguments(kind, directory), readyText: kind.readyText)
        self.port = port
        return
      } catch {
        // Another process may take the port between the search and the server's bind.
        guard attempt < 5 else { throw error }
        attempt += 1
      }
    }
  }

  deinit {
    process.end(hasChildren: kind == .apache)
    try? FileManager.default.removeItem(at: directory)
  }

  /// Returns a port that was free a moment ago: the kernel chooses it for a listener that is closed again.
  static func freePort() throws -> UInt16 {
    try BlockingListener(address: .loopback(port: 0)).port
  }

  /// Starts a server on a port that was free a moment ago, and tries again if another process takes the port first.
  static func onFreePort(_ start: (UInt16) throws -> ServerProcess) throws -> (UInt16, ServerProcess) {
    var attempt = 1
    while true {
      let port = try freePort()
      do {
        return (port, try start(port))
      } catch let error as Unavailable {
        guard attempt < 5 else { throw error }
        attempt += 1
      }
    }
  }

  private static func arguments(_ kind: Kind, _ directory: URL) -> [String] {
    switch kind {
    case .nginx: ["-p", directory.path, "-c", directory.path + "/nginx.conf", "-e", "stderr"]
    case .apache: ["-d", directory.path, "-f", directory.path + "/httpd.conf", "-DFOREGROUND"]
    }
  }

  // MARK: - Files

  private static func write(_ kind: Kind, _ directory: URL, _ port: UInt16) throws {
    let files = FileManager.default
    for name in ["www/directory", "www/uploads", "cgi", "logs", "tmp"] {
      try files.createDirectory(at: directory.appending(path: name), withIntermediateDirectories: true)
      // The server may run as another user.
      chmod(directory.appending(path: name).path, 0o777)
    }
    func put(_ path: String, _ bytes: [UInt8], mode: mode_t = 0o644) throws {
      try Data(bytes).write(to: directory.appending(path: path))
      chmod(directory.appending(path: path).path, mode)
    }
    chmod(directory.path, 0o755)
    chmod(directory.appending(path: "www").path, 0o755)
    try put("mime.types", Array("text/html shtml\n".utf8))
    try put("www/small", Array("Hello, world!".utf8))
    try put("www/100k", hundredKiB)
    try put("www/large", TestServer.content(count: largeCount))
    try put("www/page.shtml", Array("<!--#set var=\"a\" value=\"included\" --><!--#echo var=\"a\" -->".utf8))
    // Apache passes the whole body on before it reads the answer, so a script that answered meanwhile would block it.
    let echo =
      "#!/bin/sh\nfile=$(mktemp -p \(directory.path)/tmp)\ncat > $file\n"
      + "printf 'Content-Type: text/plain\\r\\n\\r\\n'\ncat $file\nrm $file\n"
    try put("cgi/echo", Array(echo.utf8), mode: 0o755)
    try put(
      "cgi/long",
      Array(
        "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\nhead -c 200000 /dev/zero | tr '\\000' x\n".utf8),
      mode: 0o755)
    try put("cgi/empty", Array("#!/bin/sh\nprintf 'Status: 204\\r\\n\\r\\n'\n".utf8), mode: 0o755)
    try put(
      kind == .nginx ? "nginx.conf" : "httpd.conf", Array((kind == .nginx ? nginx : apache)(directory.path, port).utf8))
  }

  private static func nginx(_ directory: String, _ port: UInt16) -> String {
    NginxServer.configuration(
      directory,
      """
      keepalive_requests 1000;
      server {
        listen 127.0.0.1:\(port);
        root \(directory)/www;
        location = /page.shtml { ssi on; ssi_types *; }
        location = /empty { return 204; }
        location /uploads/ { dav_methods PUT DELETE; client_max_body_size 10m; }
        location = /three { alias \(directory)/www/small; keepalive_requests 3; }
      }
      """)
  }

  private static func apache(_ directory: String, _ port: UInt16) -> String {
    let modules = [
      "mpm_event", "authz_core", "alias", "cgi", "dir", "env", "filter", "include", "mime", "setenvif",
    ].map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n")
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
      # Too few threads, and Apache closes idle connections to have one free.
      ThreadsPerChild 64
      MaxRequestWorkers 64
      KeepAlive On
      MaxKeepAliveRequests 1000
      TypesConfig \(directory)/mime.types
      DocumentRoot \(directory)/www
      ScriptAlias /cgi/ \(directory)/cgi/
      AddOutputFilter INCLUDES .shtml
      <Directory />
        Options +Includes +ExecCGI
        Require all granted
      </Directory>
      BrowserMatch "old" downgrade-1.0 force-response-1.0
      """
  }
}
