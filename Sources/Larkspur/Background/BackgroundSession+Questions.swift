import Foundation
import LarkspurTransfers

/// The questions of the runner, which the program's delegate answers.
extension BackgroundSession {
  func ask(_ question: TransferQuestion, for number: Int, _ answer: @escaping @Sendable (TransferAnswer) -> Void) {
    guard let task = task(number) else { return answer(question.byDefault) }
    switch question {
    case .beginDelayed: askToBegin(task, answer)
    case .challenge, .trust, .clientCertificate:
      Task { [self] in
        // By default a server could be trusted that the delegate does not trust.
        guard let challenge = await URLAuthenticationChallenge(question, tls) else { return answer(.cancel) }
        answerChallenge(challenge, of: task) { answer(TransferAnswer($0, $1, to: challenge)) }
      }
    }
  }

  /// Asks the delegate about a task whose earliest begin date has been reached.
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
