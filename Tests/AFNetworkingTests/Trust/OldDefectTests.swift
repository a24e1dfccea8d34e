import AFNetworking
import Foundation
import LarkspurTestServer
import Testing

/// Holes of early versions of AFNetworking, and of those that were like them: none of these servers is the pinned one.
@Suite struct OldDefectTests {
  let chains: Chains

  init() throws { chains = try Chains() }

  static let cases: [(AFSSLPinningMode, Bool)] = [
    (.publicKey, false), (.publicKey, true), (.certificate, false), (.certificate, true),
  ]

  /// Before 2.5.3 the host's name was not compared unless it was asked for: anybody's good certificate was good for all.
  /// CVE-2015-3996: the default policy asks for the chain and for the name.
  @Test func anotherHostsGoodCertificate() throws {
    let trust = try chains.otherTrust
    #expect(trust.isTrusted == false)
    #expect(!AFSecurityPolicy.default().evaluateServerTrust(trust, forDomain: "a.example"))
    #expect(!AFSecurityPolicy(pinningMode: .none).evaluateServerTrust(trust, forDomain: "a.example"))
    #expect(AFSecurityPolicy.default().evaluateServerTrust(trust, forDomain: "b.example"))
  }

  /// In 2.5.1 a chain that nobody trusts was taken where no name was compared.
  /// AFNetworking 2.5.1 (no CVE, 2015-03): without pins every chain was good.
  /// CVE-2013-4545: the chain is still looked at when the name is not.
  @Test func aStrangersCertificateWithoutAName() throws {
    let trust = try chains.trust(of: [try Chains.selfSigned(["a.example"]).certificateDER])
    let policy = AFSecurityPolicy.default()
    policy.validatesDomainName = false
    #expect(!policy.evaluateServerTrust(trust, forDomain: "a.example"))
  }

  /// The pinned certificate is public: anybody can send it along behind another one, in front of it, or alone above a key
  /// that it has never signed.
  /// CVE-2016-2402: only a chain that was verified has what is pinned.
  @Test(arguments: cases) func thePinnedCertificateIsSentAlong(_ mode: AFSSLPinningMode, allowsInvalid: Bool) throws {
    let attacker = try TestCA(name: "attacker")
    let impostor = try Chains.selfSigned(["a.example"]).certificateDER
    let issued = try attacker.issue(.init(names: ["a.example"])).certificateDER
    let trusted = try chains.otherRoot.issue(.init(names: ["a.example"])).certificateDER
    for pinned in chains.all {
      let policy = chains.policy(mode, [pinned])
      policy.allowInvalidCertificates = allowsInvalid
      for own in [impostor, issued, trusted] {
        for chain in [[own, pinned], [own, attacker.rootCertificateDER, pinned], [own] + chains.all] {
          for domain in [nil, "a.example"] {
            #expect(!policy.evaluateServerTrust(try chains.trust(of: chain), forDomain: domain))
          }
        }
      }
      // Hashes of keys are no different.
      let keys = AFSecurityPolicy(publicKeyPins: [.publicKey(of: try Chains.certificate(pinned))])
      keys.allowInvalidCertificates = allowsInvalid
      #expect(!keys.evaluateServerTrust(try chains.trust(of: [impostor] + chains.all), forDomain: "a.example"))
    }
  }

  /// An issuer's name is only text: this certificate says that a pinned authority has issued it, and another key has signed it.
  @Test(arguments: cases) func aForgedIssuer(_ mode: AFSSLPinningMode, allowsInvalid: Bool) throws {
    // Roots of the same name have the same subject, and keys of their own.
    let twin = try TestCA()
    let forged = try twin.issue(.init(names: ["a.example"]))
    #expect(
      try Chains.certificate(forged.certificateDER).issuer == Chains.certificate(chains.root.rootCertificateDER).subject
    )
    let policy = chains.policy(mode, [chains.root.rootCertificateDER])
    policy.allowInvalidCertificates = allowsInvalid
    for chain in [[forged.certificateDER], [forged.certificateDER, chains.root.rootCertificateDER]] {
      #expect(!policy.evaluateServerTrust(try chains.trust(of: chain), forDomain: "a.example"))
      #expect(!policy.evaluateServerTrust(try chains.trust(of: chain), forDomain: nil))
    }
  }

  /// A server's certificate is no authority, though it is pinned.
  @Test(arguments: cases) func aPinnedLeafThatSigns(_ mode: AFSSLPinningMode, allowsInvalid: Bool) throws {
    let signed = try TestCA(chains.leaf).issue(.init(names: ["victim.example"]))
    let policy = chains.policy(mode, [chains.leaf.certificateDER])
    policy.allowInvalidCertificates = allowsInvalid
    #expect(!policy.evaluateServerTrust(try chains.trust(of: signed.chainDER), forDomain: "victim.example"))
  }

  /// The system's own roots sign for many: a pin on one of them does not let in what another host got from it.
  @Test(arguments: cases) func anotherHostBelowThePinnedAuthority(_ mode: AFSSLPinningMode, allowsInvalid: Bool) throws
  {
    let neighbour = try chains.lower.issue(.init(names: ["neighbour.example"]))
    let policy = chains.policy(mode, [chains.root.rootCertificateDER])
    policy.allowInvalidCertificates = allowsInvalid
    #expect(!policy.evaluateServerTrust(try chains.trust(of: neighbour.chainDER), forDomain: "a.example"))
    #expect(policy.evaluateServerTrust(try chains.trust(of: neighbour.chainDER), forDomain: "neighbour.example"))
  }
}
