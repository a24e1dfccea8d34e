import Foundation
import LarkspurHTTP
import LarkspurTLS
import LarkspurTransport
import Synchronization

/// Whom the challenges of new connections to one origin go to: they belong to no task, and are asked of the session's
/// delegate; if that has no word, of the task that has last asked for a connection. A connection whose task is over before
/// it is there serves the next one: so the challenge waits for that, if only a task's delegate could have a word.
final class SessionChallenges: Sendable {
  /// It owns, by its engine, whoever holds this; and lets go of the engine when the session is over.
  private let core: SessionCore
  /// Whether there is a delegate to be asked.
  let asksDelegate: Bool
  private let state = Mutex(State())

  private struct State {
    var latest: URLSessionTask?
    /// Those that wait for a task.
    var waiting: [Question<Void>] = []
  }

  init(_ core: SessionCore, asksDelegate: Bool) {
    self.core = core
    self.asksDelegate = asksDelegate
  }

  func isAsked(for task: URLSessionTask) {
    let waiting = state.withLock { state in
      state.latest = task
      guard !state.waiting.isEmpty else { return [Question<Void>]() }
      defer { state.waiting = [] }
      return state.waiting
    }
    for question in waiting { question.answer(()) }
  }

  /// The task is over, and is not kept on account of a connection. It may have gone on in the place of another one.
  func isOver(_ task: URLSessionTask) {
    let last = state.withLock { state -> URLSessionTask? in
      guard let last = state.latest, last === task || last.read({ $0.session == nil }) else { return nil }
      state.latest = nil
      return last
    }
    // Whoever goes with it may call back: not while the lock is held.
    withExtendedLifetime(last) {}
  }

  // MARK: - What the transport asks, on a thread that is not the loop's

  /// Whether a server is trusted: the origin, or a proxy.
  func decide(_ trust: LarkspurTLS.Trust, port: Int) async -> TrustDecision {
    let challenge = TrustQuestion.challenge(trust: trust, port: port)
    return TrustQuestion.decision(await ask(challenge), to: challenge)
  }

  /// What a server that wants a certificate is shown. Default handling shows the storage's default identity.
  func identity(
    forHost host: String, port: Int, issuers: [DistinguishedName]
  ) async -> LarkspurTLS.ClientIdentity? {
    let space = URLProtectionSpace(clientCertificateFor: host, port: port, issuers: issuers.map { Data($0.der) })
    let task = state.withLock { $0.latest }
    let stored = core.credentialStorage?.proposedCredential(for: space, task: task)
    let challenge = TrustQuestion.challenge(
      clientCertificateFor: space, proposed: stored?.identity == nil ? nil : stored)
    return TrustQuestion.identity(await ask(challenge), to: challenge)
  }

  /// About a tunnel.
  func conversation(about request: ProxyChallenge.Request) -> AuthenticationConversation {
    AuthenticationConversation(
      with: AuthenticationTarget(proxy: request.proxy),
      about: AuthenticatedRequest(method: request.method, target: request.target, to: .proxy),
      url: URL(fileURLWithPath: "/"), memory: core.memory, storage: core.credentialStorage,
      task: state.withLock { $0.latest })
  }

  func ask(_ challenge: URLAuthenticationChallenge) async -> AuthenticationConversation.Reply {
    guard asksDelegate else { return .performDefaultHandling }
    while true {
      let task = state.withLock { $0.latest }
      guard let session = task?.read({ $0.session }) ?? core.keptSession else {
        // There is no delegate of the session's: the word is a task's, and that is over.
        guard await aTaskComes(after: task) else { return .cancel }
        continue
      }
      if let question = await question(challenge, session, task, core) {
        let reply = await withTaskCancellationHandler {
          await question.wait()
        } onCancel: {
          question.giveUp()
        }
        return reply ?? .cancel
      }
      guard task == nil else { return .performDefaultHandling }
      guard await aTaskComes(after: nil) else { return .cancel }
    }
  }

  /// Nil: none of the delegates has a word.
  private func question(
    _ challenge: URLAuthenticationChallenge, _ session: URLSession, _ task: URLSessionTask?, _ core: SessionCore
  ) async -> Question<AuthenticationConversation.Reply>? {
    let asked = Handover<Question<AuthenticationConversation.Reply>>()
    await core.delegateQueue.run {
      if let delegate = core.delegate, !challenge.protectionSpace.isHTTPAuthentication {
        let question = Question<AuthenticationConversation.Reply>()
        let hasWord = challenge.delegateWord.isGiven(by: delegate) {
          delegate.urlSession(session, didReceive: challenge) { question.answer(.init($0, $1)) }
          return true
        }
        if hasWord { return asked.value = question }
      }
      guard let task else { return }
      for case let delegate? in [task.delegate, core.delegate as? any URLSessionTaskDelegate] {
        let question = Question<AuthenticationConversation.Reply>()
        let hasWord = challenge.delegateWord.isGiven(by: delegate) {
          delegate.urlSession(session, task: task, didReceive: challenge) { question.answer(.init($0, $1)) }
          return true
        }
        if hasWord { return asked.value = question }
      }
    }
    return asked.value
  }

  /// Waits for a task that wants the connection. False: the connection is not wanted any more.
  ///
  /// - Parameter last: The one that is over, if there was one.
  private func aTaskComes(after last: URLSessionTask?) async -> Bool {
    let newcomer = Question<Void>()
    let isThere = state.withLock { state in
      if let latest = state.latest, latest !== last { return true }
      state.waiting.append(newcomer)
      return false
    }
    if isThere { return true }
    let answer: Void? = await withTaskCancellationHandler {
      await newcomer.wait()
    } onCancel: {
      newcomer.giveUp()
    }
    state.withLock { $0.waiting.removeAll { $0 === newcomer } }
    return answer != nil
  }
}

extension URLProtectionSpace {
  /// Whether it is a status that asks, and not a handshake.
  fileprivate var isHTTPAuthentication: Bool {
    authenticationMethod != NSURLAuthenticationMethodServerTrust
      && authenticationMethod != NSURLAuthenticationMethodClientCertificate
  }
}
