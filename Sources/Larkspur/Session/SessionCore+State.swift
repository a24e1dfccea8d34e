import Foundation
import LarkspurIO

extension SessionCore {
  /// The phases of a session:
  ///
  /// ```
  ///   open --invalidate--> closing --last task ends--> closed: the delegate is notified and released
  ///     '--session object gone, no tasks--> closed
  /// ```
  enum Phase {
    case open
    case closing
    case closed
  }

  /// What changes in the life of a session. Behind the lock of `SessionCore.state`.
  struct State {
    var phase = Phase.open
    var cancelsTasks = false
    var delegate: (any URLSessionDelegate)?
    // Performance: the delegate as each protocol that it conforms to. A cast takes longer than a call.
    var taskDelegate: (any URLSessionTaskDelegate)?
    var dataDelegate: (any URLSessionDataDelegate)?
    var selective: (any URLSessionSelectiveDelegate)?
    var tasks = IndexedSet<URLSessionTask>()
    /// The awaited loads that have no task.
    var loads = IndexedSet<Load>()
    /// The requests that the cache is refreshing.
    var refreshes: Set<URLRequest> = []
    var engine: SessionEngine?
    /// The session, which stays alive until its delegate has been called for the session's end. `nil` without a
    /// delegate.
    var kept: URLSession?
    var isObjectGone = false
    /// The tasks of a background session, or the reason why there can be none. `nil` for other sessions.
    var background: Result<BackgroundSession, URLError>?
    /// Whether the runner of a background session is still searched for: the session may get tasks of earlier processes.
    var isOpening = false

    /// Whether the session has no tasks and cannot get new ones.
    var isOver: Bool { count == 0 && !isOpening && (phase == .closing || phase == .open && isObjectGone) }

    private var count: Int { tasks.members.count + loads.members.count }

    /// Returns the engine, and makes it if there is none.
    ///
    /// - Parameter task: The task that needs the engine, or `nil` if the task does not exist yet. A task that existed
    ///   before the session was invalidated may still run.
    /// - Returns: The engine, or `nil` if the session takes no new tasks.
    mutating func engine(
      for task: URLSessionTask?, _ configuration: URLSessionConfiguration
    ) throws(URLError) -> SessionEngine? {
      guard phase == .open || task?.indexInSet != nil else { return nil }
      if let engine { return engine }
      do throws(Errno) {
        let engine = try SessionEngine(configuration)
        self.engine = engine
        return engine
      } catch {
        throw URLError.make(.resourceUnavailable, "no resources for a session: \(error)")
      }
    }

    /// Returns the task of a load that is not over, and makes the task if there is none.
    mutating func task(of load: Load) -> URLSessionTask {
      if let task = load.shownTask { return task }
      let task = URLSessionDataTask(of: load)
      load.shownTask = task
      loads.remove(load)
      tasks.insert(task)
      return task
    }
  }
}
