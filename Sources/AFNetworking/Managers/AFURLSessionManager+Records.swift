import Foundation
import Larkspur
import Synchronization

/// The lifetime of a task's record: created with the task, filled by the method that creates the task, and removed at
/// the task's end.
extension AFURLSessionManager {
  func record(of task: URLSessionTask) -> TaskRecord? { state.withLock { $0.record(of: task) } }

  /// Returns the record of a task whose progress the program wants to observe, and sets `hasWatchedTasks`.
  func watched(_ task: URLSessionTask) -> TaskRecord? {
    hasWatchedTasks.store(true, ordering: .releasing)
    return record(of: task)
  }

  func replace(_ old: URLSessionTask, by new: URLSessionTask) {
    state.withLock { state in
      if let record = state.forget(old) { state.keep(TaskRecord(new, of: record)) }
    }
  }

  /// Creates a task of the current session, with its record.
  ///
  /// - Parameters:
  ///   - make: Creates the task.
  ///   - fill: Sets the record's handlers.
  func add<Kind: URLSessionTask>(
    _ make: (URLSession) -> Kind, _ fill: (inout TaskRecord.Content) -> Void
  ) -> Kind {
    let task = make(session)
    let (record, isInvalidated, refusal) = state.withLock { state -> (TaskRecord, Bool, URLError?) in
      (state.noted(task), state.isInvalidated, state.refusal)
    }
    record.change(fill)
    if record.isWatched { hasWatchedTasks.store(true, ordering: .releasing) }
    // An invalidated session has released its delegate, and ends the task at once: the manager becomes the task's own
    // delegate.
    if isInvalidated { task.delegate = self }
    if let refusal {
      record.fail(refusal)
      task.cancel()
    }
    return task
  }

  func addUpload(
    _ make: (URLSession) -> URLSessionUploadTask, _ progress: TaskRecord.ProgressBlock?,
    _ completion: TaskRecord.Completion?
  ) -> URLSessionUploadTask {
    add(make) {
      $0.uploadBlock = progress
      if let completion { $0.receiver = .handler(completion) }
    }
  }

  func addDownload(
    _ make: (URLSession) -> URLSessionDownloadTask, _ progress: TaskRecord.ProgressBlock?,
    _ destination: TaskRecord.Destination?,
    _ completion: ((URLResponse, URL?, (any Error)?) -> Void)?
  ) -> URLSessionDownloadTask {
    add(make) {
      $0.downloadBlock = progress
      $0.destination = destination
      if let completion { $0.receiver = .handler { completion($0, $1 as? URL, $2) } }
    }
  }

  var address: String { "0x" + String(UInt(bitPattern: ObjectIdentifier(self)), radix: 16) }
}
