import CLarkspurOpenSSL
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import TestKit
import Testing

/// A server with TLS, and the files that a command needs to connect to it.
final class TLSServer {
  let ca: TestCA
  let certificate: TestCertificate
  let server: TestServer
  let directory: TemporaryDirectory

  /// Starts a server and writes its root to `root.pem`. Without `ca` the server gets an authority of its own.
  init(
    _ request: TestCertificate.Request = .init(), by ca: TestCA? = nil,
    _ change: (inout TestServer.TLS) throws -> Void = { _ in }
  ) throws {
    let ca = try ca ?? TestCA()
    self.ca = ca
    certificate = try ca.issue(request)
    var tls = TestServer.TLS(certificate: certificate)
    try change(&tls)
    server = try TestServer(tls: tls)
    directory = try TemporaryDirectory()
    try directory.write(ca.rootCertificatePEM, to: "root.pem")
  }

  /// The arguments that make the command trust `ca` only.
  var trust: [String] { ["--cacert", directory.path("root.pem")] }

  /// Runs `larkspur get` for `/bytes/9`. The command trusts only the system's roots unless `arguments` name others.
  func get(_ arguments: [String], environment: [String: String] = [:]) async throws -> Command.Result {
    try await Command(["get", server.url("/bytes/9")] + arguments, environment: environment).end()
  }

  /// Runs `larkspur pins`. The command trusts only the system's roots unless `arguments` name others.
  func pins(_ arguments: [String], environment: [String: String] = [:]) async throws -> Command.Result {
    try await Command(["pins", server.url()] + arguments, environment: environment).end()
  }

  /// Expects that the command got its response and printed no error.
  func expectSuccess(_ result: Command.Result, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(result.status == 0, sourceLocation: sourceLocation)
    #expect(result.errors == "", sourceLocation: sourceLocation)
    #expect(result.output == TestServer.content(count: 9), sourceLocation: sourceLocation)
  }

  /// Expects that the command failed with this status and this message about the server.
  func expectFailure(
    _ result: Command.Result, _ status: Int32, _ message: String, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(result.status == status, sourceLocation: sourceLocation)
    #expect(result.errors == "larkspur: \(server.authority): \(message)\n", sourceLocation: sourceLocation)
  }
}

extension TestCertificate {
  struct Unreadable: Error {}

  /// The file name under which OpenSSL finds a root in a directory, which is a digest of its subject.
  func hashedName() throws -> String {
    try certificateDER.withUnsafeBufferPointer { bytes in
      var next = bytes.baseAddress
      guard let parsed = d2i_X509(nil, &next, bytes.count) else { throw Unreadable() }
      defer { X509_free(parsed) }
      let digits = String(X509_subject_name_hash(parsed), radix: 16)
      return String(repeating: "0", count: 8 - digits.count) + digits + ".0"
    }
  }

  /// The pin of the certificate's key in the form `sha256/...` of the option `--pin`.
  func pin() throws -> String {
    guard let certificate = Certificate.read(certificateDER)?.first else { throw Unreadable() }
    return certificate.pin.description
  }
}
