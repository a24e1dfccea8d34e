import Foundation
import Glibc
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// nginx or Apache httpd with a test's own configuration, on a loopback port.
///
/// The server knows one user, `me` with the password `secret`.
final class SessionServer {
  let port: UInt16
  private let files: RealProxy.Files
  private let process: ServerProcess
  private let kind: RealServer.Kind

  static let realm = "larkspur"
  /// A compressible text.
  static let text = String(repeating: "The lark sings in the spur's blue flowers.\n", count: 4000)

  /// - Parameters:
  ///   - lines: Lines for nginx's `server` block, or for Apache's configuration, after those that every server
  ///     needs. `FOLDER` stands for the server's directory.
  ///   - http: Lines for nginx's `http` block.
  init(_ kind: RealServer.Kind, _ lines: String, http: String = "") throws {
    try kind.check()
    self.kind = kind
    let files = try RealProxy.Files()
    self.files = files
    try Self.fill(files)
    let lines = lines.replacing("FOLDER", with: files.directory.path)
    let name = kind == .nginx ? "nginx.conf" : "httpd.conf"
    (port, process) = try RealServer.onFreePort { port in
      try files.write(name, kind == .nginx ? Self.nginx(files, lines, http, port) : Self.apache(files, lines, port))
      let directory = files.directory.path
      return try ServerProcess(
        kind.program,
        kind == .nginx
          ? ["-p", directory, "-c", files.path(name), "-e", "stderr"]
          : ["-d", directory, "-f", files.path(name), "-DFOREGROUND"],
        readyText: kind.readyText)
    }
  }

  deinit { process.end(hasChildren: kind == .apache) }

  func url(_ path: String) throws -> URL { try #require(URL(string: "http://127.0.0.1:\(port)\(path)")) }

  /// Makes a file of zeros that takes no room on the disk.
  func makeFile(_ name: String, count: Int) throws {
    let path = files.path("www/\(name)")
    #expect(FileManager.default.createFile(atPath: path, contents: nil))
    #expect(truncate(path, count) == 0)
    chmod(path, 0o644)
  }

  private static func fill(_ files: RealProxy.Files) throws {
    for name in ["www", "www/uploads", "cgi", "tmp"] {
      try FileManager.default.createDirectory(
        at: files.directory.appending(path: name), withIntermediateDirectories: true)
      // The server may run as another user.
      chmod(files.path(name), 0o777)
    }
    try files.write("mime.types", "text/plain txt\n")
    try files.write("www/small", "Hello, world!")
    try files.write("www/text.txt", text)
    try Data(RealServer.hundredKiB).write(to: files.directory.appending(path: "www/100k"))
    chmod(files.path("www/100k"), 0o644)
    // Apache gives a file that has just been written a weak tag.
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSinceNow: -3600)], ofItemAtPath: files.path("www/100k"))
    // The output of `openssl passwd -1` for the password, and the digest of user, realm and password.
    try files.write("users", "me:$1$larkspur$ElyiTGmmnxxwToqt8My.X.\n")
    try files.write("digest-users", "me:\(realm):8b0302045af06cdd7abe94a3390171cb\n")
    let echo =
      "#!/bin/sh\nfile=$(mktemp -p \(files.path("tmp")))\ncat > $file\n"
      + "printf 'Content-Type: text/plain\\r\\n\\r\\n'\ncat $file\nrm $file\n"
    try files.write("cgi/echo", echo)
    chmod(files.path("cgi/echo"), 0o755)
  }

  private static func nginx(
    _ files: RealProxy.Files, _ lines: String, _ http: String, _ port: UInt16
  ) -> String {
    NginxServer.configuration(
      files.directory.path,
      """
      \(http)
      server {
        listen 127.0.0.1:\(port);
        root \(files.path("www"));
        default_type application/octet-stream;
        \(lines)
      }
      """)
  }

  private static func apache(_ files: RealProxy.Files, _ lines: String, _ port: UInt16) -> String {
    let modules = [
      "mpm_event", "authn_core", "authz_core", "authn_file", "authz_user", "auth_basic", "auth_digest", "alias", "cgi",
      "deflate", "env", "filter", "mime", "setenvif",
    ].map { "LoadModule \($0)_module /usr/lib/apache2/modules/mod_\($0).so" }.joined(separator: "\n")
    let directory = files.directory.path
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
      TypesConfig \(directory)/mime.types
      DocumentRoot \(directory)/www
      ScriptAlias /cgi/ \(directory)/cgi/
      <Directory />
        Options +ExecCGI
        Require all granted
      </Directory>
      \(lines)
      """
  }
}

/// A delegate that answers every password challenge with the next of some passwords, and records challenges and
/// informational responses. Redirects are left to the session.
final class SessionRecorder: NSObject, URLSessionDataDelegate {
  struct Challenge: Sendable, Equatable {
    var method: String
    var realm: String?
    var isProxy: Bool
    var failures: Int
  }

  private let passwords: [String]
  private let other: @Sendable (URLAuthenticationChallenge) -> URLCredential?
  let challenges = Mutex<[Challenge]>([])
  let informational = Mutex<[Int]>([])

  /// - Parameter other: Returns the credential for challenges that do not ask for a password.
  init(_ passwords: String..., other: @escaping @Sendable (URLAuthenticationChallenge) -> URLCredential? = { _ in nil })
  {
    self.passwords = passwords
    self.other = other
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let space = challenge.protectionSpace
    challenges.withLock {
      $0.append(
        Challenge(
          method: space.authenticationMethod, realm: space.realm, isProxy: space.isProxy(),
          failures: challenge.previousFailureCount))
    }
    if let credential = other(challenge) { return completionHandler(.useCredential, credential) }
    guard passwords.indices.contains(challenge.previousFailureCount) else {
      return completionHandler(.performDefaultHandling, nil)
    }
    completionHandler(
      .useCredential,
      URLCredential(user: "me", password: passwords[challenge.previousFailureCount], persistence: .forSession))
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
  ) {
    informational.withLock { $0.append(response.statusCode) }
  }
}

extension URLSession {
  /// Loads, and returns the status and the content.
  func load(
    _ request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (status: Int, data: Data, response: HTTPURLResponse) {
    let (data, response) = try await data(for: request, delegate: delegate)
    let http = try #require(response as? HTTPURLResponse)
    return (http.statusCode, data, http)
  }

  func load(
    _ url: URL, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> (status: Int, data: Data, response: HTTPURLResponse) {
    try await load(URLRequest(url: url), delegate: delegate)
  }
}

/// A delegate that keeps a task's metrics.
final class MetricsRecorder: NSObject, URLSessionTaskDelegate {
  let metrics = Mutex<URLSessionTaskMetrics?>(nil)

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    self.metrics.withLock { $0 = metrics }
  }
}
