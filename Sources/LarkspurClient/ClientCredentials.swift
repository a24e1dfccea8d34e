import LarkspurEngine
import LarkspurHTTP
import Synchronization

/// The credentials that servers and proxies have accepted from one client. For any thread.
final class ClientCredentials: CredentialSource, Sendable {
  /// A challenge, and whether a credential of the request has been refused.
  struct Question: Sendable {
    let challenge: HTTPClient.Challenge
    let isRepeated: Bool
  }

  typealias Reply = PasswordCredential?

  private let ledger = Mutex(AuthenticationLedger(hash: messageHash))

  /// Whether no target has accepted a credential.
  var isBlank: Bool { ledger.withLock { $0.isEmpty } }

  func preemptive(
    to target: AuthenticationTarget, for request: AuthenticatedRequest
  ) -> AuthenticationLedger.Preemptive? {
    ledger.withLock { $0.preemptive(for: request, to: target, clientNonce: clientNonce()) }
  }

  func authorization(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget
  ) -> String? {
    ledger.withLock { $0.authorization(answer, for: request, to: target, clientNonce: clientNonce()) }
  }

  func question(_ asked: AuthenticationMachine.Question, of target: AuthenticationTarget) -> Question {
    let space = asked.offer.space
    let challenge = HTTPClient.Challenge(
      host: target.host, port: target.port, isProxy: target.role == .proxy, isSecure: target.scheme == "https",
      realm: space.realm, isDigest: space.method == .digest)
    return Question(challenge: challenge, isRepeated: asked.failures > 0)
  }

  func decision(on reply: PasswordCredential?, to question: Question) -> CredentialDecision { .credential(reply) }

  func refused(_ answer: AuthenticationAnswer, by target: AuthenticationTarget) {
    ledger.withLock { $0.forget(answer, of: target) }
  }

  func accepted(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget, info: [String]
  ) -> (@Sendable () -> Void)? {
    ledger.withLock { $0.remember(answer, for: request, to: target, info: info) }
    return nil
  }
}

/// The challenges of one request's origin and proxy. It belongs to the load's loop.
final class ClientAuthentication { var sides = LoadAuthentication<ClientCredentials>() }

extension HTTPClient.Options {
  /// Asks the program. A credential that was refused is not sent again, so there is one question for each request.
  func reply(to question: ClientCredentials.Question) async -> PasswordCredential? {
    guard !question.isRepeated else { return nil }
    return await credential?(question.challenge)
  }
}

extension HTTPClient {
  /// A demand of a server or a proxy for a user and a password, by Basic (RFC 7617) or Digest (RFC 7616).
  public struct Challenge: Hashable, Sendable {
    /// The host that demands them, in lower case.
    public let host: String
    /// The host's port.
    public let port: Int
    /// Whether the host is a proxy (a response with status 407), and not the server of the request.
    public let isProxy: Bool
    /// Whether the host gets the request over TLS. Without TLS, Basic shows the password to all on the way.
    public let isSecure: Bool
    /// The name that the host gives to the part of it that needs the password.
    public let realm: String?
    /// Whether the host gets a digest in place of the password.
    public let isDigest: Bool
  }
}
