import Foundation

/// What the delegate hears that an async call has been given for itself: besides challenges, redirections and metrics, of the
/// response and its content, as FoundationNetworking has it. It is told, not asked: the result is the caller's in any case, and
/// comes when the calls have returned (what an async form does then may take longer).
extension TaskPerformer {
  static func companion(of task: URLSessionTask) -> (any URLSessionTaskDelegate)? {
    switch task.output {
    case .dataResult, .fileResult: task.read { $0.delegate }
    case .dataHandler, .fileHandler, .bytes, .delegate: nil
    }
  }

  func tellCompanion(of response: URLResponse) {
    guard let delegate = companion as? any URLSessionDataDelegate, let dataTask = task as? URLSessionDataTask else {
      return
    }
    let session = session
    runLater { delegate.urlSession(session, dataTask: dataTask, didReceive: response, completionHandler: { _ in }) }
  }

  /// - Parameters:
  ///   - count: How many bytes have come since the last call.
  ///   - received: How many have come in all.
  func tellCompanion(ofContent count: Int, _ received: Int64) {
    guard count > 0 else { return }
    let session = session
    if let downloadTask = task as? URLSessionDownloadTask {
      guard let delegate = companion as? any URLSessionDownloadDelegate else { return }
      let expected = task.read { $0.bytesExpectedToReceive }
      runLater {
        delegate.urlSession(
          session, downloadTask: downloadTask, didWriteData: Int64(count), totalBytesWritten: received,
          totalBytesExpectedToWrite: expected)
      }
    } else if let delegate = companion as? any URLSessionDataDelegate, let dataTask = task as? URLSessionDataTask {
      // (A slice would make the next piece move all that has come.)
      let piece = Data(content.data.suffix(count))
      runLater { delegate.urlSession(session, dataTask: dataTask, didReceive: piece) }
    }
  }
}
