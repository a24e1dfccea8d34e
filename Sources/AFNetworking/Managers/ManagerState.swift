import Dispatch
import Foundation
import Larkspur

/// The state of a manager, under its lock. The program's serializer and policy are safe on any thread: see
/// ``AFURLResponseSerialization`` and ``AFSecurityPolicy``.
struct ManagerState: @unchecked Sendable {
  private(set) var configuration: URLSessionConfiguration
  private(set) var session: URLSession?
  /// Whether the session has been, or is about to be, invalidated without a successor.
  private(set) var isInvalidated = false
  var operationQueue: OperationQueue?
  var completionQueue: DispatchQueue? { didSet { completesOnMain = completionQueue?.isMain ?? true } }
  private(set) var completesOnMain = true
  var completionGroup: DispatchGroup?
  var responseSerializer: any AFURLResponseSerialization = AFJSONResponseSerializer()
  var securityPolicy = AFSecurityPolicy.default()
  var reachabilityManager: AFNetworkReachabilityManager?
  var attemptsToRecreateUploadTasks = false
  /// The reason why the manager must not make requests.
  var refusal: URLError?
  /// Records by task. Keyed by the task object, which the record retains: a new session may reuse the task identifiers
  /// of the old one.
  private var records: [ObjectIdentifier: TaskRecord] = [:]

  init(_ configuration: URLSessionConfiguration) {
    self.configuration = configuration.copy() as? URLSessionConfiguration ?? configuration
  }

  /// Replaces the configuration, before there is a session.
  mutating func start(with configuration: URLSessionConfiguration) {
    if let copy = configuration.copy() as? URLSessionConfiguration { self.configuration = copy }
  }

  mutating func session(of manager: AFURLSessionManager) -> URLSession {
    if let session { return session }
    let new = URLSession(configuration: configuration, delegate: manager, delegateQueue: operationQueue)
    session = new
    return new
  }

  /// Ends the current session.
  ///
  /// - Returns: The session to invalidate, or `nil` if there is none.
  mutating func end(resets: Bool, _ manager: AFURLSessionManager) -> URLSession? {
    guard let session else {
      // Create the session, so that tasks of the invalidated manager end with an error.
      if !resets { isInvalidated = true }
      return resets ? nil : self.session(of: manager)
    }
    if resets { self.session = nil } else { isInvalidated = true }
    return session
  }

  // MARK: - Tasks

  var tasks: [URLSessionTask] { records.values.map(\.task).sorted { $0.taskIdentifier < $1.taskIdentifier } }

  func record(of task: URLSessionTask) -> TaskRecord? { records[ObjectIdentifier(task)] }

  /// Returns the task's record, which is created if there is none.
  mutating func noted(_ task: URLSessionTask) -> TaskRecord {
    if let record = record(of: task) { return record }
    let record = TaskRecord(task)
    keep(record)
    return record
  }

  mutating func keep(_ record: TaskRecord) { records[ObjectIdentifier(record.task)] = record }

  mutating func forget(_ task: URLSessionTask) -> TaskRecord? { records.removeValue(forKey: ObjectIdentifier(task)) }
}

extension URLSessionConfiguration {
  static func archived(in decoder: NSCoder) -> URLSessionConfiguration? {
    decoder.text(forKey: "identifier").map { .background(withIdentifier: $0) }
  }
}
