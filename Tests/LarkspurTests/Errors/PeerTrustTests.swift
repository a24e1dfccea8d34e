import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// Tests `URLError.failureURLPeerTrust`: the certificates of the server whose handshake failed.
@Suite(.timeLimit(.minutes(1))) struct PeerTrustTests {
  private final class Delegate: NSObject, URLSessionTaskDelegate {
    private let disposition: URLSession.AuthChallengeDisposition
    init(_ disposition: URLSession.AuthChallengeDisposition) { self.disposition = disposition }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) { completionHandler(disposition, nil) }
  }

  private func failure(
    _ server: TestServer, _ configuration: URLSessionConfiguration = .ephemeral,
    delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> URLError {
    let url = try #require(URL(string: server.url("/")))
    let session = URLSession(configuration: configuration)
    defer { session.finishTasksAndInvalidate() }
    return try #require(
      await #expect(throws: URLError.self) { _ = try await session.data(from: url, delegate: delegate) })
  }

  @Test(
    arguments: [nil, .performDefaultHandling, .cancelAuthenticationChallenge, .rejectProtectionSpace]
      as [URLSession.AuthChallengeDisposition?])
  func ofARefusedServer(_ disposition: URLSession.AuthChallengeDisposition?) async throws {
    let (ca, certificate) = try { ($0, try $0.issue()) }(try TestCA())
    let server = try TestServer(tls: TestServer.TLS(certificate: certificate))
    let error = try await failure(server, delegate: disposition.map(Delegate.init))
    let trust = try #require(error.failureURLPeerTrust)
    #expect(trust === error.userInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? SecTrust)
    #expect(trust === (error as NSError).userInfo[NSURLErrorFailingURLPeerTrustErrorKey] as? SecTrust)
    #expect(SecTrustGetCertificateAtIndex(trust, 0)?.der == Data(certificate.certificateDER))
    #expect(trust.host == "127.0.0.1" && !trust.isTrusted && error.failingURL?.port == Int(server.port))
    // With the right root the trust evaluates as good; the error stays unchanged.
    SecTrustSetAnchorCertificates(trust, [try #require(TLSCertificate(Data(ca.rootCertificateDER)))] as CFArray)
    #expect(SecTrustEvaluateWithError(trust, nil))
    let isDefault = disposition == nil || disposition == .performDefaultHandling
    #expect(error.code == (isDefault ? .serverCertificateUntrusted : .cancelled))
  }

  @Test func ofAPinThatDoesNotMatch() async throws {
    let ca = try TestCA()
    let server = try TestServer(tls: TestServer.TLS(certificate: try ca.issue()))
    let root = try #require(TLSCertificate(Data(ca.rootCertificateDER)))
    let configuration = URLSessionConfiguration.ephemeral
    configuration.tlsTrustSettings.roots = .only([root])
    configuration.tlsTrustSettings.pins = [
      try #require(PinnedHost("127.0.0.1", pins: [.publicKeySHA256(Data(count: 32))]))
    ]
    let error = try await failure(server, configuration)
    // The chain is trusted; only the pin failed to match.
    #expect(error.code == .serverCertificateUntrusted && error.failureURLPeerTrust?.isTrusted == true)
  }

  @Test func ofOtherErrors() async throws {
    let server = try TestServer()
    server.enqueue([.expectRequest, .close])
    let error = try await failure(server)
    #expect(error.code == .networkConnectionLost && error.failureURLPeerTrust == nil)
    #expect(URLError(.serverCertificateUntrusted).failureURLPeerTrust == nil)
  }
}
