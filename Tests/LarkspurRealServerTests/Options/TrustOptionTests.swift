import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// The options of trust and identity, with nginx and `openssl s_server`.
@Suite(.serialized, .ownThread, .timeLimit(.minutes(1))) struct TrustOptionTests {
  private let authorities: TLSAuthorities
  private let folder: TemporaryDirectory

  init() throws {
    authorities = try TLSAuthorities.get()
    folder = try TemporaryDirectory()
  }

  /// Returns a session that finds `a.test` on this machine.
  private func configuration(_ trust: TLSTrustSettings) -> URLSessionConfiguration {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = [:]
    configuration.hostOverrides.set("a.test", to: .addresses(["127.0.0.1"]))
    configuration.tlsTrustSettings = trust
    return configuration
  }

  private func trustInRoot() throws -> TLSTrustSettings {
    var trust = TLSTrustSettings()
    trust.roots = .only([try #require(TLSCertificate(Data(authorities.root.rootCertificateDER)))])
    return trust
  }

  private func url(_ server: any TLSServer) throws -> URL {
    try #require(URL(string: "https://a.test:\(server.tcpPort)/small"))
  }

  /// Both ends write the same secrets.
  @Test(arguments: [TLSPlan.Version.tls1_2, .tls1_3]) func theKeyLog(version: TLSPlan.Version) async throws {
    var plan = try TLSPlan(authorities, version)
    plan.opensslArguments = ["-keylogfile", folder.path("server")]
    let server = try OpenSSLServer(plan)
    var trust = try trustInRoot()
    trust.dangerousKeyLogFile = folder.path("client")
    let status = try await URLSession.withSession(configuration: configuration(trust)) {
      try await $0.load(url(server)).status
    }
    #expect(status == 200)
    let (own, peers) = (try secrets("client"), try secrets("server"))
    #expect(own == peers && own.count == (version == .tls1_2 ? 1 : 5), "\(own.union(peers))")
  }

  private func secrets(_ name: String) throws -> Set<Substring> {
    Set(try String(contentsOf: folder.file(name), encoding: .utf8).split(separator: "\n").filter { !$0.hasPrefix("#") })
  }

  /// The identity is replaced while requests run, each fourth of which needs a new connection. None of them fails, and the
  /// server gets to see each identity.
  @Test func anIdentityThatIsReplacedUnderLoad() async throws {
    var plan = try TLSPlan(authorities, .tls1_3)
    plan.clients = .required
    plan.nginxLines = "keepalive_requests 4; add_header X-Client $ssl_client_s_dn always;"
    let server = try NginxServer(plan)
    func write(_ name: String) throws {
      var request = TestCertificate.Request(names: [], ipAddresses: [])
      request.commonName = name
      let made = try authorities.clients.issue(request)
      try Data((made.chainPEM + made.privateKeyPEM).utf8).write(to: folder.file("identity.pem"), options: .atomic)
    }
    try write("first")
    var trust = try trustInRoot()
    trust.identity = try ClientIdentity(certificateFile: folder.path("identity.pem"))
    let rotation = Rotation()
    let url = try url(server)
    try await URLSession.withSession(configuration: configuration(trust)) { session in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<3 {
          group.addTask {
            while !rotation.isOver.load(ordering: .relaxed) {
              let (status, _, response) = try await session.load(url)
              #expect(status == 200)
              rotation.seen.withLock { _ = $0.insert(response.value(forHTTPHeaderField: "X-Client") ?? "") }
            }
          }
        }
        group.addTask {
          defer { rotation.isOver.store(true, ordering: .relaxed) }
          for name in ["first", "second", "third"] {
            if name != "first" { try write(name) }
            await Wait.until("the server sees the \(name) identity") {
              rotation.seen.withLock { $0.contains("CN=\(name)") }
            }
          }
        }
        try await group.waitForAll()
      }
    }
    #expect(rotation.seen.withLock { $0 } == ["CN=first", "CN=second", "CN=third"])
  }

  @Test func rootsThatAreReplaced() async throws {
    let server = try NginxServer(try TLSPlan(authorities, .tls1_3))
    var trust = TLSTrustSettings()
    trust.roots = .only([])
    trust.rootFiles = [folder.path("roots.pem")]
    func write(_ authority: TestCA) throws {
      try Data(authority.rootCertificatePEM.utf8).write(to: folder.file("roots.pem"), options: .atomic)
    }
    try write(authorities.clients)
    try await URLSession.withSession(configuration: configuration(trust)) { session in
      let error = await #expect(throws: URLError.self) { try await session.load(url(server)) }
      #expect(error?.code == .serverCertificateUntrusted)
      try write(authorities.root)
      #expect(try await session.load(url(server)).status == 200)
    }
  }
}

/// The names of the certificates that a server has seen, and whether the test has written the last one.
private final class Rotation: Sendable {
  let seen = Mutex<Set<String>>([])
  let isOver = Atomic(false)
}
