import Foundation
import LarkspurEngine
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransfers
import Testing

@testable import Larkspur

/// Tests challenges that travel to another process and back.
@Suite struct TransferQuestionTests {
  private let tls = TLSProvider(URLSessionConfiguration.default.storage)

  private static func trust(_ chain: [[UInt8]], host: String = "example.com") -> TransferQuestion {
    .trust(TransferTrust(host: host, port: 443, sent: chain, verified: [], code: 20, depth: 0, complaint: nil))
  }

  @Test func trustTravels() async throws {
    let authority = try TestCA()
    let chain = try authority.issue().chainDER + [authority.rootCertificateDER]
    let challenge = try #require(await URLAuthenticationChallenge(Self.trust(chain), tls))
    let space = challenge.protectionSpace
    #expect(space.host == "example.com" && space.port == 443)
    #expect(space.authenticationMethod == NSURLAuthenticationMethodServerTrust)
    let trust = try #require(space.serverTrust)
    #expect(trust.sentChain.map { Array($0.der) } == chain && trust.verifiedChain.isEmpty)
    #expect(trust.result.code == 20 && !trust.isTrusted)
    #expect(TransferQuestion(challenge) == Self.trust(chain))
    let yes = TransferAnswer(.useCredential, URLCredential(trust: trust), to: challenge)
    #expect(yes == .challenge(disposition: .useCredential, credential: .trust))
    let (disposition, credential) = yes.reply(to: challenge)
    #expect(disposition == .useCredential)
    #expect(TrustChallenge.decision(.useCredential(credential), to: challenge) == .trusted())
    // The trust of another server answers nothing.
    let other = try #require(await URLAuthenticationChallenge(Self.trust(chain, host: "other.example"), tls))
    let foreign = try #require(other.protectionSpace.serverTrust)
    #expect(
      TransferAnswer(.useCredential, URLCredential(trust: foreign), to: challenge)
        == .challenge(disposition: .useCredential, credential: nil))
  }

  /// A certificate may have any bytes in it, those of another certificate in PEM as well. The delegate must not see that
  /// one in its place.
  @Test func aCertificateInsideOfAnother() async throws {
    let trusted = try TestCA()
    var request = TestCertificate.Request()
    request.otherExtensions = [.init(object: "1.2.3.4", value: Array("\n\(trusted.rootCertificatePEM)".utf8))]
    let hostile = try TestCA().issue(request).certificateDER
    #expect(Certificate.read(hostile)?.first?.der == trusted.rootCertificateDER)
    let challenge = try #require(await URLAuthenticationChallenge(Self.trust([hostile]), tls))
    #expect(challenge.protectionSpace.serverTrust?.sentChain.map { Array($0.der) } == [hostile])
  }

  @Test func certificatesThatCannotBeRead() async throws {
    let certificate = try TestCA().rootCertificateDER
    for bytes in [[], [1, 2, 3], certificate + [0], Array(certificate.dropLast())] {
      #expect(Certificate(der: bytes) == nil)
      #expect(await URLAuthenticationChallenge(Self.trust([certificate, bytes]), tls) == nil)
    }
    #expect(await URLAuthenticationChallenge(Self.trust([certificate], host: ""), tls) == nil)
    #expect(await URLAuthenticationChallenge(.beginDelayed, tls) == nil)
  }

  @Test func clientCertificatesTravel() async throws {
    let authority = try TestCA()
    let client = try authority.issue()
    let question = TransferQuestion.clientCertificate(
      TransferCertificateRequest(host: "example.com", port: 443, issuers: [[1, 2], [3]]))
    let challenge = try #require(await URLAuthenticationChallenge(question, tls))
    #expect(challenge.protectionSpace.distinguishedNames == [Data([1, 2]), Data([3])])
    #expect(TransferQuestion(challenge) == question)
    let root = try #require(TLSCertificate(Data(authority.rootCertificateDER)))
    let identity = try ClientIdentity(certificates: Data(client.certificateDER), key: Data(client.privateKeyDER))
    let answer = TransferAnswer(
      .useCredential, URLCredential(identity: identity, certificates: [root], persistence: .none), to: challenge)
    let read = answer.reply(to: challenge).1?.identity
    #expect(read?.certificate == identity.certificate && read?.chain == [root])
    // What is no identity shows none.
    let broken = TransferAnswer.challenge(
      disposition: .useCredential, credential: .identity(certificates: [[1]], key: [2]))
    #expect(broken.reply(to: challenge).1 == nil)
    #expect(TransferAnswer.cancel.reply(to: challenge).0 == .cancelAuthenticationChallenge)
  }

  @Test func passwordsTravel() async throws {
    let space = URLProtectionSpace(
      proxyHost: "proxy", port: 8080, type: NSURLProtectionSpaceHTTPProxy, realm: "a",
      authenticationMethod: NSURLAuthenticationMethodHTTPDigest)
    let challenge = URLAuthenticationChallenge(
      space: space, proposed: URLCredential(user: "me", password: "word", persistence: .permanent), failures: 1,
      response: nil)
    let question = try #require(TransferQuestion(challenge))
    let read = try #require(await URLAuthenticationChallenge(question, tls))
    #expect(read.protectionSpace == space && read.previousFailureCount == 1)
    #expect(read.proposedCredential == challenge.proposedCredential)
    let answer = TransferAnswer(.useCredential, read.proposedCredential, to: read)
    #expect(answer.reply(to: challenge).1 == challenge.proposedCredential)
  }
}
