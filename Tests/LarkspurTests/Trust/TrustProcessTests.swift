import Foundation
import LarkspurTestServer
import TestKit
import Testing

/// Tests the system's roots, which a process reads at their first use. Each check runs in a process of its own.
@Suite(.timeLimit(.minutes(1)), .ownThread) struct TrustProcessTests {
  /// Connections fail while the file of roots cannot be opened, and succeed once it can: the cause may have been a
  /// temporary lack of descriptors. The test uses a symbolic link to itself, which even root cannot open.
  @Test func rootsThatCanBeReadLater() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-roots-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: directory) }
    let (link, roots) = (directory.appending(path: "place"), directory.appending(path: "roots"))
    try FileManager.default.createSymbolicLink(atPath: link.path, withDestinationPath: "place")
    let authority = try TestCA()
    try authority.rootCertificatePEM.write(to: roots, atomically: false, encoding: .utf8)
    let server = try TestServer(tls: TestServer.TLS(certificate: try authority.issue()))
    let probe = try SiblingProcess(
      "session", ["roots", server.url("/get"), roots.path],
      environment: ["SSL_CERT_FILE": link.path, "SSL_CERT_DIR": directory.path])
    let failure = URLError.secureConnectionFailed.rawValue
    #expect(try probe.numbers() == [failure, failure, 200, 200])
    #expect(server.requestsReceived == 2)
  }

  // MARK: - Files

  /// A directory with the roots that the environment names, and a server whose certificate one of them issued.
  private final class Fixture {
    let directory: URL
    let authority: TestCA
    let server: TestServer

    init(_ change: (inout TestServer.TLS) -> Void = { _ in }) throws {
      directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-roots-\(UUID().uuidString)")
      try FileManager.default.createDirectory(
        at: directory.appending(path: "hashed"), withIntermediateDirectories: true)
      authority = try TestCA()
      var request = TestCertificate.Request()
      request.key = .rsa(2048)
      var tls = TestServer.TLS(certificate: try authority.issue(request))
      change(&tls)
      server = try TestServer(tls: tls)
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    func path(_ name: String) -> String { directory.appending(path: name).path }

    func write(_ name: String, _ text: String) throws -> String {
      try Data(text.utf8).write(to: directory.appending(path: name))
      return path(name)
    }

    /// Loads from the server in a process with this environment, and returns the output of that process.
    func status(_ environment: [String: String]) throws -> String {
      let own = ["SSL_CERT_DIR": path("hashed")].merging(environment) { $1 }
      return try SiblingProcess("session", ["status", server.url("/get")], environment: own).text()
    }

    func status(file: String) throws -> String { try status(["SSL_CERT_FILE": file]) }
  }

  /// A file that cannot be opened for reading, not even by root.
  private static let unreadable = "/proc/sys/vm/drop_caches"

  /// The name under which OpenSSL looks for the root of a `TestCA` in a directory (`openssl x509 -subject_hash`).
  private static let hashedName = "83641f51.0"

  @Test func goodRootsBesideDamagedOnes() throws {
    let fixture = try Fixture()
    let good = fixture.authority.rootCertificatePEM
    let damaged = try TestCA(name: "damaged").rootCertificatePEM.replacing("MII", with: "AII")
    let file = try fixture.write("roots.pem", damaged + good + damaged)
    #expect(try fixture.status(file: file) == "200\n")
  }

  /// A file of roots that cannot be used fails the connection with an error that names the file, not with an untrusted
  /// certificate.
  @Test func filesThatCannotBeUsed() throws {
    let fixture = try Fixture()
    let damaged = fixture.authority.rootCertificatePEM.replacing("MII", with: "AII")
    let files = [
      fixture.path("missing"), try fixture.write("empty", ""), try fixture.write("words", "no certificate\n"),
      try fixture.write("damaged", damaged), fixture.directory.path, Self.unreadable,
    ]
    for file in files {
      let status = try fixture.status(file: file)
      #expect(status.hasPrefix("\(URLError.secureConnectionFailed.rawValue) ") && status.contains(file), "\(status)")
    }
    // A readable file without the server's root makes the certificate untrusted.
    let other = try fixture.write("other", try TestCA(name: "other").rootCertificatePEM)
    #expect(try fixture.status(file: other).hasPrefix("\(URLError.serverCertificateUntrusted.rawValue) "))
    #expect(fixture.server.requestsReceived == 0)
  }

  /// Roots in the directory count even if the file cannot be used, and an unreadable file there is named.
  @Test func directories() throws {
    let fixture = try Fixture()
    let hash = "hashed/\(Self.hashedName)"
    _ = try fixture.write(hash, fixture.authority.rootCertificatePEM)
    for file in [fixture.path("missing"), try fixture.write("empty", ""), Self.unreadable] {
      #expect(try fixture.status(file: file) == "200\n")
    }
    let other = try fixture.write("other", try TestCA(name: "other").rootCertificatePEM)
    try FileManager.default.removeItem(at: fixture.directory.appending(path: hash))
    try FileManager.default.createSymbolicLink(atPath: fixture.path(hash), withDestinationPath: Self.unreadable)
    let status = try fixture.status(file: other)
    #expect(status.hasPrefix("\(URLError.secureConnectionFailed.rawValue) ") && status.contains(hash), "\(status)")
  }

  /// A self-signed server certificate may be among roots that could not be read, so the error names the file.
  @Test func aServersOwnCertificate() throws {
    let fixture = try Fixture()
    let own = try TestCA.selfSigned()
    let server = try TestServer(tls: TestServer.TLS(certificate: own))
    func status(_ file: String) throws -> String {
      try SiblingProcess(
        "session", ["status", server.url("/get")],
        environment: ["SSL_CERT_FILE": file, "SSL_CERT_DIR": fixture.path("hashed")]
      ).text()
    }
    #expect(try status(fixture.write("own.pem", own.certificatePEM)) == "200\n")
    let unread = try status(Self.unreadable)
    #expect(unread.hasPrefix("\(URLError.secureConnectionFailed.rawValue) ") && unread.contains(Self.unreadable))
    let others = try status(fixture.write("roots.pem", fixture.authority.rootCertificatePEM))
    #expect(others.hasPrefix("\(URLError.serverCertificateUntrusted.rawValue) "))
  }

  /// A file that could not be opened for lack of descriptors is opened again later.
  @Test func descriptorsRunOut() throws {
    let fixture = try Fixture()
    let roots = try fixture.write("roots.pem", fixture.authority.rootCertificatePEM)
    let chain = try fixture.write("chain.pem", try fixture.authority.issue(.init(names: ["a.example"])).certificatePEM)
    let probe = try SiblingProcess(
      "session", ["short", "a.example", chain],
      environment: ["SSL_CERT_FILE": roots, "SSL_CERT_DIR": fixture.path("hashed")])
    #expect(try probe.text() == "\(roots): Too many open files\nok\n")
  }

  // MARK: - The system's policy

  private static func policy(_ line: String) -> String {
    "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\n\(line)\n"
  }

  /// OpenSSL's configuration counts where it is stricter than Larkspur, and Larkspur's rules count where the
  /// configuration is laxer.
  @Test func theStricterPolicyCounts() throws {
    let old = try Fixture { $0.versions = .tls1_2 ... .tls1_2 }
    let new = try Fixture { $0.versions = .tls1_3 ... .tls1_3 }
    let dated = try Fixture {
      ($0.versions, $0.ciphers) = (.tls1_0 ... .tls1_1, "ALL")
    }
    let lax = try Fixture { ($0.versions, $0.ciphers) = (.tls1_2 ... .tls1_2, "AES128-GCM-SHA256") }
    let failed = "\(URLError.secureConnectionFailed.rawValue) "
    let untrusted = "\(URLError.serverCertificateUntrusted.rawValue) "
    let rows: [(Fixture, String, String)] = [
      (old, "", "200\n"), (old, "MinProtocol = TLSv1.2", "200\n"), (old, "MinProtocol = TLSv1.3", failed),
      (new, "MinProtocol = TLSv1.3", "200\n"), (new, "MaxProtocol = TLSv1.2", failed),
      (old, "MaxProtocol = TLSv1.2", "200\n"), (old, "Protocol = -TLSv1.2", failed),
      // Security level 3 requires 128 bits, for which an RSA key of 2,048 bits is too short.
      (old, "CipherString = DEFAULT@SECLEVEL=3", untrusted), (new, "CipherString = DEFAULT@SECLEVEL=3", untrusted),
      (old, "CipherString = DEFAULT@SECLEVEL=0", "200\n"),
      (old, "CipherString = ECDHE-ECDSA-AES128-GCM-SHA256", failed), (new, "Groups = P-384", "200\n"),
      (dated, "MinProtocol = TLSv1\nCipherString = ALL@SECLEVEL=0", failed),
      (lax, "CipherString = ALL@SECLEVEL=0", failed),
    ]
    for (fixture, line, expected) in rows {
      let status = try fixture.status([
        "SSL_CERT_FILE": try fixture.write("roots.pem", fixture.authority.rootCertificatePEM),
        "OPENSSL_CONF": try fixture.write("openssl.cnf", Self.policy(line)),
      ])
      #expect(status.hasPrefix(expected), "\(line): \(status)")
    }
  }
}
