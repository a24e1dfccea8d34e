import Foundation
import Larkspur
import Synchronization

/// A delegate that records the events of one download and calls a closure after each write.
final class DownloadRecorder: NSObject, URLSessionDownloadDelegate, URLSessionDataDelegate {
  enum Event: Hashable, Sendable {
    case wrote(Int64, total: Int64, of: Int64)
    case resumed(at: Int64, of: Int64)
    case finished
    case becameDownload
    case completed(URLError.Code?)
  }

  struct Record: Sendable {
    var events: [Event] = []
    var content: Data?
    var location: URL?
    var error: URLError?
    var isOver = false
    var isInvalid = false
    var waiter: CheckedContinuation<Void, Never>?
    var invalidationWaiter: CheckedContinuation<Void, Never>?
  }

  let record = Mutex(Record())
  private let whenWritten: (@Sendable (URLSessionDownloadTask, Int64) -> Void)?
  private let disposition: URLSession.ResponseDisposition

  init(
    disposition: URLSession.ResponseDisposition = .allow,
    whenWritten: (@Sendable (URLSessionDownloadTask, Int64) -> Void)? = nil
  ) {
    self.disposition = disposition
    self.whenWritten = whenWritten
  }

  private func note(_ event: Event) { record.withLock { $0.events.append(event) } }

  var events: [Event] { record.withLock { $0.events } }
  var content: Data? { record.withLock { $0.content } }
  var error: URLError? { record.withLock { $0.error } }
  var location: URL? { record.withLock { $0.location } }

  /// Suspends until the task has completed.
  func waitForEnd() async {
    await withCheckedContinuation { continuation in
      let isOver = record.withLock { record in
        if !record.isOver { record.waiter = continuation }
        return record.isOver
      }
      if isOver { continuation.resume() }
    }
  }

  /// Suspends until the session has been invalidated.
  func waitForInvalidation() async {
    await withCheckedContinuation { continuation in
      let isInvalid = record.withLock { record in
        if !record.isInvalid { record.invalidationWaiter = continuation }
        return record.isInvalid
      }
      if isInvalid { continuation.resume() }
    }
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
    let waiter = record.withLock { record in
      record.isInvalid = true
      return record.invalidationWaiter.take()
    }
    waiter?.resume()
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
    totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
  ) {
    note(.wrote(bytesWritten, total: totalBytesWritten, of: totalBytesExpectedToWrite))
    whenWritten?(downloadTask, totalBytesWritten)
  }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
    expectedTotalBytes: Int64
  ) { note(.resumed(at: fileOffset, of: expectedTotalBytes)) }

  func urlSession(
    _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
  ) {
    note(.finished)
    let content = try? Data(contentsOf: location)
    record.withLock {
      $0.content = content
      $0.location = location
    }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) { completionHandler(disposition) }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
  ) { note(.becameDownload) }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let error = error as? URLError
    note(.completed(error?.code))
    let waiter = record.withLock { record in
      record.error = error
      record.isOver = true
      return record.waiter.take()
    }
    waiter?.resume()
  }
}

extension URLSession {
  /// Creates an ephemeral session with `delegate`.
  static func with(_ delegate: any URLSessionDelegate) -> URLSession {
    URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
  }
}
