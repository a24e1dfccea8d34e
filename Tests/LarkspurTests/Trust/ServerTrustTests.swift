import Foundation
import LarkspurTLS
import LarkspurTestServer
import Testing

@testable import Larkspur

@Suite struct ServerTrustTests {
  static func certificate(_ bytes: [UInt8]) throws -> TLSCertificate { try #require(TLSCertificate(Data(bytes))) }

  let ca: TestCA
  let root: TLSCertificate
  let leaf: TestCertificate
  let trust: ServerTrust

  init() throws {
    ca = try TestCA()
    root = try Self.certificate(ca.rootCertificateDER)
    leaf = try ca.issue(.init(names: ["a.example"], ipAddresses: ["127.0.0.1"]))
    trust = try ServerTrust(
      host: "A.example.", chain: [try Self.certificate(leaf.certificateDER)], roots: .only([root]))
  }

  @Test func facts() throws {
    #expect(trust.host == "a.example" && trust.isTrusted && trust.result.code == 0)
    #expect(trust.sentChain.map(\.der) == [Data(leaf.certificateDER)])
    #expect(trust.verifiedChain == [trust.sentChain[0], root])
    let certificate = trust.sentChain[0]
    #expect(certificate.dnsNames == ["a.example"] && certificate.ipAddresses == ["127.0.0.1"])
    #expect(certificate.issuer == root.subject && certificate.sha256.count == 32)
    #expect(certificate.notValidBefore < certificate.notValidAfter && !certificate.serialNumber.isEmpty)
    #expect("\(certificate)".contains(certificate.subject))
  }

  @Test func otherInputs() throws {
    let other = try Self.certificate(try TestCA(name: "other").rootCertificateDER)
    #expect(try trust.evaluate(host: nil).result.isTrusted)
    #expect(try trust.evaluate(host: "127.0.0.1").result.isTrusted)
    #expect(try trust.evaluate(host: "b.example").result.message.contains("ostname"))
    let foreign = try trust.evaluate(host: nil, anchors: [other])
    #expect(!foreign.result.isTrusted && foreign.result.code != 0 && !foreign.chain.isEmpty)
    let late = try trust.evaluate(host: nil, date: .distantFuture)
    #expect(!late.result.isTrusted && late.result.description.contains("expired"))
    #expect(try !trust.evaluate(host: nil, date: .distantPast).result.isTrusted)
    #expect(throws: ServerTrust.Failure.hostInvalid) { try trust.evaluate(host: "a b") }
    #expect(throws: ServerTrust.Failure.hostInvalid) { try ServerTrust(host: "", chain: []) }
    #expect(try !ServerTrust(host: "a.example", chain: [], roots: .only([root])).isTrusted)
    // These evaluations do not change the trust itself.
    #expect(trust.isTrusted && trust.verifiedChain.count == 2)
  }

  /// Settings of the trust count where the call names no others.
  @Test func settingsInEvaluations() throws {
    let other = try Self.certificate(try TestCA(name: "other").rootCertificateDER)
    SecTrustSetAnchorCertificates(trust, [other])
    #expect(!trust.isTrusted && trust.result.code != 0)
    #expect(try !trust.evaluate(host: nil).result.isTrusted)
    #expect(try trust.evaluate(host: nil, anchors: [root]).result.isTrusted)
    SecTrustSetAnchorCertificatesOnly(trust, false)
    #expect(try trust.evaluate(host: nil).result.isTrusted)
    #expect(try !trust.evaluate(host: nil, anchors: [other]).result.isTrusted)
    SecTrustSetAnchorCertificates(trust, nil)
    SecTrustSetVerifyDate(trust, .distantFuture)
    #expect(try !trust.evaluate(host: nil).result.isTrusted)
    #expect(try trust.evaluate(host: nil, date: Date()).result.isTrusted)
    SecTrustSetVerifyDate(trust, Date())
    SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, "b.example"))
    #expect(try !trust.evaluate(host: nil).result.isTrusted && !trust.evaluate(host: "a.example").result.isTrusted)
    SecTrustSetPolicies(trust, SecPolicyCreateSSL(true, "a.example"))
    #expect(try trust.evaluate(host: nil).result.isTrusted && !trust.evaluate(host: "b.example").result.isTrusted)
    SecTrustSetPolicies(trust, [])
    #expect(try !trust.evaluate(host: "a.example").result.isTrusted)
  }

  /// An anchor that a caller names need not be a root certificate; a root of a session has to be self-signed.
  @Test func anchors() throws {
    let intermediate = try ca.intermediate()
    let issued = try intermediate.issue(.init(names: ["a.example"]))
    let certificate = try Self.certificate(issued.certificateDER)
    let issuer = try Self.certificate(intermediate.certificate.certificateDER)
    let trust = try ServerTrust(host: "a.example", chain: [certificate, issuer], roots: .only([root]))
    #expect(trust.isTrusted && trust.verifiedChain == [certificate, issuer, root])
    for anchors in [[certificate], [issuer], [root]] {
      #expect(try trust.evaluate(host: nil, anchors: anchors).result.isTrusted)
      #expect(try trust.evaluate(host: nil, anchors: anchors).chain.last == anchors.first)
      #expect(try !trust.evaluate(host: "b.example", anchors: anchors).result.isTrusted)
      #expect(try !trust.evaluate(host: nil, anchors: anchors, date: .distantFuture).result.isTrusted)
    }
    #expect(try !trust.evaluate(host: nil, anchors: []).result.isTrusted)
    // A certificate with equal names but another key.
    let twin = try Self.certificate(try TestCA().rootCertificateDER)
    #expect(try twin.subject == root.subject && !trust.evaluate(host: nil, anchors: [twin]).result.isTrusted)
    #expect(try !ServerTrust(host: "a.example", chain: [certificate, issuer], roots: .only([issuer])).isTrusted)
    SecTrustSetAnchorCertificates(trust, [issuer])
    #expect(SecTrustEvaluateWithError(trust, nil) && SecTrustGetCertificateCount(trust) == 2)
  }

  // MARK: - Darwin's functions

  @Test func evaluations() throws {
    var error: (any Error)?
    #expect(SecTrustEvaluateWithError(trust, &error) && error == nil)
    #expect(SecTrustEvaluateWithError(trust, nil))
    #expect(SecTrustGetCertificateCount(trust) == 2)
    #expect(SecTrustCopyCertificateChain(trust)?.last == root)
    #expect(SecTrustGetCertificateAtIndex(trust, 0)?.der == Data(leaf.certificateDER))
    #expect(SecTrustGetCertificateAtIndex(trust, 2) == nil && SecTrustGetCertificateAtIndex(trust, -1) == nil)

    let other = try Self.certificate(try TestCA(name: "other").rootCertificateDER)
    SecTrustSetAnchorCertificates(trust, [other])
    #expect(!SecTrustEvaluateWithError(trust, &error))
    #expect((error as? ServerTrust.TrustResult)?.isTrusted == false && !trust.isTrusted)
    #expect(error?.localizedDescription.isEmpty == false)
    SecTrustSetAnchorCertificatesOnly(trust, false)
    #expect(SecTrustEvaluateWithError(trust, nil) && trust.isTrusted)
    SecTrustSetAnchorCertificates(trust, [other])
    #expect(!SecTrustEvaluateWithError(trust, nil))
    SecTrustSetAnchorCertificates(trust, [root])
    #expect(SecTrustEvaluateWithError(trust, nil))
    SecTrustSetAnchorCertificates(trust, nil)
    #expect(SecTrustEvaluateWithError(trust, nil))

    SecTrustSetVerifyDate(trust, .distantFuture)
    #expect(!SecTrustEvaluateWithError(trust, nil))
  }

  @Test func policies() throws {
    for (policy, isTrusted) in [
      (SecPolicyCreateSSL(true, "a.example"), true), (SecPolicyCreateSSL(true, "b.example"), false),
      (SecPolicyCreateSSL(true, "no host"), false), (SecPolicyCreateSSL(true, nil), true),
      (SecPolicyCreateSSL(false, "b.example"), true), (SecPolicyCreateBasicX509(), true),
    ] {
      #expect(SecTrustSetPolicies(trust, policy) == errSecSuccess)
      #expect(SecTrustEvaluateWithError(trust, nil) == isTrusted)
    }
    #expect(SecTrustSetPolicies(trust, []) == errSecParam)
  }

  @Test(arguments: [TestCertificate.KeyKind.ecP256, .rsa(2048)]) func keys(kind: TestCertificate.KeyKind) throws {
    var request = TestCertificate.Request(names: ["a.example"])
    request.key = kind
    request.commonName = "A, B + C"
    let certificate = try Self.certificate(try ca.issue(request).certificateDER)
    let key = try #require(SecCertificateCopyKey(certificate))
    let data = try #require(SecKeyCopyExternalRepresentation(key, nil))
    #expect(certificate.publicKeyInfo.suffix(data.count) == data)
    // An uncompressed point (X9.63) for an elliptic curve, or a SEQUENCE of two INTEGERs (PKCS#1) for RSA.
    if kind == .ecP256 { #expect(data.count == 65 && data.first == 4) } else { #expect(data.first == 0x30) }
    #expect(SecCertificateCopySubjectSummary(certificate) == "A, B + C")
    #expect(SecCertificateCreateWithData(nil, SecCertificateCopyData(certificate)) == certificate)
    #expect(SecCertificateCreateWithData(nil, Data([1])) == nil)
  }

  @Test func brokenKeys() {
    for bytes in [[], [0x30], [0x30, 0x80], [0x30, 0x84, 1, 1, 1, 1], [0x30, 2, 0x30, 0], [0x30, 4, 0x30, 0, 3, 0]]
      as [[UInt8]]
    {
      #expect(SecKey(publicKeyInfo: Data(bytes)) == nil)
    }
    #expect(SecKey(publicKeyInfo: Data([0x30, 6, 0x30, 0, 3, 2, 0, 7]))?.representation == Data([7]))
  }

  // MARK: - Challenges

  @Test func decisions() throws {
    let challenge = TrustChallenge.challenge(trust: trust.original, port: 443)
    let space = challenge.protectionSpace
    #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust && space.host == "a.example")
    #expect(space.protocol == "https" && space.receivesCredentialSecurely && space.distinguishedNames == nil)
    let asked = try #require(space.serverTrust)
    let trusted = TrustDecision.trusted(chain: trust.verifiedChain.map(\.inner))
    #expect(TrustChallenge.decision(.useCredential(URLCredential(trust: asked)), to: challenge) == trusted)
    // A trust of an equal chain and host counts, although it is another object.
    #expect(TrustChallenge.decision(.useCredential(URLCredential(trust: trust)), to: challenge) == trusted)
    let password = URLCredential(user: "u", password: "p", persistence: .forSession)
    let chain = [try Self.certificate(try ca.issue().certificateDER)]
    let other = try ServerTrust(host: "a.example", chain: chain, roots: .only([root]))
    let elsewhere = try ServerTrust(host: "b.example", chain: trust.sentChain, roots: .only([root]))
    for credential in [nil, password, URLCredential(trust: other), URLCredential(trust: elsewhere)] {
      #expect(TrustChallenge.decision(.useCredential(credential), to: challenge) == .verified)
    }
    #expect(TrustChallenge.decision(.performDefaultHandling, to: challenge) == .verified)
    #expect(TrustChallenge.decision(.cancel, to: challenge) == .refused)
    #expect(TrustChallenge.decision(.rejectProtectionSpace, to: challenge) == .refused)
  }

  @Test func identities() throws {
    let client = try ca.issue()
    let identity = try ClientIdentity(pkcs12: Data(try client.pkcs12(password: "open")), password: "open")
    let credential = URLCredential(identity: identity, certificates: nil, persistence: .forSession)
    let challenge = TrustChallenge.challenge(
      clientCertificateFor: URLProtectionSpace(clientCertificateFor: "a.example", port: 443, issuers: []),
      proposed: credential)
    #expect(challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodClientCertificate)
    #expect(challenge.protectionSpace.distinguishedNames == [])
    #expect(challenge.protectionSpace.serverTrust == nil)
    for reply in [SessionCredentials.Reply.performDefaultHandling, .useCredential(credential)] {
      #expect(TrustChallenge.identity(reply, to: challenge)?.certificate == identity.certificate.inner)
    }
    for reply in [SessionCredentials.Reply.cancel, .rejectProtectionSpace, .useCredential(nil)] {
      #expect(TrustChallenge.identity(reply, to: challenge) == nil)
    }
    #expect(throws: ClientIdentity.Failure.passwordWrong) {
      try ClientIdentity(pkcs12: Data(try client.pkcs12(password: "open")), password: "wrong")
    }
    #expect(throws: ClientIdentity.Failure.unreadable) { try ClientIdentity(certificates: Data(), key: Data()) }
    let other = try ca.issue()
    #expect(throws: ClientIdentity.Failure.keyMismatch) {
      try ClientIdentity(certificates: Data(client.certificateDER), key: Data(other.privateKeyDER))
    }
  }
}
