import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTransport

/// The task in numbers, for a delegate.
extension TaskPerformer {
  /// Takes down the tries of a request that is over.
  func collectMetrics(of request: URLRequest, isProxied: Bool) {
    guard wantsMetrics else { return }
    let (now, date) = (engine.loop.kernel.now(), Date())
    let toDate = { (moment: Deadline?) -> Date? in
      guard let moment else { return nil }
      // Whichever is later: a duration is never negative.
      return moment > now
        ? date.addingTimeInterval(moment.duration(since: now).interval)
        : date.addingTimeInterval(-now.duration(since: moment).interval)
    }
    let tries = scope.takeMetrics()
    let (response, received, sent, expectedToSend) = task.read {
      ($0.response, $0.bytesReceived, $0.bytesSent, $0.bytesExpectedToSend)
    }
    for (index, metrics) in tries.enumerated() {
      let isLast = index == tries.count - 1
      // Nobody knows beforehand how long a stream is; and what a redirection has turned into a GET has no body.
      let bodyBytes = metrics.requestBodyBytes == 0 ? 0 : expectedToSend < 0 ? sent : expectedToSend
      transactions.append(
        URLSessionTaskTransactionMetrics(
          metrics, request: request, response: isLast ? latestResponse ?? response : nil, isProxied: isProxied,
          bodyBytes: bodyBytes, decodedBytes: isLast ? received : 0,
          start: transactions.last?.responseEndDate ?? startDate, date: toDate))
    }
  }

  func makeMetrics() -> URLSessionTaskMetrics {
    let end = max(Date(), transactions.last?.responseEndDate ?? startDate)
    return URLSessionTaskMetrics(
      transactions: transactions, interval: DateInterval(start: startDate, end: end),
      redirectCount: machine.redirectCount)
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
