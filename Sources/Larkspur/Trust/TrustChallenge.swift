import Foundation
import LarkspurTLS

/// The challenges that a session makes during a handshake, and the meaning of the replies.
enum TrustChallenge {
  /// Returns the challenge to decide whether a server is trusted.
  static func challenge(trust: LarkspurTLS.Trust, port: Int) -> URLAuthenticationChallenge {
    let space = URLProtectionSpace(trust: ServerTrust(trust), port: port)
    return URLAuthenticationChallenge(space: space, proposed: nil, failures: 0, response: nil, sender: nil)
  }

  /// Returns the challenge for a client certificate.
  ///
  /// - Parameter proposed: The credential that default handling uses, or `nil` if there is none.
  static func challenge(
    clientCertificateFor space: URLProtectionSpace, proposed: URLCredential?
  ) -> URLAuthenticationChallenge {
    URLAuthenticationChallenge(space: space, proposed: proposed, failures: 0, response: nil, sender: nil)
  }

  /// Returns the decision about a server that a delegate's reply means.
  static func decision(
    _ reply: SessionCredentials.Reply, to challenge: URLAuthenticationChallenge
  ) -> TrustDecision {
    switch reply {
    case .useCredential(let credential):
      // A credential for another server is a mistake or an attack, and overrides nothing.
      guard case .trust(let trusted)? = credential?.kind, let asked = challenge.protectionSpace.serverTrust,
        trusted.covers(asked)
      else { return .verified }
      return .trusted(chain: trusted.goodChain)
    case .performDefaultHandling: return .verified
    // There is no other space to continue with. Programs give this reply when a pin does not match.
    case .rejectProtectionSpace, .cancel: return .refused
    }
  }

  /// Returns the client identity to show after a delegate's reply, or `nil` to show none.
  static func identity(
    _ reply: SessionCredentials.Reply, to challenge: URLAuthenticationChallenge
  ) -> LarkspurTLS.ClientIdentity? {
    switch reply {
    case .useCredential(let credential): credential?.identity?.inner
    case .performDefaultHandling: challenge.proposedCredential?.identity?.inner
    case .rejectProtectionSpace, .cancel: nil
    }
  }
}
