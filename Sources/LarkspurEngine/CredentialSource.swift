import LarkspurHTTP

/// The source of a flow's credentials, and the keeper of those that targets have accepted: what differs between clients.
package protocol CredentialSource {
  /// A question about a protection space, in the client's terms.
  associatedtype Question: Sendable
  /// The program's reply to a question.
  associatedtype Reply: Sendable

  /// Returns the answer that a request may carry before any challenge, or `nil` if no accepted one applies.
  func preemptive(
    to target: AuthenticationTarget, for request: AuthenticatedRequest
  ) -> AuthenticationLedger.Preemptive?
  /// Returns the value of `Authorization` or `Proxy-Authorization`, or `nil` if the answer cannot be written.
  func authorization(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget
  ) -> String?
  func question(_ asked: AuthenticationMachine.Question, of target: AuthenticationTarget) -> Question
  mutating func decision(on reply: Reply, to question: Question) -> CredentialDecision
  /// Drops an answer that the target has refused.
  mutating func refused(_ answer: AuthenticationAnswer, by target: AuthenticationTarget)
  /// Keeps an answer that the target has accepted.
  ///
  /// - Parameter info: The values of `Authentication-Info` or `Proxy-Authentication-Info`.
  /// - Returns: A closure with the work that may block, or `nil` if there is no work. Call it where blocking does no
  ///   harm.
  func accepted(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget, info: [String]
  ) -> (@Sendable () -> Void)?
}

/// What a reply means to the machine.
package enum CredentialDecision: Sendable {
  /// Use the credential, or continue without one if it is `nil`.
  case credential(PasswordCredential?)
  case rejectSpace
  case cancel
}
