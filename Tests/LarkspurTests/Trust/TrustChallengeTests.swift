import Foundation
import LarkspurTLS
import LarkspurTestServer
import Synchronization
import Testing

@testable import Larkspur

/// Tests credentials of a trust that the delegate has made itself.
@Suite(.timeLimit(.minutes(1))) struct TrustChallengeTests {
  let root: TestCA
  let intermediate: TestCA
  let issued: TestCertificate
  let leaf: SecCertificate
  let issuer: SecCertificate
  /// The challenge of a server that sends its own certificate alone.
  let challenge: URLAuthenticationChallenge

  init() throws {
    root = try TestCA()
    intermediate = try root.intermediate()
    issued = try intermediate.issue(.init(names: ["a.example", "b.example"], ipAddresses: ["127.0.0.1"]))
    leaf = try ServerTrustTests.certificate(issued.certificateDER)
    issuer = try ServerTrustTests.certificate(intermediate.certificate.certificateDER)
    let roots = TLSTrustSettings.Roots.only([try ServerTrustTests.certificate(root.rootCertificateDER)])
    let trust = try ServerTrust(host: "a.example", chain: [leaf], roots: roots)
    challenge = TrustChallenge.challenge(trust: trust.original, port: 443)
  }

  private func made(_ chain: [SecCertificate], _ policies: [SecPolicy]? = nil) throws -> SecTrust {
    var trust: SecTrust?
    SecTrustCreateWithCertificates(chain, policies, &trust)
    return try #require(trust)
  }

  private func decision(_ trust: SecTrust) -> TrustDecision {
    TrustChallenge.decision(.useCredential(URLCredential(trust: trust)), to: challenge)
  }

  @Test func aChainWithItsIntermediate() throws {
    let own = try ServerTrustTests.certificate(root.rootCertificateDER)
    for policies in [nil, [SecPolicyCreateSSL(true, "A.example.")], [SecPolicyCreateBasicX509()]] as [[SecPolicy]?] {
      let trust = try made([leaf, issuer], policies)
      // The decision is the delegate's. Only an evaluation makes a chain that pins can match.
      #expect(decision(trust) == .trusted())
      SecTrustSetAnchorCertificates(trust, [own])
      #expect(SecTrustEvaluateWithError(trust, nil))
      #expect(decision(trust) == .trusted(chain: [leaf.inner, issuer.inner, own.inner]))
      SecTrustSetVerifyDate(trust, .distantFuture)
      #expect(decision(trust) == .trusted())
      #expect(!SecTrustEvaluateWithError(trust, nil) && decision(trust) == .trusted())
    }
  }

  /// A certificate that was renewed with the server's key counts; another server's does not.
  @Test func keysAndHosts() throws {
    var request = TestCertificate.Request(names: ["a.example"])
    request.privateKeyDER = issued.privateKeyDER
    let renewed = try ServerTrustTests.certificate(try root.issue(request).certificateDER)
    #expect(try renewed != leaf && decision(made([renewed])) == .trusted())
    let other = try ServerTrustTests.certificate(try intermediate.issue(.init(names: ["a.example"])).certificateDER)
    let (a, b) = (SecPolicyCreateSSL(true, "a.example"), SecPolicyCreateSSL(true, "b.example"))
    for (chain, policies) in [
      ([other], nil), ([other, leaf], nil), ([issuer, leaf], nil), ([leaf], [b]),
      ([leaf], [SecPolicyCreateSSL(true, "no host")]),
    ] as [([SecCertificate], [SecPolicy]?)] {
      #expect(decision(try made(chain, policies)) == .verified)
    }
    #expect(decision(try made([leaf], [b, a])) == .trusted())
    let invalid = try made([leaf], [a])
    SecTrustSetPolicies(invalid, [])
    #expect(decision(invalid) == .verified)
  }

  // MARK: - In a session

  /// A delegate that evaluates a trust of the server's certificate and of its own intermediate.
  private final class Completing: NSObject, URLSessionDelegate {
    let issuer: SecCertificate
    let root: SecCertificate

    init(_ issuer: SecCertificate, _ root: SecCertificate) { (self.issuer, self.root) = (issuer, root) }

    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      let space = challenge.protectionSpace
      let sent = space.serverTrust.flatMap(SecTrustCopyCertificateChain) ?? []
      var trust: SecTrust?
      SecTrustCreateWithCertificates(
        Array(sent.prefix(1)) + [issuer], SecPolicyCreateSSL(true, space.host as CFString), &trust)
      guard let trust else { return completionHandler(.cancelAuthenticationChallenge, nil) }
      SecTrustSetAnchorCertificates(trust, [root])
      let isGood = SecTrustEvaluateWithError(trust, nil)
      completionHandler(isGood ? .useCredential : .cancelAuthenticationChallenge, URLCredential(trust: trust))
    }
  }

  /// A server that sends its own certificate alone is reached, and pins count in the chain that the delegate verified.
  @Test func aServerWithoutItsIntermediate() async throws {
    var tls = TestServer.TLS(certificate: issued)
    tls.chainDER = [issued.certificateDER]
    let server = try TestServer(tls: tls)
    let url = try #require(URL(string: server.url("/get", host: "127.0.0.1")))
    let own = try ServerTrustTests.certificate(root.rootCertificateDER)
    let stranger = try ServerTrustTests.certificate(try TestCA().rootCertificateDER)
    for (pins, isReached) in [([], true), ([issuer], true), ([own], true), ([stranger], false)]
      as [([SecCertificate], Bool)]
    {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.tlsTrustSettings.roots = .only([own])
      if !pins.isEmpty {
        let pins = Set(pins.map { CertificatePin.publicKey(of: $0) })
        configuration.tlsTrustSettings.pins = [try #require(PinnedHost("127.0.0.1", pins: pins))]
      }
      let session = URLSession(configuration: configuration, delegate: Completing(issuer, own), delegateQueue: nil)
      let response = try? await session.data(from: url).1 as? HTTPURLResponse
      #expect((response?.statusCode == 200) == isReached, "\(pins)")
      session.invalidateAndCancel()
    }
  }
}
