import Dispatch
import Foundation
import LarkspurTransfers
import Synchronization

/// The background part of a session.
extension SessionCore {
  /// Reserves the identifiers up to one that an earlier process has used.
  func reserve(_ identifier: Int) { lastIdentifier.max(identifier, ordering: .relaxed) }

  /// The background part of the session, or `nil` if the session is not a background session or is over.
  var background: BackgroundSession? { try? openedBackground }

  var openedBackground: BackgroundSession? {
    get throws(URLError) {
      switch state.withLock({ $0.background }) {
      case .success(let background): background
      case .failure(let error): throw error
      case nil: nil
      }
    }
  }

  /// Connects a background session with the runner of its tasks. Blocks for 80 ms at most: after that the tasks wait for
  /// the runner.
  func openBackground(_ session: URLSession) {
    do throws(URLError) {
      guard interceptors.isEmpty else {
        throw URLError.make(
          .resourceUnavailable, "interceptors: tasks of background sessions are carried out elsewhere")
      }
      let directory = try BackgroundLink.directory(configuration.storage)
      let isKnown = FileManager.default.fileExists(atPath: directory)
      let background = BackgroundSession(self, in: directory)
      state.withLock { state in
        state.background = .success(background)
        state.isOpening = true
      }
      // Tasks of an earlier session that have not been resumed may still be, and a service that hangs may not have read
      // all tasks of an earlier process.
      let mayGrow =
        switch background.start(session, patience: .milliseconds(80)) {
        case .searching: isKnown
        case .waiting: true
        case .attached, .lost, .refused, .closing, .closed: false
        }
      reserve(BackgroundLink.lastTask(in: directory) + (mayGrow ? TransferJournal.tasksMax : 0))
    } catch {
      BackgroundLink.log(error.localizedDescription)
      state.withLock { $0.background = .failure(error) }
    }
  }

  /// Calls a function when a background session has the tasks of earlier processes, and for any other session at once.
  func whenOpened(_ body: @escaping @Sendable () -> Void) {
    if isBackground, let background { background.whenOpened(body) } else { body() }
  }

  /// The search for the runner is over. An invalidation that came before counts for the tasks of earlier processes too.
  func finishOpening() {
    let tasks = state.withLock { state in
      state.isOpening = false
      return state.cancelsTasks ? state.tasks.members : []
    }
    for task in tasks { task.cancel() }
    closeIfOver()
  }

  /// Adds a task of an earlier process to the list. Its delegate has been notified of it then.
  func adopt(_ task: URLSessionTask, _ session: URLSession) {
    task.read { $0.session = session }
    state.withLock { $0.tasks.insert(task) }
  }
}

extension URLSession {
  /// Whether the user's transfer service carries the tasks of this background session out, so that they continue
  /// without the process. `false` until the session has found the service: see `getAllTasks`.
  package var isServed: Bool { core.background?.isServed ?? false }

  /// The tasks that have been resumed and are not over. Unlike `getAllTasks` it needs no turn of the delegate queue, and
  /// blocks while the runner of a background session is searched for: 5 s at most.
  package var presentTasks: [URLSessionTask] {
    let isOpen = DispatchSemaphore(value: 0)
    core.whenOpened { isOpen.signal() }
    isOpen.wait()
    return core.knownTasks
  }
}
