import Foundation
import LarkspurTLS

/// What a session asks its delegate during a handshake, and what the answers mean.
enum TrustQuestion {
  /// "Do you trust this server?"
  static func challenge(trust: LarkspurTLS.Trust, port: Int) -> URLAuthenticationChallenge {
    let space = URLProtectionSpace(trust: ServerTrust(trust), port: port)
    return URLAuthenticationChallenge(space: space, proposed: nil, failures: 0, response: nil, sender: nil)
  }

  /// "Which certificate may I show to this server?" `proposed`: what default handling shows.
  static func challenge(
    clientCertificateFor space: URLProtectionSpace, proposed: URLCredential?
  ) -> URLAuthenticationChallenge {
    URLAuthenticationChallenge(space: space, proposed: proposed, failures: 0, response: nil, sender: nil)
  }

  /// A delegate's word about a server.
  static func decision(
    _ reply: AuthenticationConversation.Reply, to challenge: URLAuthenticationChallenge
  ) -> TrustDecision {
    switch reply {
    case .useCredential(let credential):
      // A credential for other certificates is a mistake, or somebody's attempt: it overrides nothing.
      guard case .trust(let trusted)? = credential?.kind, let asked = challenge.protectionSpace.serverTrust,
        trusted === asked || trusted.host == asked.host && trusted.sentChain == asked.sentChain
      else { return .verified }
      return .trusted
    case .performDefaultHandling: return .verified
    // There is no other space to go on to. Programs say this when a pin does not match.
    case .rejectProtectionSpace, .cancel: return .refused
    }
  }

  /// A delegate's word about a client certificate. Nil: none is shown.
  static func identity(
    _ reply: AuthenticationConversation.Reply, to challenge: URLAuthenticationChallenge
  ) -> LarkspurTLS.ClientIdentity? {
    switch reply {
    case .useCredential(let credential): credential?.identity?.inner
    case .performDefaultHandling: challenge.proposedCredential?.identity?.inner
    case .rejectProtectionSpace, .cancel: nil
    }
  }
}
