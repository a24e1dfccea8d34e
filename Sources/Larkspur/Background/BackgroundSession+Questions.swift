import Foundation
import LarkspurTransfers

/// The questions of the executor, which the program's delegate answers.
extension BackgroundSession {
  func answer(_ question: UInt64, _ content: TransferQuestion, for task: URLSessionTask?) {
    let link = link
    let answer: @Sendable (TransferAnswer) -> Void = { link.send(.answer(question: question, $0)) }
    switch content {
    case .beginDelayed:
      guard let task else { return answer(.continueLoading) }
      askToBegin(task, answer)
    case .challenge(let challenge):
      guard let task, let challenge = URLAuthenticationChallenge(challenge) else {
        return answer(.challenge(disposition: .performDefaultHandling, credential: nil))
      }
      answerChallenge(challenge, of: task) { answer(TransferAnswer($0, $1)) }
    }
  }

  /// Asks the delegate about a task whose earliest time has come.
  private func askToBegin(_ task: URLSessionTask, _ answer: @escaping @Sendable (TransferAnswer) -> Void) {
    calls.add { [core] in
      guard let session = task.read({ $0.session }), let request = task.currentRequest else {
        return answer(.continueLoading)
      }
      for case let delegate? in [task.delegate, core.taskDelegate] {
        let hasMethod = task.methodProbe.isImplemented(by: delegate) {
          delegate.urlSession(session, task: task, willBeginDelayedRequest: request) { disposition, next in
            answer(TransferAnswer(disposition, next, isUpload: task is URLSessionUploadTask))
          }
          return true
        }
        if hasMethod { return }
      }
      answer(.continueLoading)
    }
  }

  /// Asks the delegate about a challenge, as `ChallengeRouter` does.
  func answerChallenge(
    _ challenge: URLAuthenticationChallenge, of task: URLSessionTask,
    _ answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    let router = ChallengeRouter(core, decider: task.delegate)
    router.attach(task)
    Task {
      switch await router.ask(challenge) {
      case .useCredential(let credential): answer(.useCredential, credential)
      case .performDefaultHandling: answer(.performDefaultHandling, nil)
      case .cancel: answer(.cancelAuthenticationChallenge, nil)
      case .rejectProtectionSpace: answer(.rejectProtectionSpace, nil)
      }
      router.detach(task)
    }
  }
}

extension TransferAnswer {
  init(_ disposition: URLSession.DelayedRequestDisposition, _ request: URLRequest?, isUpload: Bool) {
    self =
      switch disposition {
      case .continueLoading: .continueLoading
      case .cancel: .cancel
      case .useNewRequest:
        // Without a request there is nothing to load.
        request.flatMap { try? TransferRequest($0, isUpload: isUpload) }.map { .useNewRequest($0) } ?? .cancel
      }
  }

  /// The answer to a challenge, as far as it can travel to another process. A credential that cannot is refused there,
  /// and the task fails as if there were none.
  init(_ disposition: URLSession.AuthChallengeDisposition, _ credential: URLCredential?) {
    let other = Disposition(rawValue: UInt8(clamping: disposition.rawValue)) ?? .performDefaultHandling
    guard let credential else {
      self = .challenge(disposition: other, credential: nil)
      return
    }
    if let user = credential.user, let password = credential.password {
      let persistence = UInt8(clamping: credential.persistence.rawValue)
      self = .challenge(
        disposition: other, credential: .password(user: user, password: password, persistence: persistence))
    } else {
      self = .challenge(disposition: other, credential: .trust)
    }
  }
}

extension TransferAnswer {
  /// The answer to a challenge, from another process.
  var ofChallenge: (URLSession.AuthChallengeDisposition, URLCredential?) {
    guard case .challenge(let raw, let credential) = self,
      let disposition = URLSession.AuthChallengeDisposition(rawValue: Int(raw.rawValue))
    else { return (.performDefaultHandling, nil) }
    switch credential {
    case nil: return (disposition, nil)
    case .password(let user, let password, let persistence):
      let kept = URLCredential.Persistence(rawValue: UInt(persistence)) ?? .none
      return (disposition, URLCredential(user: user, password: password, persistence: kept))
    // Certificates do not travel.
    case .trust: return (.performDefaultHandling, nil)
    }
  }
}

extension TransferChallenge {
  /// The challenge for another process, or `nil` if it cannot travel: questions about certificates are answered by the
  /// session's settings.
  init?(_ challenge: URLAuthenticationChallenge) {
    let space = challenge.protectionSpace
    guard
      space.authenticationMethod != NSURLAuthenticationMethodServerTrust,
      space.authenticationMethod != NSURLAuthenticationMethodClientCertificate
    else { return nil }
    self.init(
      host: space.host, port: space.port, scheme: space.`protocol`, realm: space.realm,
      method: space.authenticationMethod, proxyKind: space.isProxy() ? space.proxyType : nil,
      previousFailures: challenge.previousFailureCount, certificates: [])
  }
}

extension URLAuthenticationChallenge {
  /// Creates the challenge that came from another process, or returns `nil` if it cannot travel.
  convenience init?(_ challenge: TransferChallenge) {
    guard challenge.certificates.isEmpty else { return nil }
    let space =
      if let proxy = challenge.proxyKind {
        URLProtectionSpace(
          proxyHost: challenge.host, port: challenge.port, type: proxy, realm: challenge.realm,
          authenticationMethod: challenge.method)
      } else {
        URLProtectionSpace(
          host: challenge.host, port: challenge.port, protocol: challenge.scheme, realm: challenge.realm,
          authenticationMethod: challenge.method)
      }
    self.init(space: space, proposed: nil, failures: challenge.previousFailures, response: nil)
  }
}
