import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit

extension OrderRound {
  /// Runs the round.
  ///
  /// - Returns: The delegate calls, in order.
  func run() async throws -> [String] {
    let server = try TestServer()
    defer { server.stop() }
    var signals: [TestServer.Signal] = []
    server.enqueue(script(&signals))
    // A retried request finds a server that resets its connection.
    server.defaultScript = TestServer.Script([.reset])
    let queue = isConcurrent ? OperationQueue() : nil
    let delegate = OrderDelegate(self)
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: queue)
    let task = try makeTask(session, server)
    delegate.state.withLock { $0.task = task }
    var next = 0
    func letServerGoOn() {
      guard next < signals.count else { return }
      signals[next].fire()
      next += 1
    }
    task.resume()
    for call in calls {
      switch call {
      case .suspend: delegate.current?.suspend()
      case .resume: delegate.current?.resume()
      case .cancel: delegate.current?.cancel()
      case .finish: session.finishTasksAndInvalidate()
      case .invalidate: session.invalidateAndCancel()
      case .setDelegate: delegate.current?.delegate = LateDelegate(delegate)
      case .letServerGoOn: letServerGoOn()
      case .yield: for _ in 0..<5 { await Task.yield() }
      }
    }
    for _ in signals { letServerGoOn() }
    session.finishTasksAndInvalidate()
    // Resumes the current task as often as it may have been suspended.
    await Wait.until("the session is invalid") {
      delegate.current?.resume()
      return delegate.state.withLock { $0.isInvalid }
    }
    return delegate.state.withLock { $0.log }
  }

  private func makeTask(_ session: URLSession, _ server: TestServer) throws -> URLSessionTask {
    guard let url = URL(string: server.url("/0")) else { throw URLError(.badURL) }
    var request = URLRequest(url: url)
    switch kind {
    case .data: return session.dataTask(with: request)
    case .download: return session.downloadTask(with: request)
    case .upload:
      request.httpMethod = "PUT"
      return session.uploadTask(with: request, from: Data(repeating: 0x61, count: 3000))
    case .streamedUpload:
      request.httpMethod = "PUT"
      return session.uploadTask(withStreamedRequest: request)
    }
  }
}

/// A delegate that records all calls, and in some of them makes the calls that the round prescribes.
final class OrderDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
  struct State {
    var log: [String] = []
    var task: URLSessionTask?
    var redirects = 0
    var isInvalid = false
  }

  let state = Mutex(State())
  private let round: OrderRound

  init(_ round: OrderRound) { self.round = round }

  /// The task, or the download task that has replaced it.
  var current: URLSessionTask? { state.withLock { $0.task } }

  func note(_ event: String, _ session: URLSession? = nil) {
    let (number, task) = state.withLock { state in
      state.log.append(event)
      return (state.log.count - 1, state.task)
    }
    guard let session, let task, let deed = round.deeds[number] else { return }
    switch deed {
    case .nothing: break
    case .cancel: task.cancel()
    case .suspendForAWhile:
      task.suspend()
      DispatchQueue.global().async { [self] in current?.resume() }
    case .setDelegate: task.delegate = LateDelegate(self)
    case .invalidate: session.invalidateAndCancel()
    }
  }

  /// Runs a completion inside the delegate call or later, as the round prescribes.
  private func answer(_ call: @escaping @Sendable () -> Void) {
    if round.answersLate { DispatchQueue.global().async(execute: call) } else { call() }
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    state.withLock { state in
      state.log.append("invalid")
      state.isInvalid = true
    }
  }

  func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note("create") }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    note("redirect", session)
    let number = state.withLock { state in
      state.redirects += 1
      return state.redirects - 1
    }
    let isRefused = number == round.redirectRefused
    answer { completionHandler(isRefused ? nil : request) }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask,
    needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
  ) {
    note("stream", session)
    answer { completionHandler(InputStream(data: Data(repeating: 0x61, count: 3000))) }
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
    totalBytesExpectedToSend: Int64
  ) { note("sent \(totalBytesSent)", session) }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    note("response", session)
    let disposition = round.disposition
    answer { completionHandler(disposition) }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
  ) {
    state.withLock { $0.task = downloadTask }
    note("become", session)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    note("data " + String(decoding: data, as: UTF8.self), session)
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) { note("written", session) }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) { note("file " + ((try? String(contentsOf: location, encoding: .utf8)) ?? "?"), session) }

  func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
    note("metrics", session)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    note(error == nil ? "end" : "failure", session)
  }
}

/// A delegate of the task that is set late and implements a few methods only. Each call goes to one of the two
/// delegates.
final class LateDelegate: NSObject, URLSessionDataDelegate {
  private let other: OrderDelegate

  init(_ other: OrderDelegate) { self.other = other }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    other.note("data " + String(decoding: data, as: UTF8.self), session)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    other.note(error == nil ? "end" : "failure", session)
  }
}
