import AFNetworking
import Foundation
import LarkspurTestServer
import Testing

/// Tests vulnerabilities of early versions of AFNetworking and similar ones: a policy must refuse each of these
/// servers, none of which is the pinned one.
@Suite struct OldDefectTests {
  let chains: Chains

  init() throws { chains = try Chains() }

  static let cases: [(AFSSLPinningMode, Bool)] = [
    (.publicKey, false), (.publicKey, true), (.certificate, false), (.certificate, true),
  ]

  /// CVE-2015-3996: the default policy checks the chain and the host name. Before version 2.5.3 AFNetworking did not
  /// compare the name by default, so every host's valid certificate was accepted for every other host.
  @Test func anotherHostsGoodCertificate() throws {
    let trust = try chains.otherTrust
    #expect(trust.isTrusted == false)
    #expect(!AFSecurityPolicy.default().evaluateServerTrust(trust, forDomain: "a.example"))
    #expect(!AFSecurityPolicy(pinningMode: .none).evaluateServerTrust(trust, forDomain: "a.example"))
    #expect(AFSecurityPolicy.default().evaluateServerTrust(trust, forDomain: "b.example"))
  }

  /// CVE-2013-4545: the chain is checked even if the host name is not. AFNetworking 2.5.1 (no CVE, 2015-03) accepted
  /// every chain without pins if no name was compared.
  @Test func aStrangersCertificateWithoutAName() throws {
    let trust = try chains.trust(of: [try Chains.selfSigned(["a.example"]).certificateDER])
    let policy = AFSecurityPolicy.default()
    policy.validatesDomainName = false
    #expect(!policy.evaluateServerTrust(trust, forDomain: "a.example"))
  }

  /// CVE-2016-2402: a pin must match a certificate of the verified chain. The pinned certificate is public, so an
  /// attacker can send it after its own certificate, before others, or above a key that it has never signed.
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
      // Pins of key hashes behave alike.
      let keys = AFSecurityPolicy(publicKeyPins: [.publicKey(of: try Chains.certificate(pinned))])
      keys.allowInvalidCertificates = allowsInvalid
      #expect(!keys.evaluateServerTrust(try chains.trust(of: [impostor] + chains.all), forDomain: "a.example"))
    }
  }

  /// A certificate that names a pinned authority as its issuer, but was signed with another key, is refused.
  @Test(arguments: cases) func aForgedIssuer(_ mode: AFSSLPinningMode, allowsInvalid: Bool) throws {
    // Both roots have equal names, and so equal subjects, but different keys.
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

  /// A pinned server certificate is not an authority: a certificate that it has signed is refused.
  @Test(arguments: cases) func aPinnedLeafThatSigns(_ mode: AFSSLPinningMode, allowsInvalid: Bool) throws {
    let signed = try TestCA(chains.leaf).issue(.init(names: ["victim.example"]))
    let policy = chains.policy(mode, [chains.leaf.certificateDER])
    policy.allowInvalidCertificates = allowsInvalid
    #expect(!policy.evaluateServerTrust(try chains.trust(of: signed.chainDER), forDomain: "victim.example"))
  }

  /// A pin on an authority does not accept a certificate that the authority issued for another host.
  @Test(arguments: cases) func anotherHostBelowThePinnedAuthority(_ mode: AFSSLPinningMode, allowsInvalid: Bool) throws
  {
    let neighbour = try chains.lower.issue(.init(names: ["neighbour.example"]))
    let policy = chains.policy(mode, [chains.root.rootCertificateDER])
    policy.allowInvalidCertificates = allowsInvalid
    #expect(!policy.evaluateServerTrust(try chains.trust(of: neighbour.chainDER), forDomain: "a.example"))
    #expect(policy.evaluateServerTrust(try chains.trust(of: neighbour.chainDER), forDomain: "neighbour.example"))
  }
}
