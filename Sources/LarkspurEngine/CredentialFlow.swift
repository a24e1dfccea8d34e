import LarkspurBytes
import LarkspurHTTP

/// The authentication of one request to one target: the owner of an `AuthenticationMachine`. A redirect to another origin
/// starts with a new value.
///
/// The owner calls ``preemptiveValue()`` before the first send, ``challenged(_:canHashBody:)`` for each 401 (of an origin) or
/// 407 (of a proxy), ``replied(_:)`` with the program's reply, and ``accepted(info:)`` for any other response. It then does
/// what the returned ``Step`` says.
package struct CredentialFlow<Source: CredentialSource> {
  package typealias Question = Source.Question
  package typealias Reply = Source.Reply

  package enum Step {
    /// Ask the program.
    case ask(Question)
    /// Send the request again with this value of `Authorization` or `Proxy-Authorization`, replacing any other value.
    case send(value: String)
    /// Deliver the response.
    case deliver(AuthenticationMachine.Reason)
    /// Cancel the request.
    case cancel
    /// Do nothing: no question was pending.
    case nothing
  }

  private var machine = AuthenticationMachine()
  private let target: AuthenticationTarget
  private let request: AuthenticatedRequest
  private var source: Source
  private var question: Question?
  /// A stable stand-in for the last value if that is a Digest value, which differs with each request; otherwise `nil`.
  package private(set) var authorizationIdentity: String?

  /// - Parameter request: The request as `target` sees it.
  package init(with target: AuthenticationTarget, about request: AuthenticatedRequest, from source: Source) {
    self.target = target
    self.request = request
    self.source = source
  }

  /// Returns the value that the first send carries before any challenge, or `nil` if there is none.
  package mutating func preemptiveValue() -> String? {
    guard let preemptive = source.preemptive(to: target, for: request) else { return nil }
    machine.sentPreemptively(preemptive.answer)
    authorizationIdentity = preemptive.answer.authorizationIdentity
    return preemptive.value
  }

  /// Handles a challenge.
  ///
  /// - Parameters:
  ///   - fields: The values of `WWW-Authenticate` or `Proxy-Authenticate`.
  ///   - canHashBody: Whether the body can be read before it is sent.
  package mutating func challenged(_ fields: [String], canHashBody: Bool) -> Step {
    var actions: AuthenticationMachine.Actions = []
    machine.challenged(fields, canHashBody: canHashBody, into: &actions)
    return perform(actions)
  }

  package mutating func replied(_ reply: Reply) -> Step {
    guard let question else { return .nothing }
    var actions: AuthenticationMachine.Actions = []
    switch source.decision(on: reply, to: question) {
    case .credential(let credential?): machine.credentialGiven(credential, into: &actions)
    case .credential(nil): machine.credentialDeclined(into: &actions)
    case .rejectSpace: machine.spaceRejected(into: &actions)
    case .cancel: machine.cancelled(into: &actions)
    }
    return perform(actions)
  }

  /// Handles a response that is not a challenge.
  ///
  /// - Parameter info: The values of `Authentication-Info` or `Proxy-Authentication-Info`.
  /// - Returns: A closure with the work that may block, or `nil` if there is no work. Call it where blocking does no
  ///   harm.
  package mutating func accepted(info: [String]) -> (@Sendable () -> Void)? {
    var actions: AuthenticationMachine.Actions = []
    machine.accepted(into: &actions)
    var keeping: (@Sendable () -> Void)?
    for case .remember(let answer) in actions {
      keeping = source.accepted(answer, for: request, to: target, info: info)
    }
    return keeping
  }

  private mutating func perform(_ actions: AuthenticationMachine.Actions) -> Step {
    question = nil
    var step = Step.nothing
    for action in actions {
      switch action {
      case .ask(let asked):
        let question = source.question(asked, of: target)
        self.question = question
        step = .ask(question)
      case .send(let answer): step = send(answer)
      case .forget(let answer): source.refused(answer, by: target)
      case .remember: break
      case .deliver(let reason): step = .deliver(reason)
      case .cancel: step = .cancel
      }
    }
    return step
  }

  private mutating func send(_ answer: AuthenticationAnswer) -> Step {
    if let value = source.authorization(answer, for: request, to: target) {
      authorizationIdentity = answer.authorizationIdentity
      return .send(value: value)
    }
    var actions: AuthenticationMachine.Actions = []
    machine.answerFailed(into: &actions)
    for case .deliver(let reason) in actions { return .deliver(reason) }
    return .nothing
  }
}

/// A secret of this process.
private let secret = (0..<32).map { _ in UInt8.random(in: .min ... .max) }

extension AuthenticationAnswer {
  /// A stable text for the identity of a Digest answer, whose values change with each request; `nil` for Basic. The hash
  /// contains a secret of this process, because caches write the fields that selected a response to disk, and without the
  /// secret a password could be guessed from the text.
  fileprivate var authorizationIdentity: String? {
    guard case .digest(let challenge) = offer else { return nil }
    let joined = [challenge.realm, credential.user, credential.password].map(\.debugDescription).joined(separator: ",")
    return messageHash(.sha256, secret + Array(joined.utf8)).map(Base64.encode)
  }
}
