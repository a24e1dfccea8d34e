import Foundation
import LarkspurTransfers
import Synchronization

/// The delegate calls for the tasks of a background session.
extension BackgroundSession {
  /// Makes a call that has its turn.
  func make(_ call: SessionLinkMachine.Call) {
    switch call {
    case .resumed(let number, let offset, let expected, let link):
      guard let task = task(number), let session = task.read({ $0.session }) else { return }
      callDelegate(task, session) { session, delegate in
        guard let download = task as? URLSessionDownloadTask, let delegate = delegate as? any URLSessionDownloadDelegate
        else { return false }
        delegate.urlSession(session, downloadTask: download, didResumeAtOffset: offset, expectedTotalBytes: expected)
        return true
      }
      report { $0.machine.acknowledgeResumption(of: number, by: link, into: &$0.actions) }
    case .progress(let number): if let task = task(number) { reportProgress(of: task) }
    case .end(let number): makeLastCalls(of: number)
    case .left:
      let taken = report { $0.machine.offerLeft() }.filter { makeLastCalls(of: $0) }
      if !taken.isEmpty { finishEvents() }
    case .finishEvents: finishEvents()
    }
  }

  // MARK: - Progress

  /// Shows the counts of a running task.
  func show(_ number: Int) {
    let task = state.withLock { state in
      let task = state.tasks[number]
      // With the lock held, because another thread may have later counts.
      if let counts = state.machine.tasks[number]?.record.counts { task?.show { $0.take(counts) } }
      return task
    }
    task?.updateProgress()
  }

  /// Makes the call for the bytes that the delegate has not seen, if there are any.
  private func reportProgress(of task: URLSessionTask) {
    let number = task.taskIdentifier
    let (new, counts) = report { ($0.machine.report(number), $0.machine.tasks[number]?.record.counts) }
    // The program may cancel the task at any time.
    guard let new, let counts, task.state != .canceling, let session = task.read({ $0.session }) else { return }
    show(number)
    callDelegate(task, session) { session, delegate in
      guard let download = task as? URLSessionDownloadTask else {
        delegate.urlSession(
          session, task: task, didSendBodyData: new, totalBytesSent: max(counts.sent, 0),
          totalBytesExpectedToSend: counts.expectedToSend)
        return true
      }
      guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
      delegate.urlSession(
        session, downloadTask: download, didWriteData: new, totalBytesWritten: max(counts.received, 0),
        totalBytesExpectedToWrite: counts.expectedToReceive)
      return true
    }
  }

  // MARK: - The end

  /// Makes the calls for the end of a task, and acknowledges it.
  ///
  /// - Returns: `false` if the delegate leaves the file of a download: then the calls are made again (`deliverLeft`).
  @discardableResult private func makeLastCalls(of number: Int) -> Bool {
    let (entry, known) = state.withLock { ($0.machine.tasks[number], $0.tasks[number]) }
    guard let entry, entry.phase == .ending, let task = known, let session = task.read({ $0.session }) else {
      return true
    }
    let (record, path) = (entry.record, contentPath(of: number))
    task.show { $0.take(record) }
    task.updateProgress()
    // The program may cancel the task at any time: this moment decides.
    let isCancelled = task.state == .canceling
    // The runner gives no notice of the last bytes but the end.
    if !isCancelled { reportProgress(of: task) }
    for event in record.events {
      switch event {
      case .resumed: break
      // A process that was killed after its delegate had moved the file did not acknowledge it.
      case .downloaded where !isCancelled && FileManager.default.fileExists(atPath: path):
        deliver(URL(fileURLWithPath: path), of: task, session)
        if task.read({ $0.takeIsFileLeft() }) {
          leave(task)
          return false
        }
      case .downloaded: break
      case .completed: complete(task, record, path, isCancelled: isCancelled, session)
      }
    }
    report { state in
      state.tasks[number] = nil
      state.machine.ended(number, into: &state.actions)
    }
    core.ended(task)
    return true
  }

  /// Keeps the end of a download for later: its delegate has no place for the file yet.
  private func leave(_ task: URLSessionTask) {
    let number = task.taskIdentifier
    let isOver = report { state in
      let isOver = state.machine.left(number, isCancelled: task.state == .canceling, into: &state.actions)
      if isOver { state.tasks[number] = nil }
      return isOver
    }
    if isOver { core.ended(task) }
  }

  /// Calls the delegate once more for the files that it has left.
  func deliverLeft() { report { $0.machine.deliverLeft(into: &$0.actions) } }

  /// Makes the call for the end of the events of earlier processes.
  private func finishEvents() {
    guard let session = core.keptSession else { return }
    core.delegate?.urlSessionDidFinishEvents(forBackgroundURLSession: session)
  }

  private func callDelegate(_ task: URLSessionTask, _ session: URLSession, _ call: DelegateCalls.Call) {
    DelegateCalls.make(call, for: task, of: session, core)
  }

  /// Makes the call for the file of a download, or for the content of the response to an upload.
  private func deliver(_ url: URL, of task: URLSessionTask, _ session: URLSession) {
    callDelegate(task, session) { session, delegate in
      switch (task, delegate) {
      case (let download as URLSessionDownloadTask, let delegate as any URLSessionDownloadDelegate):
        delegate.urlSession(session, downloadTask: download, didFinishDownloadingTo: url)
      case (let upload as URLSessionUploadTask, let delegate as any URLSessionDataDelegate):
        guard let data = try? Data(contentsOf: url) else { return false }
        delegate.urlSession(session, dataTask: upload, didReceive: data)
      default: return false
      }
      return true
    }
  }

  /// Makes the calls for the metrics and the end of a task. Several processes may have carried it out: the metrics are its
  /// interval, and its redirections.
  private func complete(
    _ task: URLSessionTask, _ record: TransferRecord, _ path: String, isCancelled: Bool, _ session: URLSession
  ) {
    var failure = record.error
    var resumeData: Data?
    if let error = failure as? URLError, error.code != .cancelled || task.needsResumeData {
      resumeData = Self.resumeData(of: record, path)
      let key = record.kind == .upload ? NSURLSessionUploadTaskResumeData : URLSessionDownloadTaskResumeData
      if let resumeData { failure = error.adding(resumeData: resumeData, for: key) }
    }
    let metrics = URLSessionTaskMetrics(
      transactions: [], start: Date(timeIntervalSince1970: record.createdSeconds), end: Date(),
      redirectCount: record.redirects.count)
    callDelegate(task, session) { session, delegate in
      delegate.urlSession(session, task: task, didFinishCollecting: metrics)
      return true
    }
    task.resumeDataCall(resumeData)?()
    let isDelivered = !isCancelled && failure == nil && record.events.contains(.downloaded)
    let end = task.complete(failure, isDelivered: isDelivered)
    callDelegate(task, session) { session, delegate in
      delegate.urlSession(session, task: task, didCompleteWithError: end)
      return true
    }
  }
}

extension URLSessionTask.Shown {
  mutating func take(_ record: TransferRecord) {
    take(record.counts)
    if let response = record.response?.response { self.response = response }
    if let request = record.currentRequest.flatMap({ URLRequest($0) }) { currentRequest = request }
  }

  mutating func take(_ counts: TransferRecord.Counts) {
    bytesSent = max(counts.sent, 0)
    bytesReceived = max(counts.received, 0)
    bytesExpectedToSend = counts.expectedToSend
    bytesExpectedToReceive = counts.expectedToReceive
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

/// Makes a background session's delegate calls one after another, also on a queue that runs several operations at once.
final class BackgroundCalls: Sendable {
  private struct State {
    var waiting: [@Sendable () -> Void] = []
    var isRunning = false
  }

  private let queue: DelegateQueue
  private let state = Mutex(State())

  init(on queue: DelegateQueue) { self.queue = queue }

  /// Adds a call. The call is not lost if the program cancels the operations of its queue.
  func add(_ call: @escaping @Sendable () -> Void) {
    let isFirst = state.withLock { state in
      state.waiting.append(call)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if isFirst { makeNext() }
  }

  private func makeNext() {
    queue.insist { [self] in
      let call = state.withLock { $0.waiting.isEmpty ? nil : $0.waiting.removeFirst() }
      call?()
      let isLast = state.withLock { state in
        state.isRunning = !state.waiting.isEmpty
        return !state.isRunning
      }
      if !isLast { makeNext() }
    }
  }
}
