import AFNetworking
import Foundation
import LarkspurTestServer
import Testing

/// Tests policies that answer the challenges of a session, as in a manager.
@Suite(.timeLimit(.minutes(1))) struct PolicyInSessionTests {
  final class Delegate: NSObject, URLSessionDelegate {
    let policy: AFSecurityPolicy

    init(_ policy: AFSecurityPolicy) { self.policy = policy }

    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      guard let trust = challenge.protectionSpace.serverTrust,
        policy.evaluateServerTrust(trust, forDomain: challenge.protectionSpace.host)
      else { return completionHandler(.cancelAuthenticationChallenge, nil) }
      completionHandler(.useCredential, URLCredential(trust: trust))
    }
  }

  /// Loads from the server.
  ///
  /// - Returns: The status, or `nil` if the policy refused the server.
  func status(_ server: TestServer, _ policy: AFSecurityPolicy, roots: [[UInt8]] = []) async throws -> Int? {
    let configuration = URLSessionConfiguration.ephemeral
    if !roots.isEmpty { configuration.tlsTrustSettings.roots = .only(try roots.map(Chains.certificate)) }
    let session = URLSession(configuration: configuration, delegate: Delegate(policy), delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: server.url("/get")))
    do {
      return (try await session.data(from: url).1 as? HTTPURLResponse)?.statusCode
    } catch let error as URLError {
      #expect(error.code == .cancelled)
      return nil
    }
  }

  @Test func anOwnServer() async throws {
    let ca = try TestCA()
    let certificate = try ca.issue()
    let server = try TestServer(tls: .init(certificate: certificate))
    let roots = [ca.rootCertificateDER]
    // The system's roots do not include this authority.
    #expect(try await status(server, .default()) == nil)
    #expect(try await status(server, .default(), roots: roots) == 200)
    for pinned in [certificate.certificateDER, ca.rootCertificateDER] {
      for mode in [.publicKey, .certificate] as [AFSSLPinningMode] {
        let policy = AFSecurityPolicy(pinningMode: mode, withPinnedCertificates: [Data(pinned)])
        #expect(try await status(server, policy, roots: roots) == 200)
        #expect(try await status(server, policy) == nil)
        policy.allowInvalidCertificates = true
        #expect(try await status(server, policy) == 200)
      }
    }
    #expect(server.connectionsAccepted > 0)
  }

  @Test func anImpostor() async throws {
    let pinned = try TestCA().issue()
    let impostor = try TestCA(name: "attacker")
    let server = try TestServer(tls: .init(certificate: try impostor.issue()))
    for mode in [.publicKey, .certificate] as [AFSSLPinningMode] {
      for certificate in [pinned.certificateDER, pinned.rootDER] {
        let policy = AFSecurityPolicy(pinningMode: mode, withPinnedCertificates: [Data(certificate)])
        #expect(try await status(server, policy, roots: [impostor.rootCertificateDER]) == nil)
        policy.allowInvalidCertificates = true
        policy.validatesDomainName = false
        #expect(try await status(server, policy, roots: [impostor.rootCertificateDER]) == nil)
      }
    }
    #expect(server.requests.isEmpty)
  }

  /// The certificate is valid, but for another host.
  @Test func anotherHost() async throws {
    let ca = try TestCA()
    let server = try TestServer(
      tls: .init(certificate: try ca.issue(.init(names: ["elsewhere.example"], ipAddresses: []))))
    let policy = AFSecurityPolicy.default()
    #expect(try await status(server, policy, roots: [ca.rootCertificateDER]) == nil)
    policy.validatesDomainName = false
    #expect(try await status(server, policy, roots: [ca.rootCertificateDER]) == 200)
  }
}
