import Foundation
import LarkspurHTTP

/// Everything about the authentication of one request to one target: the machine, the session's memory and the users'
/// credentials, put together. A value of its task's; a redirect to another origin begins with a new one.
///
/// Its owner calls ``preemptiveValue()`` before the first send, ``challenged(_:canHashBody:)`` for each 401 (an
/// origin's) or 407 (a proxy's), ``replied(_:)`` for what the delegate says, ``accepted(info:)`` for any other response, and
/// does what the ``Step`` says.
struct AuthenticationConversation {
  enum Step {
    /// Ask the delegate. Without one, reply ``Reply/performDefaultHandling``.
    case ask(Question)
    /// Send the request again with this value of `Authorization` or `Proxy-Authorization`, in the place of any other.
    case send(value: String)
    /// The response is the result.
    case deliver(AuthenticationMachine.Reason)
    /// Fail the task with `URLError.cancelled`.
    case cancel
    /// The fact belonged to no question: nothing is to be done.
    case nothing
  }

  struct Question {
    let space: URLProtectionSpace
    let proposed: URLCredential?
    let failures: Int
    /// What is proposed has not been refused here.
    fileprivate let mayBeUsed: Bool

    func challenge(
      response: URLResponse?, sender: (any URLAuthenticationChallengeSender)? = nil
    ) -> URLAuthenticationChallenge {
      URLAuthenticationChallenge(
        space: space, proposed: proposed, failures: failures, response: response, sender: sender)
    }
  }

  /// A delegate's disposition.
  enum Reply: Sendable {
    /// Nil: go on without one.
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
  /// What the last answer came from. Nil: it was sent unasked, and the memory has it.
  private var used: URLCredential?
  /// For whom the last value spoke, where that itself is another one each time. Nil: it is the same each time, or there is none.
  private(set) var speaker: String?
  /// What the target has refused last.
  private var refused: AuthenticationAnswer?

  /// - Parameters:
  ///   - request: As `target` sees it.
  ///   - url: Of the request; its user and password are the first to be proposed to an origin.
  ///   - storage: The session's. Nil: it has none.
  ///   - task: For whom the storage is asked. Nil: for none.
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

  /// The value that the first send carries unasked. Nil: none.
  mutating func preemptiveValue() -> String? {
    guard let preemptive = memory.preemptive(to: target, for: request) else { return nil }
    machine.sentPreemptively(preemptive.answer)
    speaker = preemptive.answer.speaker
    return preemptive.value
  }

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
    // What was refused once is not tried again by itself.
    case .performDefaultHandling: use(question.mayBeUsed ? question.proposed : nil, &actions)
    case .rejectProtectionSpace: machine.spaceRejected(into: &actions)
    case .cancel: machine.cancelled(into: &actions)
    }
    return perform(actions)
  }

  /// The target has answered with something else than a challenge. `info`: the values of `Authentication-Info` or
  /// `Proxy-Authentication-Info`. Returns what is to be done where it may take its time: the storage keeps the credential,
  /// and tells whoever wants to hear of it. Nil: nothing.
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
      speaker = answer.speaker
      return .send(value: value)
    }
    var actions: AuthenticationMachine.Actions = []
    machine.answerFailed(into: &actions)
    for case .deliver(let reason) in actions { return .deliver(reason) }
    return .nothing
  }

  private func proposed(_ space: AuthenticationOffer.Space, failures: Int) -> URLCredential? {
    // Delegates show it again, to be corrected.
    if failures > 0, let used { return used }
    let protectionSpace = URLProtectionSpace(target, space)
    return urlCredential ?? memory.credential(for: space, of: target)
      ?? storage?.proposedCredential(for: protectionSpace, task: task)
  }

  private func remember(_ answer: AuthenticationAnswer, _ info: [String]) -> (@Sendable () -> Void)? {
    let known = used ?? memory.credential(for: answer.offer.space, of: target)
    guard let credential = known, credential.passwordCredential == answer.credential else { return nil }
    memory.succeeded(answer, credential: credential, for: request, to: target, info: info)
    // What stands in a URL is kept by whoever has the URL.
    guard used != nil, credential !== urlCredential, let storage else { return nil }
    let (space, task) = (URLProtectionSpace(target, answer.offer.space), task)
    return { storage.keep(credential, for: space, task: task) }
  }
}

extension AuthenticationAnswer {
  /// Of Digest, whose values have counters and random words. It means nothing to another process: caches write down what they
  /// choose by, and a password could be guessed from it.
  fileprivate var speaker: String? {
    guard case .digest(let challenge) = offer else { return nil }
    let words = [challenge.realm, credential.user, credential.password].map(\.debugDescription).joined(separator: ",")
    return messageHash(.sha256, Self.secret + Array(words.utf8)).map { Data($0).base64EncodedString() }
  }

  private static let secret = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
}

extension URLCredential {
  /// The user and the password of a URL, decoded. Nil: there is none.
  convenience init?(of url: URL) {
    guard let user = url.user(percentEncoded: false), let password = url.password(percentEncoded: false) else {
      return nil
    }
    self.init(user: user, password: password, persistence: .forSession)
  }
}

extension URLCredentialStorage {
  /// What default handling would answer: the default credential, or the only one that there is; of the space, or else of
  /// the one with the same host and realm whose method is ``NSURLAuthenticationMethodDefault``. For a challenge that names no realm
  /// programs store a credential without one, with an empty one, or with the host for its realm: each of them is found.
  ///
  /// - Parameter task: The task that the storage is asked for, or `nil` if there is none.
  func proposedCredential(for space: URLProtectionSpace, task: URLSessionTask?) -> URLCredential? {
    for space in space.realmsAlike.flatMap({ [$0, $0.withDefaultMethod] }) {
      if let credential = defaultCredential(for: space, of: task) { return credential }
      if let all = credentials(for: space, of: task), all.count == 1 { return all.values.first }
    }
    return nil
  }

  /// Keeps a credential that was accepted.
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

  /// The space, and behind it those that mean the same if it has no realm (RFC 7617 2 requires one; some servers send none).
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
