import Foundation
import LarkspurTransfers
import Synchronization

/// The last calls for the tasks of a background session.
extension BackgroundSession {
  /// Makes the calls for the events of a task, and acknowledges them after the last one.
  func deliver(_ record: TransferRecord, to task: URLSessionTask) {
    let core = core
    // Another executor may have other events.
    let teller = link
    for case .resumed(let offset, let expected) in record.events
    where state.withLock({ $0.resumed.insert(record.task).inserted }) {
      calls.add {
        guard let session = task.read({ $0.session }) else { return }
        Self.make(.resumed(offset, expected), task, session, core)
        teller.send(.acknowledge(task: record.task, count: 1))
      }
    }
    guard record.state == .completed, state.withLock({ $0.ending.insert(record.task).inserted }) else { return }
    calls.add { [self] in makeLastCalls(record, task) }
  }

  /// Makes the calls for the end of a task.
  ///
  /// - Returns: `false` if the delegate leaves the file of a download: then the calls are made again (`deliverLeft`).
  @discardableResult private func makeLastCalls(_ record: TransferRecord, _ task: URLSessionTask) -> Bool {
    guard let session = task.read({ $0.session }) else { return true }
    let core = core
    let (before, after) = Self.update(task) { $0.take(record) }
    let executor = link
    let path = executor.contentPath(of: record.task)
    // The program may cancel the task at any time: this moment decides.
    let isCancelled = task.state == .canceling
    // The executor gives no notice of the last bytes but the end.
    if !isCancelled, Self.bytes(before, of: task) != Self.bytes(after, of: task) {
      let new = newBytes(of: task, from: before, to: after)
      DelegateCalls.make(Self.progressCall(of: task, new: new, after), for: task, of: session, core)
    }
    for event in record.events {
      switch event {
      case .resumed: break
      // A process that was killed after its delegate had moved the file did not acknowledge it.
      case .downloaded where !isCancelled && FileManager.default.fileExists(atPath: path):
        Self.make(.content(URL(fileURLWithPath: path)), task, session, core)
        if task.read({ $0.takeIsFileLeft() }) {
          leave(record, task)
          return false
        }
      case .downloaded: break
      case .completed: Self.complete(task, record, path, isCancelled: isCancelled, session, core)
      }
    }
    let acknowledgement = TransferCommand.acknowledge(task: record.task, count: record.events.count)
    executor.send(acknowledgement)
    let present = forget(task)
    // The executor may have been lost meanwhile.
    if present !== executor { present.send(acknowledgement) }
    core.ended(task)
    return true
  }

  /// Removes the state of a task.
  ///
  /// - Returns: The current executor.
  private func forget(_ task: URLSessionTask) -> any TransferLink {
    state.withLock { state in
      let identifier = task.taskIdentifier
      state.tasks[identifier] = nil
      state.resumed.remove(identifier)
      state.told[identifier] = nil
      state.ending.remove(identifier)
      return state.link
    }
  }

  // MARK: - Files that the delegate leaves

  /// Keeps the end of a download for later: its delegate has no place for the file yet. The journal keeps the file, also
  /// beyond the session.
  private func leave(_ record: TransferRecord, _ task: URLSessionTask) {
    let isEnding = state.withLock { state in
      state.left[record.task] = record
      return state.isEnding
    }
    // The program may have cancelled the task before the record was there.
    if task.state == .canceling { return deliverLeft() }
    guard isEnding else { return }
    state.withLock { $0.left[record.task] = nil }
    _ = forget(task)
    core.ended(task)
  }

  /// Calls the delegate once more for the files that it has left.
  func deliverLeft() {
    calls.add { [self] in
      let left = state.withLock { state in
        defer { state.left = [:] }
        return state.left.sorted { $0.key < $1.key }.compactMap { task, record in
          state.tasks[task].map { (task: $0, record: record) }
        }
      }
      let taken = left.filter { makeLastCalls($0.record, $0.task) }
      if !taken.isEmpty { finishEvents() }
    }
  }

  /// Makes the call for the end of the events of earlier processes.
  func finishEvents() {
    guard let session = core.keptSession else { return }
    core.delegate?.urlSessionDidFinishEvents(forBackgroundURLSession: session)
  }

  private enum Event {
    case resumed(Int64, Int64)
    case content(URL)
  }

  private static func make(_ event: Event, _ task: URLSessionTask, _ session: URLSession, _ core: SessionCore) {
    DelegateCalls.make(
      { session, delegate in
        if let download = task as? URLSessionDownloadTask {
          guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
          switch event {
          case .resumed(let offset, let expected):
            delegate.urlSession(
              session, downloadTask: download, didResumeAtOffset: offset, expectedTotalBytes: expected)
          case .content(let url):
            delegate.urlSession(session, downloadTask: download, didFinishDownloadingTo: url)
          }
          return true
        }
        guard case .content(let url) = event, let delegate = delegate as? any URLSessionDataDelegate,
          let data = try? Data(contentsOf: url), let upload = task as? URLSessionUploadTask
        else { return false }
        delegate.urlSession(session, dataTask: upload, didReceive: data)
        return true
      }, for: task, of: session, core)
  }

  /// The metrics of a task that may have been carried out by several processes: its interval, and its redirections.
  private static func deliverMetrics(
    of task: URLSessionTask, _ record: TransferRecord, _ session: URLSession, _ core: SessionCore
  ) {
    let metrics = URLSessionTaskMetrics(
      transactions: [], start: Date(timeIntervalSince1970: record.createdSeconds), end: Date(),
      redirectCount: record.redirects.count)
    DelegateCalls.make(
      { session, delegate in
        delegate.urlSession(session, task: task, didFinishCollecting: metrics)
        return true
      }, for: task, of: session, core)
  }

  private static func complete(
    _ task: URLSessionTask, _ record: TransferRecord, _ path: String, isCancelled: Bool, _ session: URLSession,
    _ core: SessionCore
  ) {
    var failure = record.error
    var resumeData: Data?
    if let error = failure as? URLError, error.code != .cancelled || task.wantsResumeData {
      resumeData = Self.resumeData(of: record, path)
      let key =
        record.kind == .upload ? NSURLSessionUploadTaskResumeData : URLSessionDownloadTaskResumeData
      if let resumeData { failure = error.adding(resumeData: resumeData, for: key) }
    }
    deliverMetrics(of: task, record, session, core)
    task.resumeDataCall(resumeData)?()
    let isDelivered = !isCancelled && failure == nil && record.events.contains(.downloaded)
    let end = task.complete(failure, isDelivered: isDelivered)
    DelegateCalls.make(
      { session, delegate in
        delegate.urlSession(session, task: task, didCompleteWithError: end)
        return true
      }, for: task, of: session, core)
  }
}

extension URLSessionDownloadTask {
  /// Leaves the file of a download of a background session where it is, because the delegate has no place for it yet. Call it
  /// within `urlSession(_:downloadTask:didFinishDownloadingTo:)`: the end of the task stays unacknowledged, and the call is
  /// made again after ``URLSession/deliverLeftFiles()`` or in the next session. No effect in other sessions.
  package func leaveFile() { read { $0.isFileLeft = true } }
}

extension URLSession {
  /// Makes the calls for downloads whose files the delegate has left. Thread-safe; no effect if there are none.
  package func deliverLeftFiles() { core.background?.deliverLeft() }
}
