import Foundation
import Larkspur
import Synchronization

/// A delegate that records its calls and runs closures that a test sets.
class SessionRecorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
  enum Event: Hashable, Sendable {
    case created(Int)
    case response(Int, status: Int)
    case redirected(Int)
    case data(Int)
    case wrote(Int)
    case finished(Int)
    case sent(Int)
    case waiting(Int)
    case metrics(Int)
    case completed(Int, URLError.Code?)
    case invalid

    var isEnd: Bool { if case .completed = self { true } else { false } }
  }

  private struct Waiter {
    var isMet: @Sendable ([Event]) -> Bool
    var continuation: CheckedContinuation<Void, Never>
  }

  private struct State {
    var events: [Event] = []
    var waiters: [Waiter] = []
    var metrics: [URLSessionTaskMetrics] = []
  }

  private let state = Mutex(State())
  /// A closure that runs with each piece of content, on the delegate queue.
  var onData: @Sendable (URLSessionDataTask, Data) -> Void = { _, _ in }
  var onResponse: @Sendable (URLSessionDataTask) -> Void = { _ in }

  var events: [Event] { state.withLock { $0.events } }
  var metrics: [URLSessionTaskMetrics] { state.withLock { $0.metrics } }

  func note(_ event: Event) {
    let met = state.withLock { state -> [Waiter] in
      state.events.append(event)
      let met = state.waiters.filter { $0.isMet(state.events) }
      state.waiters.removeAll { $0.isMet(state.events) }
      return met
    }
    for waiter in met { waiter.continuation.resume() }
  }

  func wait(until isMet: @escaping @Sendable ([Event]) -> Bool) async {
    await withCheckedContinuation { continuation in
      let isMetNow = state.withLock { state in
        if isMet(state.events) { return true }
        state.waiters.append(Waiter(isMet: isMet, continuation: continuation))
        return false
      }
      if isMetNow { continuation.resume() }
    }
  }

  /// Suspends until `count` tasks have completed.
  func waitForEnds(_ count: Int = 1) async {
    await wait { events in events.count { $0.isEnd } >= count }
  }

  func waitForInvalidation() async { await wait { $0.contains(.invalid) } }

  func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note(.created(task.taskIdentifier)) }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    note(.response(dataTask.taskIdentifier, status: (response as? HTTPURLResponse)?.statusCode ?? 0))
    onResponse(dataTask)
    completionHandler(.allow)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    note(.redirected(task.taskIdentifier))
    completionHandler(request)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    note(.data(dataTask.taskIdentifier))
    onData(dataTask, data)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) { note(.sent(task.taskIdentifier)) }

  func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
    note(.waiting(task.taskIdentifier))
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) { note(.wrote(downloadTask.taskIdentifier)) }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) { note(.finished(downloadTask.taskIdentifier)) }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    state.withLock { $0.metrics.append(metrics) }
    note(.metrics(task.taskIdentifier))
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    note(.completed(task.taskIdentifier, (error as? URLError)?.code))
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { note(.invalid) }
}
