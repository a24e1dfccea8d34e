import AFNetworking
import Foundation
import LarkspurTestServer
import Testing

/// Tests the decisions of `AFSecurityPolicy`.
@Suite struct SecurityPolicyTests {
  let chains: Chains

  init() throws { chains = try Chains() }

  static let pinningModes: [AFSSLPinningMode] = [.publicKey, .certificate]

  // MARK: - Without pins

  @Test func defaults() {
    for policy in [AFSecurityPolicy.default(), AFSecurityPolicy(), AFSecurityPolicy(pinningMode: .none)] {
      #expect(policy.sslPinningMode == .none && !policy.allowInvalidCertificates && policy.validatesDomainName)
      #expect(policy.pinnedCertificates?.isEmpty ?? true)
      #expect(policy.publicKeyPins.isEmpty)
    }
    #expect(AFSecurityPolicy.default() !== AFSecurityPolicy.default())
  }

  @Test func aGoodChain() throws {
    let policy = AFSecurityPolicy.default()
    let trust = try chains.trust
    #expect(policy.evaluateServerTrust(trust, forDomain: nil))
    #expect(policy.evaluateServerTrust(trust, forDomain: "a.example"))
    #expect(policy.evaluateServerTrust(trust, forDomain: "test.a.example"))
    #expect(!policy.evaluateServerTrust(trust, forDomain: "b.example"))
    #expect(!policy.evaluateServerTrust(trust, forDomain: "no host"))
    policy.validatesDomainName = false
    #expect(policy.evaluateServerTrust(trust, forDomain: "b.example"))
  }

  /// A self-signed certificate is refused without pins. AFNetworking 2.5.1 accepted it (no CVE, 2015-03).
  @Test func aSelfSignedCertificate() throws {
    let trust = try chains.trust(of: [try Chains.selfSigned(["a.example"]).certificateDER])
    #expect(!AFSecurityPolicy.default().evaluateServerTrust(trust, forDomain: nil))
    #expect(!AFSecurityPolicy.default().evaluateServerTrust(trust, forDomain: "a.example"))
  }

  /// An expired certificate is refused without pins. AFNetworking 2.5.1 accepted it (no CVE, 2015-03).
  @Test func anExpiredCertificate() throws {
    let expired = try chains.lower.issue(.init(names: ["a.example"]).expired)
    let trust = try chains.trust(of: expired.chainDER)
    #expect(!AFSecurityPolicy.default().evaluateServerTrust(trust, forDomain: "a.example"))
    for mode in Self.pinningModes {
      #expect(!chains.policy(mode, [expired.certificateDER]).evaluateServerTrust(trust, forDomain: nil))
    }
  }

  @Test func invalidCertificatesAreAllowed() throws {
    let policy = AFSecurityPolicy.default()
    policy.allowInvalidCertificates = true
    let trust = try chains.trust(of: [try Chains.selfSigned(["a.example"]).certificateDER])
    #expect(policy.evaluateServerTrust(trust, forDomain: nil))
    // The name of an unverified certificate proves nothing without a pin, so checking the name makes the policy refuse
    // the server.
    #expect(!policy.evaluateServerTrust(trust, forDomain: "a.example"))
    policy.pinnedCertificates = [try #require(trust.sentChain.first).der]
    #expect(!policy.evaluateServerTrust(trust, forDomain: "a.example"))
    policy.pinnedCertificates = []
    #expect(!policy.evaluateServerTrust(trust, forDomain: "a.example"))
    policy.validatesDomainName = false
    #expect(policy.evaluateServerTrust(trust, forDomain: "a.example"))
  }

  // MARK: - Pins

  @Test(arguments: pinningModes) func anyCertificateOfTheChain(_ mode: AFSSLPinningMode) throws {
    let trust = try chains.trust
    for pinned in chains.all.map({ [$0] }) + [
      chains.all, [chains.leaf.certificateDER, chains.otherLeaf.certificateDER],
    ] {
      let policy = chains.policy(mode, pinned)
      #expect(policy.evaluateServerTrust(trust, forDomain: nil))
      #expect(policy.evaluateServerTrust(trust, forDomain: "a.example"))
      #expect(!policy.evaluateServerTrust(trust, forDomain: "b.example"))
      policy.validatesDomainName = false
      #expect(policy.evaluateServerTrust(trust, forDomain: "b.example"))
    }
  }

  /// `validatesCertificateChain` of version 2.5 requires a pin for each certificate of the chain.
  @Test(arguments: pinningModes) func everyCertificateOfTheChain(_ mode: AFSSLPinningMode) throws {
    #expect(!chains.policy(mode, chains.all).validatesCertificateChain)
    for (pinned, isTrusted) in [
      (chains.all, true), (chains.leaf.chainDER, false), ([chains.leaf.certificateDER], false),
      (chains.all + [chains.otherLeaf.certificateDER], true),
    ] {
      let policy = chains.policy(mode, pinned)
      policy.validatesCertificateChain = true
      #expect(policy.evaluateServerTrust(try chains.trust, forDomain: "a.example") == isTrusted)
      #expect(!policy.evaluateServerTrust(try chains.trust, forDomain: "b.example"))
    }
    let own = try Chains.selfSigned(["a.example"]).certificateDER
    let policy = chains.policy(mode, [own])
    policy.allowInvalidCertificates = true
    policy.validatesCertificateChain = true
    #expect(policy.evaluateServerTrust(try chains.trust(of: [own]), forDomain: "a.example"))
  }

  @Test(arguments: pinningModes) func pinsOfOthers(_ mode: AFSSLPinningMode) throws {
    let strangers = [chains.leaf.certificateDER, try Chains.selfSigned(["b.example"]).certificateDER]
    #expect(!chains.policy(mode, [strangers[0]]).evaluateServerTrust(try chains.otherTrust, forDomain: nil))
    #expect(!chains.policy(mode, strangers).evaluateServerTrust(try chains.otherTrust, forDomain: nil))
  }

  @Test(arguments: pinningModes) func noPins(_ mode: AFSSLPinningMode) throws {
    let policy = chains.policy(mode, [])
    for invalid in [false, true] {
      policy.allowInvalidCertificates = invalid
      for pinned in [nil, [], [Data("no certificate".utf8)]] as [Set<Data>?] {
        policy.pinnedCertificates = pinned
        for domain in [nil, "a.example"] {
          #expect(!policy.evaluateServerTrust(try chains.trust, forDomain: domain))
        }
      }
    }
  }

  /// A renewed certificate has the same key, but other bytes.
  @Test func aRenewedCertificate() throws {
    var request = TestCertificate.Request(names: ["a.example"])
    request.privateKeyDER = chains.leaf.privateKeyDER
    let renewed = try chains.trust(of: try chains.lower.issue(request).chainDER)
    let (key, certificate) = (
      chains.policy(.publicKey, [chains.leaf.certificateDER]), chains.policy(.certificate, [chains.leaf.certificateDER])
    )
    #expect(key.evaluateServerTrust(renewed, forDomain: "a.example"))
    #expect(!certificate.evaluateServerTrust(renewed, forDomain: "a.example"))
  }

  @Test func hashesOfKeys() throws {
    let key = CertificatePin.publicKey(of: try Chains.certificate(chains.leaf.certificateDER))
    let issuer = CertificatePin.publicKey(of: try Chains.certificate(chains.upper.certificate.certificateDER))
    let backup = try #require(CertificatePin("sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="))
    for pins in [[key], [issuer, backup]] as [Set<CertificatePin>] {
      let policy = AFSecurityPolicy(publicKeyPins: pins)
      #expect(policy.sslPinningMode == .publicKey && policy.validatesDomainName)
      #expect(policy.evaluateServerTrust(try chains.trust, forDomain: "a.example"))
      #expect(!policy.evaluateServerTrust(try chains.trust, forDomain: "b.example"))
      #expect(!policy.evaluateServerTrust(try chains.otherTrust, forDomain: "b.example"))
    }
    let policy = AFSecurityPolicy(publicKeyPins: [backup])
    #expect(!policy.evaluateServerTrust(try chains.trust, forDomain: "a.example"))
    // Key hashes count together with certificates, and only in the public-key mode.
    policy.pinnedCertificates = [Data(chains.leaf.certificateDER)]
    #expect(policy.evaluateServerTrust(try chains.trust, forDomain: "a.example"))
    let certificates = chains.policy(.certificate, [chains.otherLeaf.certificateDER])
    certificates.publicKeyPins = [key]
    #expect(!certificates.evaluateServerTrust(try chains.trust, forDomain: "a.example"))
    certificates.publicKeyPins = [.certificate(try Chains.certificate(chains.leaf.certificateDER))]
    #expect(!certificates.evaluateServerTrust(try chains.trust, forDomain: "a.example"))
  }

  // MARK: - Settings of the trust

  /// A change of a trust after which `SecTrustEvaluateWithError` finds no good chain.
  struct Change: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let body: @Sendable (SecTrust, Chains) throws -> Void

    init(_ name: String, _ body: @escaping @Sendable (SecTrust, Chains) throws -> Void) {
      testDescription = name
      self.body = body
    }
  }

  static let refusals = [
    Change("other anchors") { trust, chains in
      SecTrustSetAnchorCertificates(trust, [try Chains.certificate(chains.otherRoot.rootCertificateDER)])
    },
    Change("anchors only, without anchors") { trust, _ in SecTrustSetAnchorCertificatesOnly(trust, true) },
    Change("an array of other objects") { trust, _ in SecTrustSetAnchorCertificates(trust, ["root"] as CFArray) },
    Change("a late date") { trust, _ in SecTrustSetVerifyDate(trust, .distantFuture) },
    Change("an early date") { trust, _ in SecTrustSetVerifyDate(trust, .distantPast) },
    Change("a policy for another host") { trust, _ in SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, "b.example"))
    },
    Change("a policy for no possible host") { trust, _ in
      SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, "no host"))
    },
    Change("no policies") { trust, _ in SecTrustSetPolicies(trust, []) },
    Change("a policy for revocation") { trust, _ in
      let policy = SecPolicyCreateRevocation(kSecRevocationRequirePositiveResponse)
      SecTrustSetPolicies(trust, try #require(policy))
    },
  ]

  /// Settings of the trust count in each mode, as for `SecTrustEvaluateWithError`.
  @Test(arguments: refusals) func settingsThatRefuse(_ change: Change) throws {
    for mode in [.none, .publicKey, .certificate] as [AFSSLPinningMode] {
      for domain in [nil, "a.example"] {
        let policy = chains.policy(mode, chains.all)
        let trust = try chains.trust
        #expect(policy.evaluateServerTrust(trust, forDomain: domain))
        try change.body(trust, chains)
        #expect(!policy.evaluateServerTrust(trust, forDomain: domain))
        #expect(!trust.isTrusted && !SecTrustEvaluateWithError(trust, nil))
        #expect(!policy.evaluateServerTrust(trust, forDomain: domain))
      }
    }
  }

  /// A private authority that is set as the anchor, and a date at which an expired certificate was valid.
  @Test(arguments: [AFSSLPinningMode.none, .publicKey, .certificate])
  func settingsThatTrust(_ mode: AFSSLPinningMode) throws {
    let own = try TestCA(name: "own")
    let leaf = try own.issue(.init(names: ["a.example"]).expired)
    let trust = try chains.trust(of: leaf.chainDER)
    let policy = chains.policy(mode, [leaf.certificateDER])
    #expect(!policy.evaluateServerTrust(trust, forDomain: "a.example"))
    SecTrustSetAnchorCertificates(trust, [try Chains.certificate(own.rootCertificateDER)])
    #expect(!policy.evaluateServerTrust(trust, forDomain: "a.example"))
    SecTrustSetVerifyDate(trust, Date(timeIntervalSinceNow: -5400))
    #expect(policy.evaluateServerTrust(trust, forDomain: "a.example"))
    #expect(!policy.evaluateServerTrust(trust, forDomain: "b.example"))
  }

  /// Exceptions make a chain good. Pins then match the server's own certificate only.
  @Test func exceptions() throws {
    let own = try TestCA(name: "own")
    let leaf = try own.issue(.init(names: ["a.example"]))
    let trust = try chains.trust(of: leaf.chainDER + [own.rootCertificateDER])
    #expect(SecTrustSetExceptions(trust, SecTrustCopyExceptions(trust)))
    #expect(AFSecurityPolicy.default().evaluateServerTrust(trust, forDomain: "a.example"))
    #expect(!AFSecurityPolicy.default().evaluateServerTrust(trust, forDomain: "b.example"))
    for mode in Self.pinningModes {
      #expect(chains.policy(mode, [leaf.certificateDER]).evaluateServerTrust(trust, forDomain: "a.example"))
      #expect(!chains.policy(mode, [chains.root.rootCertificateDER]).evaluateServerTrust(trust, forDomain: "a.example"))
    }
    #expect(!chains.policy(.publicKey, [own.rootCertificateDER]).evaluateServerTrust(trust, forDomain: "a.example"))
  }

  /// Pins stay anchors, whatever anchors the trust has.
  @Test func pinsAreAnchors() throws {
    let own = try TestCA(name: "own")
    let leaf = try own.issue(.init(names: ["a.example"]))
    let policy = chains.policy(.certificate, [own.rootCertificateDER])
    policy.allowInvalidCertificates = true
    let trust = try chains.trust(of: leaf.chainDER)
    SecTrustSetAnchorCertificatesOnly(trust, true)
    #expect(policy.evaluateServerTrust(trust, forDomain: "a.example"))
    SecTrustSetVerifyDate(trust, .distantFuture)
    #expect(!policy.evaluateServerTrust(trust, forDomain: "a.example"))
  }

  // MARK: - Invalid certificates with pins

  @Test func aPinnedSelfSignedCertificate() throws {
    let own = try Chains.selfSigned(["foobar.com"])
    let trust = try chains.trust(of: [own.certificateDER], host: "foobar.com")
    for mode in Self.pinningModes {
      let policy = chains.policy(mode, [own.certificateDER])
      #expect(!policy.evaluateServerTrust(trust, forDomain: "foobar.com"))
      policy.allowInvalidCertificates = true
      #expect(policy.evaluateServerTrust(trust, forDomain: "foobar.com"))
      #expect(policy.evaluateServerTrust(trust, forDomain: nil))
      // A pinned key suffices in the public-key mode; a pinned certificate must also be for the host.
      #expect(policy.evaluateServerTrust(trust, forDomain: "other.com") == (mode == .publicKey))
      policy.validatesDomainName = false
      #expect(policy.evaluateServerTrust(trust, forDomain: "other.com"))
    }
  }

  /// A certificate with the host in its common name only, as before alternative names existed.
  @Test func aPinnedCertificateWithACommonNameOnly() throws {
    let own = try Chains.selfSigned([]) { request in
      request.commonName = "foobar.com"
      request.alternativeNames = []
    }
    let trust = try chains.trust(of: [own.certificateDER], host: "foobar.com")
    let policy = chains.policy(.publicKey, [own.certificateDER])
    policy.allowInvalidCertificates = true
    #expect(policy.evaluateServerTrust(trust, forDomain: "foobar.com"))
  }

  /// CVE-2013-4545: the host name is checked even if the chain is not.
  @Test func aPinnedCertificateWithoutTheName() throws {
    let own = try Chains.selfSigned(["else.example"])
    let trust = try chains.trust(of: [own.certificateDER])
    let policy = chains.policy(.certificate, [own.certificateDER])
    policy.allowInvalidCertificates = true
    #expect(!policy.evaluateServerTrust(trust, forDomain: "foobar.com"))
  }

  /// With `allowInvalidCertificates`, a chain of an authority that the system does not know is trusted once the root,
  /// the intermediate or the server's certificate is pinned.
  @Test(arguments: pinningModes) func anOwnAuthority(_ mode: AFSSLPinningMode) throws {
    let own = try TestCA(name: "own").intermediate()
    let leaf = try own.issue(.init(names: ["a.example"]))
    let trust = try chains.trust(of: leaf.chainDER)
    for pinned in [leaf.certificateDER, own.certificate.certificateDER, leaf.rootDER] {
      let policy = chains.policy(mode, [pinned])
      #expect(!policy.evaluateServerTrust(trust, forDomain: "a.example"))
      policy.allowInvalidCertificates = true
      #expect(policy.evaluateServerTrust(trust, forDomain: "a.example"))
    }
  }

  @Test func expiredButPinned() throws {
    let expired = try chains.lower.issue(.init(names: ["a.example"]).expired)
    let trust = try chains.trust(of: expired.chainDER)
    for pinned in [expired.certificateDER, chains.lower.certificate.certificateDER, chains.root.rootCertificateDER] {
      let keys = chains.policy(.publicKey, [pinned])
      keys.allowInvalidCertificates = true
      #expect(keys.evaluateServerTrust(trust, forDomain: "a.example"))
      // A pinned certificate must not be expired, as in AFNetworking.
      let certificates = chains.policy(.certificate, [pinned])
      certificates.allowInvalidCertificates = true
      #expect(!certificates.evaluateServerTrust(trust, forDomain: "a.example"))
    }
  }

  // MARK: - Values

  @Test func copies() throws {
    let policy = chains.policy(.certificate, [chains.leaf.certificateDER, chains.root.rootCertificateDER])
    policy.allowInvalidCertificates = true
    policy.validatesDomainName = false
    policy.validatesCertificateChain = true
    let certificate = try Chains.certificate(chains.leaf.certificateDER)
    policy.publicKeyPins = [.publicKey(of: certificate), .certificate(certificate)]
    let copy = try #require(policy.copy() as? AFSecurityPolicy)
    for other in [copy, try Archive.roundTrip(policy)] {
      #expect(other !== policy && other.sslPinningMode == .certificate)
      #expect(other.allowInvalidCertificates && !other.validatesDomainName && other.validatesCertificateChain)
      #expect(other.pinnedCertificates == policy.pinnedCertificates && other.publicKeyPins == policy.publicKeyPins)
    }
    let plain = try Archive.roundTrip(AFSecurityPolicy.default())
    #expect(plain.sslPinningMode == .none && !plain.allowInvalidCertificates && plain.validatesDomainName)
    #expect(plain.pinnedCertificates == nil && AFSecurityPolicy.supportsSecureCoding)
  }

  /// An archive with an unknown pinning mode yields a policy that trusts no server.
  @Test func archivesOfSomethingElse() throws {
    let archiver = NSKeyedArchiver(requiringSecureCoding: true)
    archiver.encode(Int64(99), forKey: "SSLPinningMode")
    archiver.finishEncoding()
    let decoder = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
    let policy = try #require(AFSecurityPolicy(coder: decoder))
    #expect(policy.sslPinningMode == .certificate && policy.validatesDomainName && !policy.allowInvalidCertificates)
    #expect(!policy.evaluateServerTrust(try chains.trust, forDomain: nil))
  }

  @Test func certificatesInADirectory() throws {
    let directory = FileManager.default.temporaryDirectory.appending(path: "larkspur-pins-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    #expect(try AFSecurityPolicy.certificates(inDirectory: directory) == [])
    let files: [String: Data] = [
      "a.cer": Data(chains.leaf.certificateDER), "b.pem": Data(chains.otherLeaf.chainPEM.utf8),
      "c.CRT": Data(chains.root.rootCertificatePEM.utf8), "broken.cer": Data("x".utf8),
      "d.txt": Data(chains.upper.certificate.certificateDER), "a again.der": Data(chains.leaf.certificateDER),
    ]
    for (name, data) in files { try data.write(to: directory.appending(path: name)) }
    let found = try AFSecurityPolicy.certificates(inDirectory: directory)
    let expected = [chains.leaf.certificateDER, chains.otherLeaf.certificateDER, chains.root.rootCertificateDER]
    #expect(found == Set(expected.map { Data($0) }))
    #expect(throws: (any Error).self) {
      try AFSecurityPolicy.certificates(inDirectory: directory.appending(path: "missing"))
    }
    // A directory is a bundle, too.
    let bundle = try #require(Bundle(url: directory))
    let bundled = AFSecurityPolicy.certificates(in: bundle)
    #expect(bundled == [Data(chains.leaf.certificateDER)])
    let policy = AFSecurityPolicy(pinningMode: .certificate, withPinnedCertificates: bundled)
    #expect(policy.evaluateServerTrust(try chains.trust, forDomain: "a.example"))
  }

  /// An evaluation does not change the trust, which other code may evaluate, too.
  @Test func theTrustIsLeftAlone() throws {
    let trust = try chains.trust
    let policy = chains.policy(.certificate, [chains.otherLeaf.certificateDER])
    #expect(!policy.evaluateServerTrust(trust, forDomain: "b.example"))
    #expect(trust.isTrusted && SecTrustEvaluateWithError(trust, nil) && trust.verifiedChain.count == 4)
  }
}
