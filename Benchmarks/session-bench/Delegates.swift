import BenchmarkUsage
import Foundation
import Larkspur
import Synchronization

final class Discarder: NSObject, URLSessionDataDelegate {
  private let received = Mutex(0)
  private let done = Mutex<CheckedContinuation<Int, any Error>?>(nil)

  func load(_ url: URL, by session: URLSession) async throws -> Int {
    received.withLock { $0 = 0 }
    return try await withCheckedThrowingContinuation { continuation in
      done.withLock { $0 = continuation }
      session.dataTask(with: url).resume()
    }
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    received.withLock { $0 += data.count }
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let continuation = done.withLock { $0.take() }
    if let error { return continuation?.resume(throwing: error) ?? () }
    continuation?.resume(returning: received.withLock { $0 })
  }
}

/// Tasks whose responses go to the session's delegate, which starts the next task when one is complete.
///
/// Unchecked: every stored variable is touched only on the session's delegate queue, which is serial, or by `run` while
/// no task exists.
final class Collector: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  private let workload: Workload
  private let request: URLRequest
  private let upload: Data
  private var bodies: [Int: Data] = [:]
  private var unsent = 0
  private var unfinished = 0
  private var done: CheckedContinuation<Void, any Error>?

  init(_ workload: Workload, _ request: URLRequest) {
    self.workload = workload
    self.request = request
    upload = Data(workload.upload.utf8)
  }

  func run(_ count: Int, by session: URLSession) async throws {
    guard count > 0 else { return }
    try await withCheckedThrowingContinuation { continuation in
      (unsent, unfinished, done) = (count, count, continuation)
      // On another thread the first completions would race with the last starts.
      session.delegateQueue.addOperation { [self] in
        for _ in 0..<min(workload.tasks, count) { start(by: session) }
      }
    }
  }

  private func start(by session: URLSession) {
    unsent -= 1
    let task =
      workload.kind == .uploadData
      ? session.uploadTask(with: request, from: upload) : session.dataTask(with: request)
    bodies[task.taskIdentifier] = Data()
    task.resume()
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    bodies[dataTask.taskIdentifier]?.append(data)
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let body = bodies.removeValue(forKey: task.taskIdentifier)
    if let error { return done.take()?.resume(throwing: error) ?? () }
    guard (task.response as? HTTPURLResponse)?.statusCode == 200, body?.count == workload.bodyBytes else {
      done.take()?.resume(throwing: Failure(description: "\(String(describing: task.response))"))
      return
    }
    unfinished -= 1
    if unsent > 0 { start(by: session) }
    if unfinished == 0 { done.take()?.resume() }
  }
}
