import Foundation

/// The delegate that an async call of data, an upload or a download has been given for itself. Besides challenges, redirections
/// and metrics it hears of the response and its content, as FoundationNetworking has it. It is told, not asked, and holds nothing up:
/// the result is the caller's in any case, and comes behind these calls as it does behind that with the metrics.
struct Companion: Sendable {
  fileprivate let data: (any URLSessionDataDelegate)?
  fileprivate let download: (any URLSessionDownloadDelegate)?
  fileprivate let untold = Untold<ReceivedBytes>()

  /// Nil: the task has none, or he is told of content in any case.
  init?(of task: URLSessionTask) {
    switch task.output {
    case .dataResult, .fileResult: break
    case .dataHandler, .fileHandler, .bytes, .delegate: return nil
    }
    guard let delegate = task.read({ $0.delegate }) else { return nil }
    data = delegate as? any URLSessionDataDelegate
    download = delegate as? any URLSessionDownloadDelegate
  }
}

extension Transfer {
  func tellCompanion(of response: URLResponse) {
    guard let delegate = companion?.data, let dataTask = task as? URLSessionDataTask else { return }
    let session = session
    runLater {
      guard dataTask.state != .canceling else { return }
      delegate.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: { _ in })
    }
  }

  /// - Parameters:
  ///   - count: How many bytes have come since the last call.
  ///   - received: How many have come in all.
  func tellCompanion(ofContent count: Int, _ received: Int64) {
    guard count > 0, let companion else { return }
    let (task, session) = (task, session)
    // (A slice would make the next piece move all that has come.)
    let data = task is URLSessionDownloadTask || companion.data == nil ? Data() : Data(content.data.suffix(count))
    guard companion.untold.add(ReceivedBytes(data: data, count: Int64(count), total: received)) else { return }
    runLater(otherwise: { companion.untold.callIsLost() }) {
      // Whom the delegate works for may be gone when the task has been cancelled.
      while let piece = companion.untold.take(), task.state != .canceling {
        if let downloadTask = task as? URLSessionDownloadTask {
          companion.download?.urlSession(
            session, downloadTask: downloadTask, didWriteData: piece.count, totalBytesWritten: piece.total,
            totalBytesExpectedToWrite: task.read { $0.shown.bytesExpectedToReceive })
        } else if let dataTask = task as? URLSessionDataTask {
          companion.data?.urlSession(session, dataTask: dataTask, didReceive: piece.data)
        }
      }
    }
  }
}
