import Foundation
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests which delegate answers the challenge of a connection whose task ended before the connection was ready: the
/// connection will serve other tasks.
@Suite(.timeLimit(.minutes(1))) struct ConnectionChallengeTests {
  /// Counts the challenges of a delegate.
  private class Counter: NSObject, @unchecked Sendable {
    let asked = Event()
  }

  private final class OfSession: Counter, URLSessionDelegate, @unchecked Sendable {
    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      asked.fire()
      completionHandler(.cancelAuthenticationChallenge, nil)
    }
  }

  private final class OfTask: Counter, URLSessionTaskDelegate, @unchecked Sendable {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      asked.fire()
      completionHandler(.performDefaultHandling, nil)
    }
  }

  private func challenges(
    of session: URLSession, decider: (any URLSessionTaskDelegate)? = nil
  ) -> ChallengeRouter {
    ChallengeRouter(session.core, decider: decider)
  }

  @Test func theSessionsDelegateIsAskedWithoutATask() async {
    let delegate = OfSession()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    #expect(await challenges(of: session).identity(forHost: "a.example", port: 443, issuers: []) == nil)
    #expect(delegate.asked.count == 1)
    session.invalidateAndCancel()
  }

  /// If only a task's delegate can answer, the challenge waits for the next task that requests the connection.
  @Test(arguments: [true, false]) func theNextTasksDelegateIsWaitedFor(isSessions: Bool) async throws {
    let delegate = OfTask()
    let session = URLSession(configuration: .ephemeral, delegate: isSessions ? delegate : nil, delegateQueue: nil)
    let challenges = challenges(of: session, decider: isSessions ? nil : delegate)
    let over = session.dataTask(with: try #require(URL(string: "https://a.example/")))
    challenges.attach(over)
    if isSessions { challenges.detach(over) } else { _ = over.releaseReferences() }
    async let answer = challenges.identity(forHost: "a.example", port: 443, issuers: [])
    await Wait.until("the challenge waits") { challenges.state.withLock { $0.waiting.count == 1 } }
    #expect(delegate.asked.count == 0)
    let next = session.dataTask(with: try #require(URL(string: "https://a.example/")))
    next.delegate = isSessions ? nil : delegate
    challenges.attach(next)
    #expect(await answer == nil)
    #expect(delegate.asked.count == 1)
    session.invalidateAndCancel()
  }

  /// A delegate that ends the first task that it is asked about, and refuses the challenge for that reason.
  private final class ReleasingDelegate: Counter, URLSessionTaskDelegate, @unchecked Sendable {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      asked.fire()
      if asked.count == 1 { _ = task.releaseReferences() }
      completionHandler(asked.count == 1 ? .cancelAuthenticationChallenge : .performDefaultHandling, nil)
    }
  }

  @Test func theAnswerForATaskThatEndedDoesNotCount() async throws {
    let delegate = ReleasingDelegate()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let challenges = challenges(of: session)
    let url = try #require(URL(string: "https://a.example/"))
    challenges.attach(session.dataTask(with: url))
    async let answer = challenges.identity(forHost: "a.example", port: 443, issuers: [])
    try await delegate.asked.wait()
    challenges.attach(session.dataTask(with: url))
    #expect(await answer == nil)
    #expect(delegate.asked.count == 2)
    session.invalidateAndCancel()
  }

  /// A delegate that answers for the second task only.
  private final class Silent: Counter, URLSessionTaskDelegate, @unchecked Sendable {
    let dropped = Mutex<[@Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void]>([])

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      if asked.count > 0 { completionHandler(.performDefaultHandling, nil) }
      dropped.withLock { $0.append(completionHandler) }
      asked.fire()
    }
  }

  /// A task that is cancelled before its delegate answers does not delay the tasks that share its connection.
  @Test(arguments: [true, false]) func aCancelledTasksAnswerIsNotAwaited(hasNext: Bool) async throws {
    let delegate = Silent()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let challenges = challenges(of: session)
    let url = try #require(URL(string: "https://a.example/"))
    let (other, cancelled) = (session.dataTask(with: url), session.dataTask(with: url))
    if hasNext { challenges.attach(other) }
    challenges.attach(cancelled)
    async let answer = challenges.identity(forHost: "a.example", port: 443, issuers: [])
    try await delegate.asked.wait()
    challenges.detach(cancelled)
    if !hasNext { challenges.attach(other) }
    #expect(await answer == nil)
    #expect(delegate.asked.count == 2)
    #expect(challenges.state.withLock { $0.questions.isEmpty })
    session.invalidateAndCancel()
  }

  @Test func anEarlierTaskIsAskedForWhenTheLatestIsOver() async throws {
    let delegate = OfTask()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let challenges = challenges(of: session)
    let url = try #require(URL(string: "https://a.example/"))
    let (earlier, latest) = (session.dataTask(with: url), session.dataTask(with: url))
    challenges.attach(earlier)
    challenges.attach(latest)
    challenges.detach(latest)
    #expect(await challenges.identity(forHost: "a.example", port: 443, issuers: []) == nil)
    #expect(delegate.asked.count == 1)
    session.invalidateAndCancel()
  }

  /// The router does not keep a task's delegate alive. Once the delegate is gone, no other delegate answers in its
  /// place.
  @Test func aDeciderThatIsGoneIsNotReplaced() async throws {
    let ofSession = OfTask()
    let session = URLSession(configuration: .ephemeral, delegate: ofSession, delegateQueue: nil)
    var challenges: ChallengeRouter
    do {
      let delegate = OfTask()
      challenges = self.challenges(of: session, decider: delegate)
      #expect(challenges.decider === delegate)
    }
    #expect(challenges.decider == nil)
    challenges.attach(session.dataTask(with: try #require(URL(string: "https://a.example/"))))
    #expect(await challenges.identity(forHost: "a.example", port: 443, issuers: []) == nil)
    #expect(ofSession.asked.count == 0)
    session.invalidateAndCancel()
  }

  @Test func anAbandonedConnectionWaitsNoLonger() async {
    let delegate = OfTask()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let challenges = challenges(of: session)
    let question = Task { await challenges.identity(forHost: "a.example", port: 443, issuers: []) }
    question.cancel()
    #expect(await question.value == nil)
    #expect(delegate.asked.count == 0)
    session.invalidateAndCancel()
  }
}
