import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Synchronization
import Testing

/// Which servers are trusted, when the caller is asked, and how the loop continues meanwhile.
@Suite struct TrustTests {
  static func server(for request: TestCertificate.Request, by ca: TestCA) throws -> TestServer {
    try TestServer(tls: .init(certificate: try ca.issue(request)))
  }

  private func problem(
    host: String = "localhost", _ change: (inout TestCertificate.Request) -> Void
  ) async throws -> TLSError.Problem? {
    let ca = try TestCA()
    var request = TestCertificate.Request()
    change(&request)
    let server = try Self.server(for: request, by: ca)
    let outcome = try await SecureClient(trusting: ca).get(from: server, host: host)
    #expect((outcome.error == nil) == (outcome.status == 200))
    #expect(server.requestsReceived == (outcome.error == nil ? 1 : 0))
    if outcome.problem != nil { #expect(outcome.reason != nil) }
    return outcome.problem
  }

  // MARK: - Defects of other clients

  /// The host name is checked by default (AFNetworking before 2.5.3 did not do so).
  /// CVE-2015-3996: a valid chain for another host is not enough.
  @Test func theNameIsChecked() async throws {
    #expect(
      try await problem(host: "localhost") { $0 = .init(names: ["other.example"], ipAddresses: []) } == .wrongHost)
    #expect(try await problem(host: "127.0.0.1") { $0 = .init(names: ["localhost"], ipAddresses: []) } == .wrongHost)
  }

  /// The obsolete rule of RFC 6125 6.4.4 does not apply: a common name does not match a host.
  @Test func theCommonNameDoesNotCount() async throws {
    #expect(
      try await problem {
        $0 = .init(names: [], ipAddresses: [])
        $0.commonName = "localhost"
      } == .wrongHost)
  }

  /// CVE-2009-2408: a NUL in a name does not end the name for one side only.
  /// CVE-2009-2417: curl had the equivalent defect.
  @Test func aNULInAName() async throws {
    #expect(
      try await problem {
        $0.alternativeNames = [.dns(Array("localhost\0.evil.example".utf8))]
      } == .wrongHost)
  }

  @Test(arguments: [
    ("a.test.example", "*.test.example", true), ("a.b.test.example", "*.test.example", false),
    ("test.example", "*.test.example", false), ("foo.test.example", "f*.test.example", false),
    ("xn--bcher-kva.example", "xn--bcher-kva.example", true), ("XN--BCHER-KVA.example", "xn--bcher-kva.example", true),
    // CVE-2023-28321: a wildcard is never a part of a label, least of all of an A-label.
    ("a.xn--bcher-kva.example", "*.xn--bcher-kva.example", true), ("xn--a.example", "xn--*.example", false),
    ("localhost.", "localhost", true), ("localhost", "*", false), ("example.com", "*.com", false),
    ("a.example", "*.*", false),
    // CVE-2014-0139: a wildcard never matches an address.
    ("127.0.0.1", "*.0.0.1", false),
    // CVE-2021-0341: the Kelvin sign is not a `k`, and letters of other scripts do not match ASCII letters.
    ("kelvin.example", "\u{212a}elvin.example", false), ("bucher.example", "b\u{fc}cher.example", false),
  ])
  func names(host: String, name: String, isGood: Bool) async throws {
    let problem = try await problem(host: host) { $0 = .init(names: [name], ipAddresses: []) }
    #expect(problem == (isGood ? nil : .wrongHost))
  }

  @Test func anAddressAndNoName() async throws {
    #expect(try await problem(host: "127.0.0.1") { $0 = .init(names: []) } == nil)
    #expect(try await problem(host: "localhost") { $0 = .init(names: []) } == .wrongHost)
  }

  /// An address among the DNS names does not match the address.
  @Test func anAddressAmongTheNames() async throws {
    #expect(
      try await problem(host: "127.0.0.1") { $0 = .init(names: ["127.0.0.1"], ipAddresses: []) } == .wrongHost)
  }

  @Test func dates() async throws {
    #expect(try await problem { $0.notAfter = -1800 } == .expired)
    #expect(try await problem { $0.notBefore = 3600 } == .notYetValid)
  }

  @Test func purposes() async throws {
    #expect(try await problem { $0.extendedKeyUsage = [.clientAuth] } == .certificateInvalid)
    let broken = try await problem { $0.hasBrokenSignature = true }
    #expect(broken == .badSignature)
    #expect(try await problem { $0.key = .rsa(1024) } == .weakKey)
  }

  /// A trusted intermediate is not a root: without its own issuer the chain is incomplete.
  @Test func partOfAChainIsNoRoot() async throws {
    let intermediate = try TestCA().intermediate()
    let server = try Self.server(for: .init(), by: intermediate)
    #expect(try await SecureClient(trusting: intermediate).get(from: server).problem == .untrustedRoot)
  }

  @Test func authorities() async throws {
    let root = try TestCA()
    func problem(_ ca: TestCA) async throws -> TLSError.Problem? {
      try await SecureClient(trusting: root).get(from: try Self.server(for: .init(), by: ca)).problem
    }
    #expect(try await problem(root.intermediate()) == nil)
    #expect(try await problem(root.intermediate(pathLength: 0).intermediate()) == .certificateInvalid)
    #expect(try await problem(TestCA(root.issue())) != nil)
    #expect(try await problem(root.intermediate { $0.keyUsage = [.crlSign] }) != nil)
    #expect(try await problem(root.intermediate { $0.notAfter = -60 }) == .expired)
    #expect(
      try await problem(root.intermediate { $0.nameConstraints = .init(permitted: [.dns("other.example")]) })
        == .certificateInvalid)
  }

  // MARK: - Self-made certificates with the defaults of OpenSSL's tool

  private static var homeMade: TestCertificate.Request {
    var request = TestCertificate.Request.authority("home-made")
    request.keyUsage = nil
    return request
  }

  private func problem(
    trusting root: TestCertificate.Request, below intermediate: ((inout TestCertificate.Request) -> Void)? = nil,
    leaf change: (inout TestCertificate.Request) -> Void = { _ in }
  ) async throws -> TLSError.Problem? {
    let root = try TestCA(root)
    let issuer = if let intermediate { try root.intermediate(.ecP256, intermediate) } else { root }
    var request = TestCertificate.Request()
    change(&request)
    return try await SecureClient(trusting: root).get(from: try Self.server(for: request, by: issuer)).problem
  }

  /// A root needs no key identifiers, and its basic constraints need not be critical, because path validation does not
  /// look at these (RFC 5280 6.1.1). The constraints themselves are required.
  @Test func homeMadeRoots() async throws {
    var root = Self.homeMade
    #expect(try await problem(trusting: root) == nil)
    root.subjectKeyIdentifier = .absent
    root.authorityKeyIdentifier = .absent
    root.basicConstraints?.isCritical = false
    #expect(try await problem(trusting: root) == nil)
    root.basicConstraints = nil
    #expect(try await problem(trusting: root) == .certificateInvalid)
  }

  /// The issuer is found by its name, and verified by its signature.
  @Test func homeMadeLeaves() async throws {
    let found = try await problem(
      trusting: Self.homeMade,
      leaf: {
        ($0.subjectKeyIdentifier, $0.authorityKeyIdentifier) = (.absent, .absent)
        ($0.keyUsage, $0.extendedKeyUsage, $0.basicConstraints) = (nil, nil, nil)
      })
    #expect(found == nil)
  }

  /// Intermediates need the extensions that roots may lack.
  @Test func homeMadeIntermediates() async throws {
    let root = Self.homeMade
    #expect(try await problem(trusting: root, below: { $0.subjectKeyIdentifier = .absent }) == nil)
    #expect(try await problem(trusting: root, below: { $0.keyUsage = nil }) == .certificateInvalid)
    #expect(try await problem(trusting: root, below: { $0.basicConstraints = nil }) == .certificateInvalid)
  }

  /// A server's own certificate can be its root.
  @Test func homeMadeServers() async throws {
    var request = Self.homeMade
    request.alternativeNames = [.dns("localhost")]
    let own = try TestCA.selfSigned(request)
    let server = try TestServer(tls: .init(certificate: own))
    #expect(try await SecureClient(trusting: TestCA(own)).get(from: server).problem == nil)
  }

  @Test func strangers() async throws {
    let (ca, other) = (try TestCA(), try TestCA())
    let server = try Self.server(for: .init(), by: other)
    #expect(try await SecureClient(trusting: ca).get(from: server).problem == .untrustedRoot)
    let alone = try TestServer(tls: .init(certificate: try TestCA.selfSigned()))
    #expect(try await SecureClient(trusting: ca).get(from: alone).problem == .selfSigned)
    #expect(try await server.waitForHandshakes(1).first?.alertsReceived.map(\.number) == [48])
  }

  /// A decision for one configuration does not apply to another: neither the trust nor the session.
  @Test func configurationsAreApart() async throws {
    let ca = try TestCA()
    let server = try Self.server(for: .init(), by: try TestCA())
    let careless = try SecureClient(trusting: ca) { $0.dangerouslyAllowsAnyCertificate = true }
    #expect(await careless.get(from: server).error == nil)
    #expect(await careless.get(from: server).error == nil)
    #expect(try await SecureClient(trusting: ca).get(from: server).problem == .untrustedRoot)
  }

  // MARK: - Pins

  @Test func pins() async throws {
    let root = try TestCA()
    let ca = try root.intermediate()
    let leaf = try ca.issue()
    let server = try TestServer(tls: .init(certificate: leaf))
    let stranger = try Certificate.one(try TestCA().certificate)

    func problem(_ pins: Set<Pin>, leafOnly: Bool = false, reportsOnly: Bool = false) async throws -> TLSError.Problem?
    {
      let client = try SecureClient(trusting: root) {
        let host = PinPolicy.Host("localhost", pins: pins, looksAtLeafOnly: leafOnly, reportsOnly: reportsOnly)
        $0.pins = PinPolicy(host.map { [$0] } ?? [])
      }
      return await client.get(from: server).problem
    }

    for made in [leaf, ca.certificate, root.certificate] {
      let certificate = try Certificate.one(made)
      #expect(try await problem([certificate.pin]) == nil)
      #expect(try await problem([.certificate(certificate)]) == nil)
      #expect(try await problem([.publicKey(certificate.publicKeyInfo), stranger.pin]) == nil)
    }
    #expect(try await problem([try Certificate.one(leaf).pin], leafOnly: true) == nil)
    let mismatch = try await problem([try Certificate.one(root.certificate).pin], leafOnly: true)
    guard case .pinMismatch(let details)? = mismatch else {
      Issue.record("no mismatch but \(String(describing: mismatch))")
      return
    }
    #expect(details.seen == (try [leaf, ca.certificate, root.certificate].map { try Certificate.one($0).pin }))
    #expect(try await problem([stranger.pin], reportsOnly: true) == nil)
  }

  /// Pins are compared with the verified chain only: other certificates that a server sends prove nothing (a defect of
  /// several pinning libraries).
  /// CVE-2016-2402: pins were compared with the certificates that the server had sent.
  @Test func pinsOfTheVerifiedChainOnly() async throws {
    let (root, other) = (try TestCA(), try TestCA())
    let leaf = try root.issue()
    let server = try TestServer(
      tls: .init(
        chainDER: leaf.chainDER + [other.certificate.certificateDER], privateKeyDER: leaf.privateKeyDER))
    let pin = try Certificate.one(other.certificate).pin
    let seen = Mutex<[PinMismatch]>([])
    let client = try SecureClient(trusting: root) {
      $0.pins = PinPolicy(PinPolicy.Host("localhost", pins: [pin]).map { [$0] } ?? [])
    } pinMismatched: { mismatch in
      seen.withLock { $0.append(mismatch) }
    }
    let problem = await client.get(from: server).problem
    #expect(seen.withLock { $0.map(TLSError.Problem.pinMismatch) } == [problem])
  }

  /// Matching pins do not replace the verification of the chain.
  @Test func pinsDoNotReplaceVerification() async throws {
    let (root, other) = (try TestCA(), try TestCA())
    let leaf = try other.issue()
    let server = try TestServer(tls: .init(certificate: leaf))
    let pin = try Certificate.one(leaf).pin
    func client(_ change: (inout TLSConfiguration) -> Void) throws -> SecureClient {
      try SecureClient(trusting: root) {
        $0.pins = PinPolicy(PinPolicy.Host("localhost", pins: [pin]).map { [$0] } ?? [])
        change(&$0)
      }
    }
    #expect(try await client { _ in }.get(from: server).problem == .untrustedRoot)
    // An unverified chain matches no pins.
    let careless = try await client { $0.dangerouslyAllowsAnyCertificate = true }.get(from: server).problem
    let isMismatch = if case .pinMismatch? = careless { true } else { false }
    #expect(isMismatch)
  }

  // MARK: - The caller's decision

  @Test(arguments: [TrustDecision.verified, .trusted(), .refused])
  func asking(decision: TrustDecision) async throws {
    let ca = try TestCA()
    let good = try Self.server(for: .init(), by: ca)
    let bad = try Self.server(for: .init(), by: try TestCA())
    let client = try SecureClient(trusting: ca)
    let asked = Mutex<[Bool]>([])
    client.security.decideTrust = { trust in
      asked.withLock { $0.append(trust.result.isTrusted) }
      return decision
    }
    #expect(await client.get(from: good).problem == (decision == .refused ? .refusedByCaller : nil))
    let problem: TLSError.Problem? =
      switch decision {
      case .verified: .untrustedRoot
      case .trusted: nil
      case .refused: .refusedByCaller
      }
    #expect(await client.get(from: bad).problem == problem)
    #expect(asked.withLock { $0 } == [true, false])
  }

  /// The caller is asked again for a resumed session, with the certificates of its first handshake; an earlier override
  /// does not count.
  @Test func askingAgain() async throws {
    let ca = try TestCA()
    let good = try Self.server(for: .init(), by: ca)
    let bad = try Self.server(for: .init(), by: try TestCA())
    let client = try SecureClient(trusting: ca)
    let answers = Mutex<[TrustDecision]>([.verified, .verified, .refused])
    client.security.decideTrust = { _ in answers.withLock { $0.isEmpty ? .trusted() : $0.removeFirst() } }
    #expect(await client.get(from: good).handshake?.isResumed == false)
    let again = await client.get(from: good).handshake
    #expect(again?.isResumed == true)
    #expect(again?.trust.sent.isEmpty == false)
    #expect(await client.get(from: good).problem == .refusedByCaller)
    for _ in 0..<2 { #expect(await client.get(from: bad).handshake?.isResumed == false) }
  }

  /// While one handshake waits for the caller's answer, the loop serves others; the deadline and a cancellation end the
  /// wait.
  @Test func theLoopGoesOn() async throws {
    let ca = try TestCA()
    let server = try Self.server(for: .init(), by: ca)
    let client = try SecureClient(trusting: ca)
    let plain = try SecureClient(trusting: ca)
    let asked = TestServer.Signal()
    let answer = TestServer.Signal()
    client.security.decideTrust = { _ in
      asked.fire()
      try? await answer.wait()
      return .verified
    }
    async let slow = client.get(from: server)
    try await asked.wait()
    #expect(await plain.get(from: server).status == 200)
    answer.fire()
    #expect(await slow.status == 200)
  }

  @Test func noAnswerInTime() async throws {
    let ca = try TestCA()
    let server = try Self.server(for: .init(), by: ca)
    let client = try SecureClient(trusting: ca)
    client.security.decideTrust = { _ in
      // The signal is never fired: only the cancellation ends the wait.
      try? await TestServer.Signal().wait()
      return .trusted()
    }
    #expect(await client.get(from: server, deadline: .seconds(2)).problem == .handshakeTimedOut)
    let task = Task { await client.get(from: server) }
    try await server.waitForConnections(2)
    task.cancel()
    #expect(await task.value.error == .cancelled)
    #expect(server.requestsReceived == 0)
  }

  // MARK: - Evaluating

  @Test func evaluatingAgain() async throws {
    let (ca, other) = (try TestCA(), try TestCA())
    let server = try Self.server(for: .init(names: ["localhost", "b.example"]), by: other)
    let client = try SecureClient(trusting: ca)
    client.security.decideTrust = { _ in .trusted() }
    let trust = try #require(await client.get(from: server).handshake?.trust)
    #expect(!trust.result.isTrusted && trust.result.code != 0 && !trust.result.message.isEmpty)
    let anchors = [try Certificate.one(other.certificate)]
    let now = client.loop.kernel.date()
    func problem(_ host: String?, date: Int64, anchors: [Certificate]?) throws -> TLSError.Problem? {
      try trust.evaluate(host: host.flatMap { ServerName(host: $0) }, anchors: anchors, date: date).result.error?
        .problem
    }
    #expect(try problem("localhost", date: now, anchors: nil) == .untrustedRoot)
    #expect(try problem("localhost", date: now, anchors: anchors) == nil)
    #expect(try problem("b.example", date: now, anchors: anchors) == nil)
    #expect(try problem("c.example", date: now, anchors: anchors) == .wrongHost)
    #expect(try problem(nil, date: now, anchors: anchors) == nil)
    #expect(try problem("localhost", date: now + 400 * 86400, anchors: anchors) == .expired)
    #expect(try problem("localhost", date: now - 400 * 86400, anchors: anchors) == .notYetValid)
  }
}
