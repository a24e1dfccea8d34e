import Foundation
import LarkspurEngine
import LarkspurTLS
import LarkspurTransfers
import LarkspurTransport

// Challenges and their answers, as values for another process.

extension TransferQuestion {
  /// Creates the question of a challenge, or returns `nil` if the challenge is too large.
  init?(_ challenge: URLAuthenticationChallenge) {
    let space = challenge.protectionSpace
    if let trust = space.serverTrust?.original {
      self = .trust(
        TransferTrust(
          host: trust.server.text, port: space.port, sent: trust.sent.map(\.der), verified: trust.verified.map(\.der),
          code: trust.result.code, depth: trust.result.depth, complaint: trust.result.complaint))
    } else if let issuers = space.distinguishedNames {
      self = .clientCertificate(
        TransferCertificateRequest(host: space.host, port: space.port, issuers: issuers.map { Array($0) }))
    } else {
      self = .challenge(
        TransferChallenge(
          host: space.host, port: space.port, scheme: space.`protocol`, realm: space.realm,
          method: space.authenticationMethod, proxyKind: space.isProxy() ? space.proxyType : nil,
          previousFailures: challenge.previousFailureCount,
          proposed: challenge.proposedCredential.flatMap { TransferAnswer.Credential($0, to: challenge) }))
    }
    guard isPossible else { return nil }
  }
}

extension URLAuthenticationChallenge {
  /// Creates the challenge of a question from another process, or returns `nil` if the question is not about a
  /// challenge or cannot be read.
  ///
  /// - Parameter tls: Has the roots of further evaluations of a server's certificates.
  convenience init?(_ question: TransferQuestion, _ tls: TLSProvider) async {
    switch question {
    case .beginDelayed: return nil
    case .challenge(let challenge):
      let space =
        if let proxy = challenge.proxyKind {
          URLProtectionSpace(
            proxyHost: challenge.host, port: challenge.port, type: proxy, realm: challenge.realm,
            authenticationMethod: challenge.method)
        } else {
          URLProtectionSpace(
            host: challenge.host, port: challenge.port, protocol: challenge.scheme, realm: challenge.realm,
            authenticationMethod: challenge.method)
        }
      self.init(
        space: space, proposed: challenge.proposed.flatMap { URLCredential($0, to: nil) },
        failures: challenge.previousFailures, response: nil)
    case .trust(let trust):
      guard let security = try? await tls.security(), let server = ServerName(host: trust.host),
        let sent = Self.certificates(trust.sent), let verified = Self.certificates(trust.verified)
      else { return nil }
      let result = VerificationResult(code: trust.code, depth: trust.depth, complaint: trust.complaint)
      let inner = security.currentContext.trust(server: server, sent: sent, verified: verified, result: result)
      self.init(
        space: URLProtectionSpace(trust: ServerTrust(inner), port: trust.port), proposed: nil, failures: 0,
        response: nil)
    case .clientCertificate(let request):
      let space = URLProtectionSpace(
        clientCertificateFor: request.host, port: request.port, issuers: request.issuers.map { Data($0) })
      self.init(space: space, proposed: nil, failures: 0, response: nil)
    }
  }

  /// - Returns: `nil` if one of them cannot be read.
  private static func certificates(_ list: [[UInt8]]) -> [Certificate]? {
    let certificates = list.compactMap { Certificate(der: $0) }
    return certificates.count == list.count ? certificates : nil
  }
}

extension TransferAnswer {
  /// Creates the answer to the question about a task's start.
  init(_ disposition: URLSession.DelayedRequestDisposition, _ request: URLRequest?, isUpload: Bool) {
    self =
      switch disposition {
      case .continueLoading: .continueLoading
      case .cancel: .cancel
      case .useNewRequest:
        // Without a request there is nothing to load.
        request.flatMap { try? TransferRequest($0, isUpload: isUpload) }.map { .useNewRequest($0) } ?? .cancel
      }
  }

  /// Creates the answer to a challenge.
  init(
    _ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?,
    to challenge: URLAuthenticationChallenge
  ) {
    let disposition = Disposition(rawValue: UInt8(clamping: disposition.rawValue)) ?? .performDefaultHandling
    self = .challenge(
      disposition: disposition, credential: credential.flatMap { Credential($0, to: challenge) })
  }

  /// Returns the answer to a challenge, from another process.
  func reply(
    to challenge: URLAuthenticationChallenge
  ) -> (URLSession.AuthChallengeDisposition, URLCredential?) {
    switch self {
    case .challenge(let raw, let credential):
      let disposition = URLSession.AuthChallengeDisposition(rawValue: Int(raw.rawValue))
      return (disposition ?? .performDefaultHandling, credential.flatMap { URLCredential($0, to: challenge) })
    case .cancel: return (.cancelAuthenticationChallenge, nil)
    case .continueLoading, .useNewRequest: return (.performDefaultHandling, nil)
    }
  }
}

extension TransferAnswer.Credential {
  /// Creates the form of a credential that can travel, or returns `nil` if there is none: the key of the identity cannot
  /// be exported, or the credential trusts another server than the one in question.
  fileprivate init?(_ credential: URLCredential, to challenge: URLAuthenticationChallenge) {
    switch credential.kind {
    case .password(let user, let password):
      self = .password(user: user, password: password, persistence: UInt8(clamping: credential.persistence.rawValue))
    case .trust:
      guard case .trusted = TrustChallenge.decision(.useCredential(credential), to: challenge) else { return nil }
      self = .trust
    case .identity(let identity, _):
      guard let identity = SessionSettings.TrustSettings.Identity(identity) else { return nil }
      self = .identity(certificates: identity.certificates, key: identity.key)
    }
  }
}

extension URLCredential {
  /// Creates the credential from another process, or returns `nil` if it cannot be read or does not suit the challenge.
  fileprivate convenience init?(_ credential: TransferAnswer.Credential, to challenge: URLAuthenticationChallenge?) {
    switch credential {
    case .password(let user, let password, let persistence):
      let kept = URLCredential.Persistence(rawValue: UInt(persistence)) ?? .none
      self.init(user: user, password: password, persistence: kept)
    case .trust:
      guard let trust = challenge?.protectionSpace.serverTrust else { return nil }
      self.init(trust: trust)
    case .identity(let certificates, let key):
      let identity = SessionSettings.TrustSettings.Identity(certificates: certificates, key: key)
      guard let identity = try? identity.identity() else { return nil }
      self.init(identity: identity, certificates: nil, persistence: .none)
    }
  }
}
