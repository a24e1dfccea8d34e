import Foundation
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransfers
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Identities and roots from files, and from a closure, by the settings of a session.
@Suite(.timeLimit(.minutes(1))) struct IdentityOptionsTests {
  let ca: TestCA
  let server: TestServer

  init() throws {
    ca = try TestCA()
    var tls = TestServer.TLS(certificate: try ca.issue())
    tls.clientCertificate = .verified(by: [ca.rootCertificateDER])
    server = try TestServer(tls: tls)
  }

  private func certificate(_ name: String) throws -> TestCertificate {
    var request = TestCertificate.Request(names: [], ipAddresses: [])
    request.commonName = name
    return try ca.issue(request)
  }

  private func session(_ trust: TLSTrustSettings) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.tlsTrustSettings = trust
    return URLSession(configuration: configuration)
  }

  private func load(_ session: URLSession) async throws {
    let url = try #require(URL(string: server.url("/get")))
    let (_, response) = try await session.data(from: url)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    await session.reset()
  }

  @Test func filesAreReadAgain() async throws {
    let folder = try TemporaryDirectory()
    let (path, roots) = (folder.path("both.pem"), folder.path("roots.pem"))
    func write(_ name: String) throws {
      let made = try certificate(name)
      try Data((made.chainPEM + made.privateKeyPEM).utf8).write(to: folder.file("both.pem"), options: .atomic)
    }
    try Data(ca.rootCertificatePEM.utf8).write(to: folder.file("roots.pem"))
    try write("first")
    var trust = TLSTrustSettings()
    trust.roots = .only([])
    trust.rootFiles = [roots]
    trust.identity = try Larkspur.ClientIdentity(certificateFile: path)
    let failures = Mutex<[String]>([])
    trust.fileFailed = { path, reason in failures.withLock { $0.append("\(path): \(reason)") } }
    let session = session(trust)
    defer { session.invalidateAndCancel() }
    try await load(session)
    try write("second")
    try await load(session)
    #expect(server.handshakes.map(\.clientCertificateSubject) == ["CN=first", "CN=second"])
    try Data().write(to: folder.file("both.pem"), options: .atomic)
    try await load(session)
    #expect(server.handshakes.last?.clientCertificateSubject == "CN=second")
    #expect(failures.withLock { $0 } == ["\(path): the client certificate or its key cannot be read"])
  }

  @Test func identitiesFromAClosure() async throws {
    var trust = TLSTrustSettings()
    trust.roots = .only([try #require(TLSCertificate(Data(ca.rootCertificateDER)))])
    let count = Atomic(0)
    let port = server.port
    trust.provideIdentity = { [self] host, asked in
      #expect(host == "127.0.0.1" && asked == port)
      let made = try? certificate("\(count.add(1, ordering: .relaxed).newValue)")
      return made.flatMap {
        try? Larkspur.ClientIdentity(certificates: Data($0.chainPEM.utf8), key: Data($0.privateKeyPEM.utf8))
      }
    }
    let session = session(trust)
    defer { session.invalidateAndCancel() }
    try await load(session)
    try await load(session)
    #expect(server.handshakes.map(\.clientCertificateSubject) == ["CN=1", "CN=2"])
  }

  @Test func keysAreLoggedForOneSession() async throws {
    let folder = try TemporaryDirectory()
    var trust = TLSTrustSettings()
    trust.roots = .only([try #require(TLSCertificate(Data(ca.rootCertificateDER)))])
    let made = try certificate("a")
    trust.identity = try Larkspur.ClientIdentity(
      certificates: Data(made.chainPEM.utf8), key: Data(made.privateKeyPEM.utf8))
    let quiet = session(trust)
    defer { quiet.invalidateAndCancel() }
    trust.dangerousKeyLogFile = folder.path("keys")
    let logging = session(trust)
    defer { logging.invalidateAndCancel() }
    try await load(quiet)
    #expect(!FileManager.default.fileExists(atPath: folder.path("keys")))
    try await load(logging)
    let lines = try String(contentsOf: folder.file("keys"), encoding: .utf8).split(separator: "\n")
    #expect(lines.count { $0.hasPrefix("CLIENT_TRAFFIC_SECRET_0 ") } == 1)
    let permissions = try FileManager.default.attributesOfItem(atPath: folder.path("keys"))[.posixPermissions] as? Int
    #expect(permissions == 0o600)
    trust.dangerousKeyLogFile = folder.url.path
    let failing = session(trust)
    defer { failing.invalidateAndCancel() }
    let error = await #expect(throws: URLError.self) { try await load(failing) }
    #expect(error?.code == .secureConnectionFailed && error.map { "\($0)".contains(folder.url.path) } == true)
    #expect(server.connectionsAccepted == 2)
  }

  /// The runner of a background session reads the files itself.
  @Test func filesTravelByTheirPaths() throws {
    let folder = try TemporaryDirectory()
    let made = try certificate("a")
    try Data(made.chainPEM.utf8).write(to: folder.file("a.crt"))
    try Data(made.privateKeyPEM.utf8).write(to: folder.file("a.key"))
    let configuration = URLSessionConfiguration.background(withIdentifier: "a")
    configuration.tlsTrustSettings.identity = try Larkspur.ClientIdentity(
      certificateFile: folder.path("a.crt"), keyFile: folder.path("a.key"), password: "word")
    configuration.tlsTrustSettings.rootFiles = ["relative.pem"]
    let encoded = try SessionSettings.encoded(configuration)
    #expect(encoded.leftBehind == [] && !String(decoding: encoded.bytes, as: UTF8.self).contains("PRIVATE"))
    let read = try SessionSettings.configuration(from: encoded.bytes, identifier: "a").tlsTrustSettings
    #expect(read.identity?.inner.files == configuration.tlsTrustSettings.identity?.inner.files)
    #expect(read.rootFiles == [FileManager.default.currentDirectoryPath + "/relative.pem"])
    try FileManager.default.removeItem(at: folder.file("a.key"))
    #expect(throws: TransferValueError.self) {
      try SessionSettings.configuration(from: encoded.bytes, identifier: "a")
    }
  }
}
