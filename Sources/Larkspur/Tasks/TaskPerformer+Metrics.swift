import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTransport

/// The task in numbers, for a delegate.
extension TaskPerformer {
  /// Takes down the tries of a request that is over.
  func collectMetrics(of load: NetworkLoad) {
    guard wantsMetrics else { return }
    let clock = ClockReading(now: engine.loop.kernel.now(), date: Date())
    let tries = transfer.takeMetrics()
    let (response, received, sent, expectedToSend) = task.read {
      ($0.response, $0.bytesReceived, $0.bytesSent, $0.bytesExpectedToSend)
    }
    for (index, metrics) in tries.enumerated() {
      let isLast = index == tries.count - 1
      // Nobody knows beforehand how long a stream is; and what a redirection has turned into a GET has no body.
      let bodyBytes = metrics.requestBodyBytes == 0 ? 0 : expectedToSend < 0 ? sent : expectedToSend
      transactions.append(
        URLSessionTaskTransactionMetrics(
          metrics, request: load.request, response: isLast ? latestResponse ?? response : nil,
          isProxied: load.way.proxy != nil,
          bodyBytes: bodyBytes, decodedBytes: isLast ? received : 0,
          start: transactions.last?.responseEndDate ?? startDate, clock: clock))
    }
  }

  /// The same for a load that has needed no connection.
  func collectMetrics(
    without request: URLRequest, _ response: URLResponse?, since start: Date, bytes: Int64,
    _ type: URLSessionTaskMetrics.ResourceFetchType = .unknown
  ) {
    guard wantsMetrics else { return }
    transactions.append(
      URLSessionTaskTransactionMetrics(
        cached: request, response: response, start: start, end: max(start, Date()), bytes: bytes, type: type))
  }

  func makeMetrics() -> URLSessionTaskMetrics {
    URLSessionTaskMetrics(
      transactions: transactions, start: creationDate, end: Date(), redirectCount: machine.redirectCount)
  }

  func tell(_ metrics: URLSessionTaskMetrics) async {
    let task = task
    await tell { session, delegate in
      delegate.urlSession(session, task: task, didFinishCollecting: metrics)
      return true
    }
  }
}

extension Duration {
  /// In seconds.
  var interval: TimeInterval {
    let (seconds, attoseconds) = components
    return TimeInterval(seconds) + TimeInterval(attoseconds) * 1e-18
  }
}
