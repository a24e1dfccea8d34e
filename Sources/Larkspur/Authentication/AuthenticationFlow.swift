import Foundation
import LarkspurEngine
import LarkspurHTTP

/// The authentication of one request to one target. Combines the machine, the session's memory and the program's
/// credentials. A redirect to another origin starts with a new value.
///
/// The owner calls ``preemptiveValue()`` before the first send, ``challenged(_:canHashBody:)`` for each 401 (of an
/// origin) or 407 (of a proxy), ``replied(_:)`` with the delegate's reply, and ``accepted(info:)`` for any other
/// response. It then does what the returned ``Step`` says.
struct AuthenticationFlow {
  enum Step {
    /// Ask the delegate. If there is none, reply ``Reply/performDefaultHandling``.
    case ask(Question)
    /// Send the request again with this value of `Authorization` or `Proxy-Authorization`, replacing any other value.
    case send(value: String)
    /// Deliver the response.
    case deliver(AuthenticationMachine.Reason)
    /// Fail the task with `URLError.cancelled`.
    case cancel
    /// Do nothing: no question was pending.
    case nothing
  }

  struct Question {
    let space: URLProtectionSpace
    let proposed: URLCredential?
    let failures: Int
    /// Whether default handling may use `proposed`: nothing has been refused in this space, and `proposed` is not the
    /// credential that the target refused last.
    fileprivate let mayBeUsed: Bool

    func challenge(
      response: URLResponse?, sender: (any URLAuthenticationChallengeSender)? = nil
    ) -> URLAuthenticationChallenge {
      URLAuthenticationChallenge(
        space: space, proposed: proposed, failures: failures, response: response, sender: sender)
    }
  }

  /// The delegate's reply to a challenge.
  enum Reply: Sendable {
    /// Use the credential, or continue without one if it is `nil`.
    case useCredential(URLCredential?)
    case performDefaultHandling
    case rejectProtectionSpace
    case cancel
  }

  private var machine = AuthenticationMachine()
  private let target: AuthenticationTarget
  private let request: AuthenticatedRequest
  private let memory: AuthenticationMemory
  private let storage: URLCredentialStorage?
  private let task: URLSessionTask?
  private let urlCredential: URLCredential?
  private var question: Question?
  /// The credential of the last answer, or `nil` if that answer was sent preemptively; `memory` then has its
  /// credential.
  private var used: URLCredential?
  /// A stable stand-in for the last value if that is a Digest value, which differs with each request; otherwise `nil`.
  private(set) var authorizationIdentity: String?
  /// The answer that the target refused last.
  private var refused: AuthenticationAnswer?

  /// Creates the authentication of a request.
  ///
  /// - Parameters:
  ///   - request: The request as `target` sees it.
  ///   - url: The request's URL. For an origin, its user and password are proposed first.
  ///   - storage: The session's storage, or `nil` if it has none.
  ///   - task: The task that the storage is asked for, or `nil` if there is none.
  init(
    with target: AuthenticationTarget, about request: AuthenticatedRequest, url: URL, memory: AuthenticationMemory,
    storage: URLCredentialStorage?, task: URLSessionTask? = nil
  ) {
    self.task = task
    self.target = target
    self.request = request
    self.memory = memory
    self.storage = storage
    urlCredential = target.role == .origin ? URLCredential(of: url) : nil
  }

  /// Returns the value that the first send carries before any challenge, or `nil` if there is none.
  mutating func preemptiveValue() -> String? {
    guard let preemptive = memory.preemptive(to: target, for: request) else { return nil }
    machine.sentPreemptively(preemptive.answer)
    authorizationIdentity = preemptive.answer.authorizationIdentity
    return preemptive.value
  }

  /// Handles a challenge.
  ///
  /// - Parameters:
  ///   - fields: The values of `WWW-Authenticate` or `Proxy-Authenticate`.
  ///   - canHashBody: Whether the body can be read before it is sent.
  mutating func challenged(_ fields: [String], canHashBody: Bool) -> Step {
    var actions: AuthenticationMachine.Actions = []
    machine.challenged(fields, canHashBody: canHashBody, into: &actions)
    return perform(actions)
  }

  mutating func replied(_ reply: Reply) -> Step {
    guard let question else { return .nothing }
    var actions: AuthenticationMachine.Actions = []
    switch reply {
    case .useCredential(let credential): use(credential, &actions)
    // A refused credential is not sent again by default handling.
    case .performDefaultHandling: use(question.mayBeUsed ? question.proposed : nil, &actions)
    case .rejectProtectionSpace: machine.spaceRejected(into: &actions)
    case .cancel: machine.cancelled(into: &actions)
    }
    return perform(actions)
  }

  /// Handles a response that is not a challenge.
  ///
  /// - Parameter info: The values of `Authentication-Info` or `Proxy-Authentication-Info`.
  /// - Returns: A closure that stores the credential and notifies observers, or `nil` if nothing has to be stored. It
  ///   may block; call it where that does no harm.
  mutating func accepted(info: [String]) -> (@Sendable () -> Void)? {
    var actions: AuthenticationMachine.Actions = []
    machine.accepted(into: &actions)
    var keeping: (@Sendable () -> Void)?
    for case .remember(let answer) in actions { keeping = remember(answer, info) }
    return keeping
  }

  // MARK: -

  private mutating func use(_ credential: URLCredential?, _ actions: inout AuthenticationMachine.Actions) {
    if let credential, let password = credential.passwordCredential {
      used = credential
      machine.credentialGiven(password, into: &actions)
    } else {
      machine.credentialDeclined(into: &actions)
    }
  }

  private mutating func perform(_ actions: AuthenticationMachine.Actions) -> Step {
    question = nil
    var step = Step.nothing
    for action in actions {
      switch action {
      case .ask(let asked):
        let space = asked.offer.space
        let proposed = proposed(space, failures: asked.failures)
        let isRefused = refused?.offer.space == space && refused?.credential == proposed?.passwordCredential
        let question = Question(
          space: URLProtectionSpace(target, space), proposed: proposed, failures: asked.failures,
          mayBeUsed: asked.failures == 0 && !isRefused)
        self.question = question
        step = .ask(question)
      case .send(let answer): step = send(answer)
      case .forget(let answer):
        refused = answer
        memory.failed(answer, to: target)
      case .remember: break
      case .deliver(let reason): step = .deliver(reason)
      case .cancel: step = .cancel
      }
    }
    return step
  }

  private mutating func send(_ answer: AuthenticationAnswer) -> Step {
    if let value = memory.authorization(answer, for: request, to: target) {
      authorizationIdentity = answer.authorizationIdentity
      return .send(value: value)
    }
    var actions: AuthenticationMachine.Actions = []
    machine.answerFailed(into: &actions)
    for case .deliver(let reason) in actions { return .deliver(reason) }
    return .nothing
  }

  private func proposed(_ space: AuthenticationOffer.Space, failures: Int) -> URLCredential? {
    // Propose the refused credential again, so that a delegate can show it to the user for correction.
    if failures > 0, let used { return used }
    let protectionSpace = URLProtectionSpace(target, space)
    return urlCredential ?? memory.credential(for: space, of: target)
      ?? storage?.proposedCredential(for: protectionSpace, task: task)
  }

  private func remember(_ answer: AuthenticationAnswer, _ info: [String]) -> (@Sendable () -> Void)? {
    let known = used ?? memory.credential(for: answer.offer.space, of: target)
    guard let credential = known, credential.passwordCredential == answer.credential else { return nil }
    memory.succeeded(answer, credential: credential, for: request, to: target, info: info)
    // A credential from a URL is not stored: the program has the URL.
    guard used != nil, credential !== urlCredential, let storage else { return nil }
    let (space, task) = (URLProtectionSpace(target, answer.offer.space), task)
    return { storage.keep(credential, for: space, task: task) }
  }
}

extension AuthenticationAnswer {
  /// A stable text for the identity of a Digest answer, whose values change with each request; `nil` for Basic. The
  /// hash contains a secret of this process, because caches write the fields that selected a response to disk, and
  /// without the secret a password could be guessed from the text.
  fileprivate var authorizationIdentity: String? {
    guard case .digest(let challenge) = offer else { return nil }
    let joined = [challenge.realm, credential.user, credential.password].map(\.debugDescription).joined(separator: ",")
    return messageHash(.sha256, Self.secret + Array(joined.utf8)).map { Data($0).base64EncodedString() }
  }

  private static let secret = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
}

extension URLCredential {
  /// Creates a credential of a URL's user and password, decoded, or returns `nil` if one of them is missing.
  convenience init?(of url: URL) {
    guard let user = url.user(percentEncoded: false), let password = url.password(percentEncoded: false) else {
      return nil
    }
    self.init(user: user, password: password, persistence: .forSession)
  }
}

extension URLCredentialStorage {
  /// Returns the credential that default handling uses: the default credential of the space, or the space's only one.
  /// If there is neither, those of the space with the same host and realm and the method
  /// ``NSURLAuthenticationMethodDefault`` count. For a challenge without a realm, programs store credentials under no
  /// realm, an empty one, or the host's name: all three are searched.
  ///
  /// - Parameter task: The task that the storage is asked for, or `nil` if there is none.
  func proposedCredential(for space: URLProtectionSpace, task: URLSessionTask?) -> URLCredential? {
    for space in space.realmsAlike.flatMap({ [$0, $0.withDefaultMethod] }) {
      if let credential = defaultCredential(for: space, of: task) { return credential }
      if let all = credentials(for: space, of: task), all.count == 1 { return all.values.first }
    }
    return nil
  }

  /// Stores a credential that was accepted, unless the storage has it already.
  func keep(_ credential: URLCredential, for space: URLProtectionSpace, task: URLSessionTask?) {
    guard let user = credential.user, credentials(for: space, of: task)?[user] != credential else { return }
    if let task { set(credential, for: space, task: task) } else { set(credential, for: space) }
  }

  private func defaultCredential(for space: URLProtectionSpace, of task: URLSessionTask?) -> URLCredential? {
    guard let task else { return defaultCredential(for: space) }
    var found: URLCredential?
    getDefaultCredential(for: space, task: task) { found = $0 }
    return found
  }

  private func credentials(for space: URLProtectionSpace, of task: URLSessionTask?) -> [String: URLCredential]? {
    guard let task else { return credentials(for: space) }
    var found: [String: URLCredential]?
    getCredentials(for: space, task: task) { found = $0 }
    return found
  }
}

extension URLProtectionSpace {
  fileprivate var withDefaultMethod: URLProtectionSpace { with(realm: realm, method: nil) }

  /// The space itself, followed, if it has no realm, by the spaces that mean the same. RFC 7617 2 requires a realm, but
  /// some servers send none.
  fileprivate var realmsAlike: [URLProtectionSpace] {
    guard realm?.isEmpty != false else { return [self] }
    return [self] + [nil, "", host].filter { $0 != realm }.map { with(realm: $0, method: authenticationMethod) }
  }

  private func with(realm: String?, method: String?) -> URLProtectionSpace {
    isProxy()
      ? URLProtectionSpace(proxyHost: host, port: port, type: proxyType, realm: realm, authenticationMethod: method)
      : URLProtectionSpace(host: host, port: port, protocol: `protocol`, realm: realm, authenticationMethod: method)
  }
}
