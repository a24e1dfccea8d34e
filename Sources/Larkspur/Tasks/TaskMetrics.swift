import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTransport
import Synchronization

/// The metrics of a load for its delegate. Created for a load that has a delegate when it is set running. It belongs to
/// the loop.
final class TaskMetrics {
  /// When the load was set running.
  let startDate = Date()
  private var transactions: [URLSessionTaskTransactionMetrics] = []

  /// Records the tries of a task's request that is over.
  func collect(_ load: NetworkLoad, _ tries: [ExchangeMetrics], of task: URLSessionTask, now: Deadline) {
    let clock = ClockReading(now: now, date: Date())
    let (received, sent, expectedToSend) = task.read {
      ($0.shown.bytesReceived, $0.shown.bytesSent, $0.shown.bytesExpectedToSend)
    }
    for (index, metrics) in tries.enumerated() {
      let isLast = index == tries.count - 1
      // The length of a stream is not known beforehand; and a request that a redirection has turned into a GET has no
      // body.
      let bodyBytes = metrics.requestBodyBytes == 0 ? 0 : expectedToSend < 0 ? sent : expectedToSend
      transactions.append(
        URLSessionTaskTransactionMetrics(
          metrics, request: load.request, response: isLast ? load.arrival?.response : nil,
          bodyBytes: bodyBytes, decodedBytes: isLast ? received : 0,
          start: transactions.last?.responseEndDate ?? startDate, clock: clock))
    }
  }

  /// Records a load that has needed no connection.
  func collect(
    without request: URLRequest, _ response: URLResponse?, since start: Date, bytes: Int64,
    _ type: URLSessionTaskMetrics.ResourceFetchType = .unknown
  ) {
    transactions.append(
      URLSessionTaskTransactionMetrics(
        cached: request, response: response, start: start, end: max(start, Date()), bytes: bytes, type: type))
  }

  fileprivate func make(for task: URLSessionTask, redirectCount: Int) -> URLSessionTaskMetrics {
    URLSessionTaskMetrics(
      transactions: transactions, start: task.creationDate, end: Date(), redirectCount: redirectCount)
  }
}

extension Load {
  /// Records the tries of a request that is over, if a delegate gets metrics.
  func collectMetrics(of load: NetworkLoad) {
    metrics?.collect(load, slot.takeMetrics(), of: task, now: engine.loop.kernel.now())
  }

  /// The metrics of the load that is about to end, or `nil` if no delegate gets them.
  var finalMetrics: URLSessionTaskMetrics? { metrics?.make(for: task, redirectCount: machine.redirectCount) }

  // MARK: - Awaited loads

  /// How long the call below may take to begin.
  private static let callMax = Duration.seconds(1)

  /// Gives the delegate the metrics of a load whose result a caller awaits. The call has returned when the caller
  /// resumes; but where it cannot be made, because the queue is suspended, or blocked by code that waits for this very
  /// result, the caller resumes without it.
  func notifyOfMetricsBeforeResult() async {
    guard hasDelegate, let metrics = finalMetrics else { return }
    let (task, session, core) = (task, session, core)
    let (called, beginning) = (OneShot<Void>(), CallBeginning())
    calls.dispatch {
      core.isQueueStuck.store(false, ordering: .relaxed)
      called.cancel()
    } _: {
      _ = beginning.decide()
      core.isQueueStuck.store(false, ordering: .relaxed)
      DelegateCalls.make(
        { session, delegate in
          delegate.urlSession(session, task: task, didFinishCollecting: metrics)
          return true
        }, for: task, of: session, core)
      called.set(())
    }
    guard !core.isQueueStuck.load(ordering: .relaxed) else { return }
    let loop = engine.loop
    let timer = loop.startTimer(loop.now.advanced(by: Self.callMax)) {
      guard beginning.decide() else { return }
      core.isQueueStuck.store(true, ordering: .relaxed)
      called.cancel()
    }
    _ = await called.get()
    loop.stopTimer(timer)
  }
}

/// Decides between a call and its time limit: the first of the two counts.
private final class CallBeginning: Sendable {
  private let isDecided = Atomic(false)

  /// - Returns: `false` if the other decision came first.
  func decide() -> Bool {
    isDecided.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged
  }
}

extension Duration {
  /// The duration in seconds.
  var interval: TimeInterval {
    let (seconds, attoseconds) = components
    return TimeInterval(seconds) + TimeInterval(attoseconds) * 1e-18
  }
}
