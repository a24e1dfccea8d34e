import Foundation

/// The delegate of one call of an async function: data, an upload or a download. Besides challenges, redirections and
/// metrics it is notified of the response and its content, as in FoundationNetworking. No call delays the task: the
/// caller gets the result in any case, after these calls, as it does after the one with the metrics.
final class PerCallDelegate {
  private let task: URLSessionTask
  private let session: URLSession
  private let calls: DelegateCalls
  private let data: (any URLSessionDataDelegate)?
  private let download: (any URLSessionDownloadDelegate)?
  private let updates = CoalescedUpdates<ReceivedBytes>()

  private init(_ delegate: any URLSessionTaskDelegate, of task: URLSessionTask, _ load: Load) {
    self.task = task
    (session, calls) = (load.session, load.calls)
    data = delegate as? any URLSessionDataDelegate
    download = delegate as? any URLSessionDownloadDelegate
  }

  /// - Returns: `nil` if the load's task has no task delegate, or a delegate that gets its content in any case.
  static func of(_ load: Load) -> PerCallDelegate? {
    guard let task = load.currentTask else { return nil }
    switch load.output {
    case .dataResult, .fileResult: break
    case .dataHandler, .fileHandler, .bytes, .delegate: return nil
    }
    return task.read { $0.delegate }.map { PerCallDelegate($0, of: task, load) }
  }

  func notify(of response: URLResponse) {
    guard let delegate = data, let dataTask = task as? URLSessionDataTask else { return }
    calls.dispatch { [session] in
      guard dataTask.state != .canceling else { return }
      delegate.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: { _ in })
    }
  }

  /// - Parameters:
  ///   - content: All received bytes, for a data task.
  ///   - count: The number of bytes received since the last call.
  ///   - total: The number of bytes received so far.
  func notify(of content: Data, latest count: Int, total: Int64) {
    guard count > 0 else { return }
    let (task, session, updates, data, download) = (task, session, updates, data, download)
    // Performance: copied, because a slice would make the next piece move all received bytes.
    let piece = task is URLSessionDownloadTask || data == nil ? Data() : Data(content.suffix(count))
    guard updates.add(ReceivedBytes(data: piece, count: Int64(count), total: total)) else { return }
    calls.dispatch(dropped: { updates.dropped() }) {
      // The object that the delegate works for may be gone when the task has been cancelled.
      while let piece = updates.take(), task.state != .canceling {
        if let downloadTask = task as? URLSessionDownloadTask {
          download?.urlSession(
            session, downloadTask: downloadTask, didWriteData: piece.count, totalBytesWritten: piece.total,
            totalBytesExpectedToWrite: task.read { $0.shown.bytesExpectedToReceive })
        } else if let dataTask = task as? URLSessionDataTask {
          data?.urlSession(session, dataTask: dataTask, didReceive: piece.data)
        }
      }
    }
  }
}
