import Foundation
import LarkspurEngine
import LarkspurHTTP

/// The authentication of one request of a session to one target.
typealias AuthenticationFlow = CredentialFlow<SessionCredentials>

/// The session's memory and the program's credentials: in the URL, in the storage, and from the delegate.
struct SessionCredentials: CredentialSource {
  struct Question: Sendable {
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

  /// The delegate's reply to a challenge. Without a delegate it is `performDefaultHandling`.
  enum Reply: Sendable {
    /// Use the credential, or continue without one if it is `nil`.
    case useCredential(URLCredential?)
    case performDefaultHandling
    case rejectProtectionSpace
    case cancel
  }

  private let memory: AuthenticationMemory
  private let storage: URLCredentialStorage?
  private let task: URLSessionTask?
  private let urlCredential: URLCredential?
  /// The credential of the last answer, or `nil` if that answer was sent preemptively; `memory` then has its
  /// credential.
  private var used: URLCredential?
  /// The answer that the target refused last.
  private var refused: AuthenticationAnswer?

  /// Creates the source for a request.
  ///
  /// - Parameters:
  ///   - url: The request's URL, whose user and password are proposed first. `nil` for a request to a proxy.
  ///   - storage: The session's storage, or `nil` if it has none.
  ///   - task: The task that the storage is asked for, or `nil` if there is none.
  init(url: URL?, memory: AuthenticationMemory, storage: URLCredentialStorage?, task: URLSessionTask?) {
    self.memory = memory
    self.storage = storage
    self.task = task
    urlCredential = url.flatMap { URLCredential(of: $0) }
  }

  func preemptive(
    to target: AuthenticationTarget, for request: AuthenticatedRequest
  ) -> AuthenticationLedger.Preemptive? {
    memory.preemptive(to: target, for: request)
  }

  func authorization(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget
  ) -> String? {
    memory.authorization(answer, for: request, to: target)
  }

  func question(_ asked: AuthenticationMachine.Question, of target: AuthenticationTarget) -> Question {
    let space = asked.offer.space
    let proposed = proposed(space, of: target, failures: asked.failures)
    let isRefused = refused?.offer.space == space && refused?.credential == proposed?.passwordCredential
    return Question(
      space: URLProtectionSpace(target, space), proposed: proposed, failures: asked.failures,
      mayBeUsed: asked.failures == 0 && !isRefused)
  }

  mutating func decision(on reply: Reply, to question: Question) -> CredentialDecision {
    switch reply {
    case .useCredential(let credential): use(credential)
    // A refused credential is not sent again by default handling.
    case .performDefaultHandling: use(question.mayBeUsed ? question.proposed : nil)
    case .rejectProtectionSpace: .rejectSpace
    case .cancel: .cancel
    }
  }

  private mutating func use(_ credential: URLCredential?) -> CredentialDecision {
    guard let credential, let password = credential.passwordCredential else { return .credential(nil) }
    used = credential
    return .credential(password)
  }

  mutating func refused(_ answer: AuthenticationAnswer, by target: AuthenticationTarget) {
    refused = answer
    memory.failed(answer, to: target)
  }

  /// Stores the credential in the memory. The returned closure stores it in the storage and notifies observers.
  func accepted(
    _ answer: AuthenticationAnswer, for request: AuthenticatedRequest, to target: AuthenticationTarget, info: [String]
  ) -> (@Sendable () -> Void)? {
    let known = used ?? memory.credential(for: answer.offer.space, of: target)
    guard let credential = known, credential.passwordCredential == answer.credential else { return nil }
    memory.succeeded(answer, credential: credential, for: request, to: target, info: info)
    // A credential from a URL is not stored: the program has the URL.
    guard used != nil, credential !== urlCredential, let storage else { return nil }
    let (space, task) = (URLProtectionSpace(target, answer.offer.space), task)
    return { storage.keep(credential, for: space, task: task) }
  }

  private func proposed(
    _ space: AuthenticationOffer.Space, of target: AuthenticationTarget, failures: Int
  ) -> URLCredential? {
    // Propose the refused credential again, so that a delegate can show it to the user for correction.
    if failures > 0, let used { return used }
    let protectionSpace = URLProtectionSpace(target, space)
    return urlCredential ?? memory.credential(for: space, of: target)
      ?? storage?.proposedCredential(for: protectionSpace, task: task)
  }
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
