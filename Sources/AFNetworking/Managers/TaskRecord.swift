import Foundation
import Synchronization

/// A manager's record of a task, from its creation to its end. Safe to use from any thread. The session reports the
/// task's content on its queue, one call after another.
final class TaskRecord: Sendable {
  typealias Completion = (URLResponse, Any?, (any Error)?) -> Void
  typealias ProgressBlock = (Progress) -> Void
  typealias Destination = (URL, URLResponse) -> URL

  /// The receiver of the result. Blocks belong to the program, and need not be `Sendable`.
  enum Receiver: @unchecked Sendable {
    case absent
    /// A handler, called on the manager's completion queue.
    case handler(Completion)
    /// An awaiting caller: called at once, on any thread.
    case waiting(Completion)
  }

  /// The blocks and the results of one task. Blocks belong to the program, and need not be `Sendable`.
  struct Content: @unchecked Sendable {
    var receiver = Receiver.absent
    var uploadBlock: ProgressBlock?
    var downloadBlock: ProgressBlock?
    /// Called on the session's queue with each piece of the content, before `downloadBlock`.
    var pieceBlock: ((Data) -> Void)?
    var destination: Destination?
    var uploadProgress: Progress?
    var downloadProgress: Progress?
    var data = Data()
    /// The final location of a download's file.
    var file: URL?
    /// An error that replaces the session's error.
    var failure: (any Error)?
    var metrics: URLSessionTaskMetrics?

    var watchesUpload: Bool { uploadBlock != nil || uploadProgress != nil }
    var watchesDownload: Bool { downloadBlock != nil || downloadProgress != nil || pieceBlock != nil }
    /// Whether the task has progress observers, which are called on the session's queue, one call after another.
    var isWatched: Bool { watchesUpload || watchesDownload }
  }

  let task: URLSessionTask
  private let content = Mutex(Content())

  init(_ task: URLSessionTask) { self.task = task }

  /// Creates the record of a download task that replaces a data task.
  convenience init(_ task: URLSessionTask, of other: TaskRecord) {
    self.init(task)
    let content = other.content.withLock { $0 }
    self.content.withLock { $0 = content }
  }

  func change(_ body: (inout Content) -> Void) { content.withLock { body(&$0) } }

  var destination: Destination? { content.withLock { $0.destination } }

  /// Whether the program has given the task a destination or a handler for its file.
  var hasFileReceiver: Bool {
    content.withLock { content in
      if case .absent = content.receiver { content.destination != nil } else { true }
    }
  }

  /// Returns the content, and empties the record.
  func take() -> Content { content.withLock { exchange(&$0, with: Content()) } }

  func fail(_ error: any Error) { content.withLock { $0.failure = error } }

  // MARK: - Progress

  private static func progress(of task: URLSessionTask) -> Progress {
    let progress = Progress(parent: nil, userInfo: nil)
    progress.totalUnitCount = NSURLSessionTransferSizeUnknown
    progress.isCancellable = true
    progress.isPausable = true
    progress.cancellationHandler = { [weak task] in task?.cancel() }
    progress.pausingHandler = { [weak task] in task?.suspend() }
    progress.resumingHandler = { [weak task] in task?.resume() }
    return progress
  }

  /// Returns the progress at `path`, which is created if there is none.
  private func progress(_ path: WritableKeyPath<Content, Progress?>) -> Progress {
    if let progress = content.withLockUnchecked({ $0[keyPath: path] }) { return progress }
    let new = Self.progress(of: task)
    // A task of an earlier process has counts already.
    let (count, total) =
      path == \.uploadProgress
      ? (task.countOfBytesSent, task.countOfBytesExpectedToSend)
      : (task.countOfBytesReceived, task.countOfBytesExpectedToReceive)
    if count > 0 { ProgressCounts.set(new) { (count, total) } }
    return content.withLockUnchecked { content in
      let progress = content[keyPath: path] ?? new
      content[keyPath: path] = progress
      return progress
    }
  }

  var uploadProgress: Progress { progress(\.uploadProgress) }

  var downloadProgress: Progress { progress(\.downloadProgress) }

  var watchesUpload: Bool { content.withLock { $0.watchesUpload } }

  var watchesDownload: Bool { content.withLock { $0.watchesDownload } }

  var isWatched: Bool { content.withLock { $0.isWatched } }

  func sent(_ count: Int64, of total: Int64) {
    guard watchesUpload else { return }
    report(uploadProgress, content.withLock { $0.uploadBlock }, count, total)
  }

  func received(_ count: Int64, of total: Int64) {
    guard watchesDownload else { return }
    report(downloadProgress, content.withLock { $0.downloadBlock }, count, total)
  }

  private func report(_ progress: Progress, _ block: ProgressBlock?, _ count: Int64, _ total: Int64) {
    ProgressCounts.set(progress) { (count, total) }
    block?(progress)
  }

  func received(_ piece: Data) {
    content.withLock { content in
      if content.data.isEmpty { content.data = piece } else { content.data.append(piece) }
    }
    content.withLock { $0.pieceBlock }?(piece)
    received(task.countOfBytesReceived, of: task.countOfBytesExpectedToReceive)
  }

  /// The content is complete: if its length was unknown, reports it now.
  func ended() {
    guard watchesDownload, task.countOfBytesExpectedToReceive < 0, task.countOfBytesReceived > 0 else { return }
    received(task.countOfBytesReceived, of: task.countOfBytesReceived)
  }
}
