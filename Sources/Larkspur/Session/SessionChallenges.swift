import Foundation
import LarkspurHTTP
import LarkspurTLS
import LarkspurTransport
import Synchronization

/// Whom the challenges of new connections to one origin go to: they belong to no task, and are asked of the session's
/// delegate; if that has no word, of the task that has last asked for a connection.
final class SessionChallenges: Sendable {
  private let core: Unowned
  private let port: Int
  private let host: String
  private let latest = Mutex<URLSessionTask?>(nil)

  /// The core owns, by its engine, whoever holds this.
  private struct Unowned: @unchecked Sendable {
    weak var core: SessionCore?
  }

  init(_ core: SessionCore, host: String, port: Int) {
    self.core = Unowned(core: core)
    self.host = host
    self.port = port
  }

  func isAsked(for task: URLSessionTask) { latest.withLock { $0 = task } }

  /// The task is over, and is not kept on account of a connection. It may have gone on in the place of another one.
  func isOver(_ task: URLSessionTask) {
    let last = latest.withLock { latest -> URLSessionTask? in
      guard let last = latest, last === task || last.read({ $0.session == nil }) else { return nil }
      latest = nil
      return last
    }
    // Whoever goes with it may call back: not while the lock is held.
    withExtendedLifetime(last) {}
  }

  // MARK: - What the transport asks, on a thread that is not the loop's

  func decide(_ trust: LarkspurTLS.Trust) async -> TrustDecision {
    let challenge = TrustQuestion.challenge(trust: trust, port: port)
    return TrustQuestion.decision(await ask(challenge), to: challenge)
  }

  func identity(for issuers: [DistinguishedName]) async -> LarkspurTLS.ClientIdentity? {
    let challenge = TrustQuestion.challenge(clientCertificateFor: host, port: port, issuers: issuers, proposed: nil)
    return TrustQuestion.identity(await ask(challenge), to: challenge)
  }

  /// A value for the next CONNECT. Nil: there is none.
  func authorization(for asked: ProxyChallenge, _ talks: ProxyTalks) async -> String? {
    guard let core = core.core else { return nil }
    var talk =
      talks.talk
      ?? AuthenticationConversation(
        with: AuthenticationTarget(proxy: asked.proxy),
        about: AuthenticatedRequest(method: asked.method, target: asked.target, to: .proxy),
        url: URL(fileURLWithPath: "/"), memory: core.memory, storage: core.credentialStorage)
    var step = talk.challenged(asked.values, canHashBody: true)
    while case .ask(let question) = step { step = talk.replied(await ask(question.challenge(response: nil))) }
    talks.talk = talk
    if case .send(let value) = step { return value }
    return nil
  }

  private func ask(_ challenge: URLAuthenticationChallenge) async -> AuthenticationConversation.Reply {
    guard let core = core.core else { return .performDefaultHandling }
    let task = latest.withLock { $0 }
    let session = task?.read { $0.session }
    guard let session else { return .performDefaultHandling }
    let asked = Handover<Question<DelegateReply>>()
    await core.delegateQueue.run {
      if let delegate = core.delegate, !challenge.protectionSpace.isHTTPAuthentication {
        let question = Question<DelegateReply>()
        let hasWord = challenge.delegateWord.isGiven(by: delegate) {
          delegate.urlSession(session, didReceive: challenge) { question.answer(DelegateReply($0, $1)) }
          return true
        }
        if hasWord { return asked.value = question }
      }
      guard let task else { return }
      for case let delegate? in [task.delegate, core.delegate as? any URLSessionTaskDelegate] {
        let question = Question<DelegateReply>()
        let hasWord = challenge.delegateWord.isGiven(by: delegate) {
          delegate.urlSession(session, task: task, didReceive: challenge) { question.answer(DelegateReply($0, $1)) }
          return true
        }
        if hasWord { return asked.value = question }
      }
    }
    guard let question = asked.value else { return .performDefaultHandling }
    let reply = await withTaskCancellationHandler {
      await question.wait()
    } onCancel: {
      question.giveUp()
    }
    return reply?.reply ?? .cancel
  }
}

/// One tunnel's challenges, one after another.
final class ProxyTalks: @unchecked Sendable {
  var talk: AuthenticationConversation?
}

extension URLProtectionSpace {
  /// Whether it is a status that asks, and not a handshake.
  fileprivate var isHTTPAuthentication: Bool {
    authenticationMethod != NSURLAuthenticationMethodServerTrust
      && authenticationMethod != NSURLAuthenticationMethodClientCertificate
  }
}
