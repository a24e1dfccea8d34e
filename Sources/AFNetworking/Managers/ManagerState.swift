import Dispatch
import Foundation
import Larkspur

/// What a manager holds under its lock.
struct ManagerState: @unchecked Sendable {
  /// A task's identifier is unique within its session; a manager may have more than one while an old session ends.
  struct Key: Hashable {
    let session: ObjectIdentifier
    let identifier: Int

    init(_ task: URLSessionTask, _ session: URLSession) {
      self.session = ObjectIdentifier(session)
      identifier = task.taskIdentifier
    }
  }

  private(set) var configuration: URLSessionConfiguration
  private var session: URLSession?
  /// Set before a session is invalidated that no other follows.
  private(set) var isInvalidated = false
  var operationQueue: OperationQueue?
  var completionQueue: DispatchQueue?
  var completionGroup: DispatchGroup?
  var responseSerializer: any AFURLResponseSerialization = AFJSONResponseSerializer()
  var securityPolicy = AFSecurityPolicy.default()
  var reachabilityManager: AFNetworkReachabilityManager?
  var attemptsToRecreateUploadTasks = false
  /// Why the manager may not make any request.
  var refusal: NSError?
  private var records: [Key: TaskRecord] = [:]

  init(_ configuration: URLSessionConfiguration) {
    self.configuration = configuration.copy() as? URLSessionConfiguration ?? configuration
  }

  /// Before there is a session.
  mutating func begin(with configuration: URLSessionConfiguration) {
    if let copy = configuration.copy() as? URLSessionConfiguration { self.configuration = copy }
  }

  mutating func session(of manager: AFURLSessionManager) -> URLSession {
    if let session { return session }
    let new = URLSession(configuration: configuration, delegate: manager, delegateQueue: operationQueue)
    session = new
    return new
  }

  /// What is to be invalidated. Nil: there is no session, and nothing to end.
  mutating func end(resets: Bool, _ manager: AFURLSessionManager) -> URLSession? {
    guard let session else {
      // The next one is made for a manager that has been told to end.
      if !resets { isInvalidated = true }
      return resets ? nil : self.session(of: manager)
    }
    if resets { self.session = nil } else { isInvalidated = true }
    return session
  }

  // MARK: - Tasks

  var tasks: [URLSessionTask] { records.values.map(\.task).sorted { $0.taskIdentifier < $1.taskIdentifier } }

  func record(_ key: Key) -> TaskRecord? { records[key] }

  /// The record of a task that has none yet is made.
  mutating func noted(_ task: URLSessionTask, _ key: Key) -> TaskRecord {
    if let record = records[key] { return record }
    let record = TaskRecord(task)
    records[key] = record
    return record
  }

  mutating func keep(_ record: TaskRecord, _ key: Key) { records[key] = record }

  mutating func forget(_ key: Key) -> TaskRecord? { records.removeValue(forKey: key) }

  /// For a task of whichever session: one of an old session may have the identifier of a new one.
  func record(of task: URLSessionTask) -> TaskRecord? {
    if let session, let record = records[Key(task, session)], record.task === task { return record }
    return records.values.first { $0.task === task }
  }
}

extension URLSessionConfiguration {
  static func archived(in decoder: NSCoder) -> URLSessionConfiguration? {
    decoder.text(forKey: "identifier").map { .background(withIdentifier: $0) }
  }
}
