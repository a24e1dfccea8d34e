import Foundation
import Synchronization
import Testing

@testable import Larkspur

/// Who is asked about a connection whose task is over before it is there: it will serve somebody else.
@Suite(.timeLimit(.minutes(1))) struct ConnectionChallengeTests {
  /// Counts what it is asked.
  private class Counter: NSObject, @unchecked Sendable {
    private let count = Mutex(0)
    var asked: Int { count.withLock { $0 } }
    func note() { count.withLock { $0 += 1 } }
  }

  private final class OfSession: Counter, URLSessionDelegate, @unchecked Sendable {
    func urlSession(
      _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      note()
      completionHandler(.cancelAuthenticationChallenge, nil)
    }
  }

  private final class OfTask: Counter, URLSessionTaskDelegate, @unchecked Sendable {
    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
      completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
      note()
      completionHandler(.performDefaultHandling, nil)
    }
  }

  private func challenges(of session: URLSession) -> SessionChallenges {
    SessionChallenges(session.core, asksDelegate: true)
  }

  @Test func theSessionsDelegateIsAskedWithoutATask() async {
    let delegate = OfSession()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    #expect(await challenges(of: session).identity(forHost: "a.example", port: 443, issuers: []) == nil)
    #expect(delegate.asked == 1)
    session.invalidateAndCancel()
  }

  /// Only a task's delegate has a word, the session's or its own: the next task's counts.
  @Test(arguments: [true, false]) func theNextTasksDelegateIsWaitedFor(isSessions: Bool) async throws {
    let delegate = OfTask()
    let session = URLSession(configuration: .ephemeral, delegate: isSessions ? delegate : nil, delegateQueue: nil)
    let challenges = challenges(of: session)
    let over = session.dataTask(with: try #require(URL(string: "https://a.example/")))
    challenges.isAsked(for: over)
    if isSessions { challenges.isOver(over) } else { _ = over.letGo() }
    async let answer = challenges.identity(forHost: "a.example", port: 443, issuers: [])
    for _ in 0..<100 { await Task.yield() }
    #expect(delegate.asked == 0)
    let next = session.dataTask(with: try #require(URL(string: "https://a.example/")))
    next.delegate = isSessions ? nil : delegate
    challenges.isAsked(for: next)
    #expect(await answer == nil)
    #expect(delegate.asked == 1)
    session.invalidateAndCancel()
  }

  @Test func aConnectionThatNobodyWantsWaitsNoLonger() async {
    let delegate = OfTask()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let challenges = challenges(of: session)
    let question = Task { await challenges.identity(forHost: "a.example", port: 443, issuers: []) }
    question.cancel()
    #expect(await question.value == nil)
    #expect(delegate.asked == 0)
    session.invalidateAndCancel()
  }
}
