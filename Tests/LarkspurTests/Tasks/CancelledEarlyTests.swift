import Foundation
import Testing

@testable import Larkspur

/// Tests tasks that are cancelled before they are resumed for the first time.
@Suite(.timeLimit(.minutes(1))) struct CancelledEarlyTests {
  private let url = URL(string: "http://127.0.0.1:9/")

  private func session(_ delegate: (any URLSessionDelegate)?, waits: Bool) -> URLSession {
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    if waits { session.core.unbegunEndDelay = .seconds(3600) }
    return session
  }

  /// A task cancelled before its first `resume` reports its completion on `resume` (or after `unbegunEndDelay`, here an
  /// hour), so operations that the program added to the delegate queue before `resume` run first.
  @Test func theEndIsReportedOnResume() async throws {
    let recorder = SessionRecorder()
    let session = session(recorder, waits: true)
    for round in 1...50 {
      let task = session.dataTask(with: try #require(url))
      task.cancel()
      #expect(task.state == .canceling)
      let endsBefore = await withCheckedContinuation { continuation in
        session.delegateQueue.addOperation { continuation.resume(returning: recorder.events.count { $0.isEnd }) }
      }
      #expect(endsBefore == round - 1)
      task.resume()
      task.resume()
      await recorder.waitForEnds(round)
      #expect(recorder.events.last == .completed(task.taskIdentifier, .cancelled))
    }
    #expect(recorder.events.count { $0.isEnd } == 50)
  }

  /// A task that its delegate cancels in `didResume` completes as cancelled.
  @Test func cancelledInDidResume() async throws {
    let recorder = Refuser()
    let session = session(recorder, waits: true)
    let task = session.dataTask(with: try #require(url))
    task.resume()
    await recorder.waitForEnds()
    #expect(recorder.events.last == .completed(task.taskIdentifier, .cancelled))
  }

  private final class Refuser: SessionRecorder, URLSessionSelectiveDelegate, @unchecked Sendable {
    func urlSession(
      _ session: URLSession, wants call: URLSessionDelegateCall, for task: URLSessionTask
    ) -> Bool { true }
    func urlSession(_ session: URLSession, didResume task: URLSessionTask) { task.cancel() }
    func urlSession(_ session: URLSession, didSuspend task: URLSessionTask) {}
  }

  @Test func handlersHearOfIt() async throws {
    let session = session(nil, waits: true)
    let error = await withCheckedContinuation { continuation in
      guard let url else { return continuation.resume(returning: (any Error)?.none) }
      let task = session.dataTask(with: url) { _, _, error in continuation.resume(returning: error) }
      task.cancel()
      task.resume()
    }
    #expect((error as? URLError)?.code == .cancelled)
  }

  @Test func theEndIsReportedWithoutResume() async throws {
    let recorder = SessionRecorder()
    let task = session(recorder, waits: false).dataTask(with: try #require(url))
    task.cancel()
    await recorder.waitForEnds()
    #expect(recorder.events.last == .completed(task.taskIdentifier, .cancelled))
    #expect(task.state == .completed)
  }
}
