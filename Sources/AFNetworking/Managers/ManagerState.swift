import Dispatch
import Foundation
import Larkspur

/// What a manager holds under its lock.
struct ManagerState: @unchecked Sendable {
  private(set) var configuration: URLSessionConfiguration
  private var session: URLSession?
  /// Set before a session is invalidated that no other follows.
  private(set) var isInvalidated = false
  var operationQueue: OperationQueue?
  var completionQueue: DispatchQueue? { didSet { completesOnMain = completionQueue?.isMain ?? true } }
  private(set) var completesOnMain = true
  var completionGroup: DispatchGroup?
  var responseSerializer: any AFURLResponseSerialization = AFJSONResponseSerializer()
  var securityPolicy = AFSecurityPolicy.default()
  var reachabilityManager: AFNetworkReachabilityManager?
  var attemptsToRecreateUploadTasks = false
  /// Why the manager may not make any request.
  var refusal: URLError?
  /// By the tasks themselves, which they keep: identifiers of an old session's tasks may be those of a new one's.
  private var records: [ObjectIdentifier: TaskRecord] = [:]

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

  func record(of task: URLSessionTask) -> TaskRecord? { records[ObjectIdentifier(task)] }

  /// The record of a task that has none yet is made.
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
