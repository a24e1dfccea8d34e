import LarkspurTLS
import LarkspurTestServer
import Testing

/// The properties that a root needs and those that it does not: RFC 5280 6.1.1 takes its name and its key.
@Suite struct AnchorTests {
  /// Verifies a leaf directly below a changed root, and one below an intermediate.
  ///
  /// - Returns: The two problems; `nil` for a trusted chain.
  private func problems(_ change: (inout TestCertificate.Request) -> Void) throws -> [TLSError.Problem?] {
    var request = TestCertificate.Request.authority("An anchor")
    change(&request)
    let root = try TestCA(request)
    return try [root, root.intermediate()].map { issuer in
      try issuer.issue(.init(names: ["a.example"])).problem(for: "a.example", roots: [root.rootCertificateDER])
    }
  }

  @Test func whatRootsNeedNotHave() throws {
    let changes: [(String, (inout TestCertificate.Request) -> Void)] = [
      ("version 1", { $0.version = 1 }),
      ("no basic constraints", { $0.basicConstraints = nil }),
      (
        "no basic constraints, and nothing but certificates",
        { ($0.basicConstraints, $0.keyUsage) = (nil, [.keyCertSign]) }
      ),
      ("no key usage", { $0.keyUsage = nil }),
      ("basic constraints that are not critical", { $0.basicConstraints?.isCritical = false }),
      ("no identifiers", { ($0.subjectKeyIdentifier, $0.authorityKeyIdentifier) = (.absent, .absent) }),
      ("a name that is empty but for spaces", { $0.commonName = " " }),
      ("a purpose that fits", { $0.extendedKeyUsage = [.serverAuth] }),
      ("a signature that is wrong", { $0.hasBrokenSignature = true }),
      ("SHA-1", { $0.digest = .sha1 }),
    ]
    for (name, change) in changes { #expect(try problems(change) == [nil, nil], "\(name)") }
  }

  /// A root's own restrictions count against it.
  @Test func whatRootsMustNotHave() throws {
    let changes: [(String, TLSError.Problem, (inout TestCertificate.Request) -> Void)] = [
      ("no authority", .certificateInvalid, { $0.basicConstraints = .init() }),
      // A certificate of version 3 has to declare that it is an authority, because a server's own certificate may lack
      // both.
      (
        "neither basic constraints nor key usage", .certificateInvalid,
        { ($0.basicConstraints, $0.keyUsage) = (nil, nil) }
      ),
      ("another key usage", .certificateInvalid, { $0.keyUsage = [.crlSign] }),
      (
        "another key usage and no basic constraints", .certificateInvalid,
        { ($0.basicConstraints, $0.keyUsage) = (nil, [.crlSign]) }
      ),
      ("another purpose", .certificateInvalid, { $0.extendedKeyUsage = [.clientAuth] }),
      (
        "another purpose and no basic constraints", .certificateInvalid,
        { ($0.basicConstraints, $0.keyUsage, $0.extendedKeyUsage) = (nil, nil, [.clientAuth]) }
      ),
      ("other names", .certificateInvalid, { $0.nameConstraints = .init(permitted: [.dns("b.example")]) }),
      ("its time is up", .expired, { $0.notAfter = -60 }),
      ("a weak key", .weakKey, { $0.key = .rsa(1024) }),
      (
        "a critical extension that is unknown", .certificateInvalid,
        { $0.otherExtensions = [.init(object: "1.3.6.1.4.1.99999.1", isCritical: true, value: [5, 0])] }
      ),
    ]
    for (name, problem, change) in changes { #expect(try problems(change) == [problem, problem], "\(name)") }
    #expect(try problems { $0.basicConstraints?.pathLength = 0 } == [nil, .certificateInvalid])
  }

  /// Presented intermediates have to follow the rules that roots may break.
  @Test func intermediatesAreNotForgiven() throws {
    let root = try TestCA()
    let changes: [(inout TestCertificate.Request) -> Void] = [
      { $0.version = 1 }, { $0.basicConstraints = nil }, { $0.keyUsage = nil },
      { ($0.basicConstraints, $0.keyUsage) = (nil, [.keyCertSign]) }, { $0.basicConstraints?.isCritical = false },
    ]
    for change in changes {
      let leaf = try root.intermediate(.ecP256, change).issue(.init(names: ["a.example"]))
      #expect(try leaf.problem(for: "a.example", roots: [root.rootCertificateDER]) == .certificateInvalid)
      // A root that the server sends along is still one of the trusted roots.
      let issuers = try root.intermediate(.ecP256, change)
      let below = try issuers.intermediate(name: "Below").issue(.init(names: ["a.example"]))
      #expect(try below.problem(for: "a.example", roots: [root.rootCertificateDER]) == .certificateInvalid)
    }
  }

  /// Anchors for one evaluation may be any certificates of any form, and the certificates above them do not matter.
  @Test func namedAnchors() throws {
    let root = try TestCA()
    let changes: [(inout TestCertificate.Request) -> Void] = [
      { _ in }, { $0.version = 1 }, { ($0.basicConstraints, $0.keyUsage) = (nil, [.keyCertSign]) },
      { $0.nameConstraints = .init(permitted: [.dns("example")]) }, { $0.extendedKeyUsage = [.serverAuth] },
    ]
    for change in changes {
      let middle = try root.intermediate(.ecP256, change)
      let leaf = try middle.issue(.init(names: ["a.example"]))
      let chain = try leaf.chainDER.map { try #require(Certificate.read($0)?.first) }
      let server = try #require(ServerName(host: "a.example"))
      let date = chain[0].notBefore + 3600
      let unknown = try Trust.verifying(chain, for: server, roots: .only([]), date: date)
      #expect(!unknown.result.isTrusted)
      for anchor in chain {
        let trust = try unknown.evaluate(host: server, anchors: [anchor], date: date)
        #expect(trust.result.isTrusted && trust.verified.last == anchor)
        // The leaf alone, without its issuers, is trusted as well.
        let alone = try Trust.verifying([chain[0]], for: server, roots: .only([]), date: date)
        #expect(try alone.evaluate(host: server, anchors: [anchor], date: date).result.isTrusted)
      }
      // An anchor is trusted only for its own names.
      let other = try #require(ServerName(host: "b.example"))
      #expect(try !unknown.evaluate(host: other, anchors: [chain[1]], date: date).result.isTrusted)
    }
  }

  /// Nothing above an anchored leaf is checked, not even an expired issuer.
  @Test func anExpiredIssuerAboveALeafThatIsNamed() throws {
    let middle = try TestCA().intermediate { $0.notAfter = -60 }
    let leaf = try middle.issue(.init(names: ["a.example"]))
    let chain = try leaf.chainDER.map { try #require(Certificate.read($0)?.first) }
    let server = try #require(ServerName(host: "a.example"))
    let date = chain[0].notBefore + 3600
    let trust = try Trust.verifying(chain, for: server, roots: .only([]), date: date)
    #expect(try trust.evaluate(host: server, anchors: [chain[0]], date: date).result.isTrusted)
    #expect(try !trust.evaluate(host: server, anchors: [chain[1]], date: date).result.isTrusted)
  }

  // MARK: - Sizes

  /// Returns the SubjectPublicKeyInfo of an RSA key (RFC 8017 A.1.1), without a private key, from the sizes of its
  /// modulus and exponent.
  private func rsa(_ modulusBits: Int, exponentBits: Int) -> [UInt8] {
    func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
      [tag, 0x83, UInt8(content.count >> 16), UInt8(content.count >> 8 & 0xff), UInt8(content.count & 0xff)] + content
    }
    func number(_ bits: Int) -> [UInt8] {
      element(2, [0] + [UInt8](repeating: 0xff, count: bits / 8))
    }
    // DER requires the shortest form of a length, but OpenSSL's reader accepts any.
    let algorithm: [UInt8] = [0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0]
    let key = element(0x30, number(modulusBits) + number(exponentBits))
    return element(0x30, algorithm + element(3, [0] + key))
  }

  @Test(
    arguments: [
      (2048, 64, nil), (8192, 64, nil), (8200, 64, .keyTooLarge), (16_384, 16, .keyTooLarge), (2048, 72, .keyTooLarge),
      (3072, 3064, .keyTooLarge),
    ] as [(Int, Int, TLSError.Problem?)])
  func keys(modulusBits: Int, exponentBits: Int, problem: TLSError.Problem?) throws {
    let root = try TestCA()
    let key = rsa(modulusBits, exponentBits: exponentBits)
    var request = TestCertificate.Request(names: ["a.example"])
    request.publicKeyDER = key
    let leaf = try root.issue(request)
    #expect(try leaf.problem(for: "a.example", roots: [root.rootCertificateDER]) == problem)
    // The issuer's signature is wrong, but a key that is too large fails before signatures are checked.
    let middle = try root.intermediate(.rsa(2048)) { $0.publicKeyDER = key }
    let below = try middle.issue(.init(names: ["a.example"]))
    #expect(
      try below.problem(for: "a.example", roots: [root.rootCertificateDER]) == problem ?? .badSignature)
  }

  @Test func theLengthOfChains() throws {
    let root = try TestCA()
    var issuer = root
    for number in 1...16 { issuer = try issuer.intermediate(name: "Number \(number)") }
    let roots = [root.rootCertificateDER]
    #expect(try issuer.issue(.init(names: ["a.example"])).problem(for: "a.example", roots: roots) == nil)
    issuer = try issuer.intermediate(name: "Number 17")
    #expect(try issuer.issue(.init(names: ["a.example"])).problem(for: "a.example", roots: roots) == .untrustedRoot)
  }
}
