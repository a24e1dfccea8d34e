import LarkspurTLS
import LarkspurTestServer
import TestKit
import Testing

/// Successful visits to real servers over TLS.
@Suite(.serialized, .ownThread) struct TLSSuccessTests {
  static let real: [TLSServerKind] = [.nginx, .openssl]
  static let versions: [TLSPlan.Version] = [.tls1_2, .tls1_3]
  static let hello = Array("Hello, world!".utf8)

  @Test(arguments: real, versions) func aFile(kind: TLSServerKind, version: TLSPlan.Version) async throws {
    let plan = try TLSPlan(.get(), version)
    let visit = try await plan.play(on: kind)
    #expect(visit.outcome == .answered(200))
    #expect(visit.replies.first?.body == Self.hello)
    let handshake = try #require(visit.handshake)
    #expect(handshake.version.rawValue == version.rawValue)
    #expect(!handshake.isResumed)
    #expect(handshake.trust.result.isTrusted)
    #expect(handshake.trust.sent.map(\.der) == plan.chain)
    #expect(handshake.trust.verified.map(\.der) == plan.chain + [plan.authorities.root.rootCertificateDER])
    #expect(
      handshake.cipher
        == (version == .tls1_3 ? "TLS_AES_256_GCM_SHA384" : "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"))
  }

  /// Several requests over one connection.
  @Test(arguments: versions) func keptAlive(version: TLSPlan.Version) async throws {
    let plan = try TLSPlan(.get(), version)
    let server = try NginxServer(plan)
    let visit = try await TLSClient(plan).visit(server, as: plan.host, ["/small", "/nothing", "/small", "/name"])
    #expect(visit.replies.map(\.status) == [200, 404, 200, 200])
    #expect(visit.replies[2].body == Self.hello)
    #expect(visit.replies[3].body == Array(plan.host.utf8))
    #expect(visit.isIdle)
  }

  /// A server that does not know the name sends a warning (RFC 6066 3), and the visit succeeds.
  @Test(arguments: versions) func aWarningInTheHandshake(version: TLSPlan.Version) async throws {
    var plan = try TLSPlan(.get(), version)
    plan.opensslArguments = ["-servername", "b.test", "-cert2", "leaf.pem", "-key2", "key.pem"]
    #expect(try await plan.play(on: .openssl).outcome == .answered(200))
    plan.configuration.roots = .only(try plan.authorities.certificates(TestCA().rootCertificateDER))
    #expect(try await plan.play(on: .openssl).outcome == .fails(.untrustedRoot))
  }

  @Test(arguments: real, versions) func resumed(kind: TLSServerKind, version: TLSPlan.Version) async throws {
    let plan = try TLSPlan(.get(), version)
    let server = try kind.start(plan)
    let client = try TLSClient(plan)
    var handshakes: [Handshake] = []
    for _ in 0..<4 {
      let visit = try await client.visit(server, as: plan.host)
      #expect(visit.outcome == .answered(200))
      #expect(visit.replies.first?.body == Self.hello)
      handshakes.append(try #require(visit.handshake))
    }
    #expect(handshakes.map(\.isResumed) == [false, true, true, true])
    // The certificates are those of the first handshake.
    #expect(handshakes.allSatisfy { $0.trust.sent.map(\.der) == plan.chain && $0.trust.result.isTrusted })
    client.context.forgetSessions()
    let visit = try await client.visit(server, as: plan.host)
    #expect(visit.isResumed == false)
  }

  @Test(arguments: real, versions) func resumptionDeclined(kind: TLSServerKind, version: TLSPlan.Version) async throws {
    var plan = try TLSPlan(.get(), version)
    plan.configuration.resumesSessions = false
    let server = try kind.start(plan)
    let client = try TLSClient(plan)
    for _ in 0..<2 { #expect(try await client.visit(server, as: plan.host).isResumed == false) }
  }

  /// A restarted server that cannot read its own old tickets makes a full handshake, and the request succeeds.
  @Test(arguments: real, versions) func resumptionFails(kind: TLSServerKind, version: TLSPlan.Version) async throws {
    let plan = try TLSPlan(.get(), version)
    let client = try TLSClient(plan)
    var port: UInt16?
    for resumed in [[false, true], [false, true]] {
      let server = try kind.start(plan, port: port)
      port = server.tcpPort
      for isResumed in resumed {
        let visit = try await client.visit(server, as: plan.host)
        #expect(visit.outcome == .answered(200))
        #expect(visit.isResumed == isResumed)
      }
    }
  }

  /// A restarted nginx with its old ticket keys resumes the session.
  @Test(arguments: versions) func resumptionOutlivesTheServer(version: TLSPlan.Version) async throws {
    var plan = try TLSPlan(.get(), version)
    let keys = try TLSFiles(plan)
    try keys.write("tickets", String(repeating: "0123456789", count: 8))
    plan.nginxLines = "ssl_session_ticket_key \(keys.path("tickets"));"
    let client = try TLSClient(plan)
    var port: UInt16?
    for isResumed in [false, true] {
      let server = try NginxServer(plan, port: port)
      port = server.tcpPort
      let visit = try await client.visit(server, as: plan.host)
      #expect(visit.outcome == .answered(200))
      #expect(visit.isResumed == isResumed)
    }
    // With another certificate nginx resumes no old session, whatever its keys are.
    plan.present(try plan.authorities.leaf())
    let server = try NginxServer(plan, port: port)
    let visit = try await client.visit(server, as: plan.host)
    #expect(visit.outcome == .answered(200))
    #expect(visit.isResumed == false)
    #expect(visit.handshake?.trust.sent.first?.der == plan.chain[0])
  }
}
