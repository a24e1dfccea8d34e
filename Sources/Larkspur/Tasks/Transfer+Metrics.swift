import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTransport
import Synchronization

/// The task in numbers, for a delegate.
extension Transfer {
  /// Takes down the tries of a request that is over.
  func collectMetrics(of load: NetworkLoad) {
    guard collectsMetrics else { return }
    let clock = ClockReading(now: engine.loop.kernel.now(), date: Date())
    let tries = takeMetrics()
    let (response, received, sent, expectedToSend) = task.read {
      ($0.shown.response, $0.shown.bytesReceived, $0.shown.bytesSent, $0.shown.bytesExpectedToSend)
    }
    for (index, metrics) in tries.enumerated() {
      let isLast = index == tries.count - 1
      // Nobody knows beforehand how long a stream is; and what a redirection has turned into a GET has no body.
      let bodyBytes = metrics.requestBodyBytes == 0 ? 0 : expectedToSend < 0 ? sent : expectedToSend
      transactions.append(
        URLSessionTaskTransactionMetrics(
          metrics, request: load.request, response: isLast ? latestResponse ?? response : nil,
          isProxied: load.way?.proxy != nil,
          bodyBytes: bodyBytes, decodedBytes: isLast ? received : 0,
          start: transactions.last?.responseEndDate ?? startDate, clock: clock))
    }
  }

  /// The same for a load that has needed no connection.
  func collectMetrics(
    without request: URLRequest, _ response: URLResponse?, since start: Date, bytes: Int64,
    _ type: URLSessionTaskMetrics.ResourceFetchType = .unknown
  ) {
    guard collectsMetrics else { return }
    transactions.append(
      URLSessionTaskTransactionMetrics(
        cached: request, response: response, start: start, end: max(start, Date()), bytes: bytes, type: type))
  }

  func makeMetrics() -> URLSessionTaskMetrics {
    URLSessionTaskMetrics(
      transactions: transactions, start: task.creationDate, end: Date(), redirectCount: machine.redirectCount)
  }

  /// Whether a call has begun in time. Who comes first decides.
  private final class Beginning: Sendable {
    private let isDecided = Atomic(false)

    /// False: somebody else has.
    func decide() -> Bool {
      isDecided.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged
    }
  }

  /// How long the call below may take to begin.
  private static let callMax = Duration.seconds(1)

  /// For a task whose result somebody awaits. He finds them with the delegate when he goes on; but where the call does not come to
  /// pass, for the queue is suspended, or blocked by somebody who waits for the very result, he goes on without.
  func tell(_ metrics: URLSessionTaskMetrics) async {
    guard hasDelegate else { return }
    let (core, called, beginning) = (core, Question<Void>(), Beginning())
    runLater {
      core.isQueueStuck.store(false, ordering: .relaxed)
      called.giveUp()
    } _: { [task, session] in
      _ = beginning.decide()
      core.isQueueStuck.store(false, ordering: .relaxed)
      Self.call(
        { session, delegate in
          delegate.urlSession(session, task: task, didFinishCollecting: metrics)
          return true
        }, for: task, of: session, core)
      called.answer(())
    }
    guard !core.isQueueStuck.load(ordering: .relaxed) else { return }
    let timer = engine.loop.startTimer(engine.loop.now.advanced(by: Self.callMax)) {
      guard beginning.decide() else { return }
      core.isQueueStuck.store(true, ordering: .relaxed)
      called.giveUp()
    }
    _ = await called.wait()
    engine.loop.stopTimer(timer)
  }
}

extension Duration {
  /// In seconds.
  var interval: TimeInterval {
    let (seconds, attoseconds) = components
    return TimeInterval(seconds) + TimeInterval(attoseconds) * 1e-18
  }
}
