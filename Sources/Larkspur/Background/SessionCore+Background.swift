import Dispatch
import Foundation
import LarkspurTransfers
import Synchronization

/// The background part of a session.
extension SessionCore {
  /// Reserves the identifiers up to one that an earlier process has used.
  func reserve(_ identifier: Int) { lastIdentifier.max(identifier, ordering: .relaxed) }

  /// The background part of the session, or `nil` if the session is none of background transfers or is over.
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

  /// The time for which a new background session waits for its executor.
  private static let openingMax = DispatchTimeInterval.milliseconds(80)

  /// Connects a background session with the executor of its tasks. Blocks for `openingMax` at most: after that the tasks
  /// wait for the executor.
  func openBackground(_ session: URLSession) {
    let result: Result<BackgroundSession, URLError>
    var late: LinkOpening?
    do throws(URLError) {
      let directory = try BackgroundLink.directory(configuration.storage)
      let isKnown = FileManager.default.fileExists(atPath: directory)
      let opening = BackgroundLink.openSoon(configuration, in: directory)
      if let outcome = opening.wait(Self.openingMax) {
        let link = try outcome.get()
        let last = BackgroundLink.lastTask(in: directory, link.records)
        // Tasks of the earlier session that have not been resumed may still be.
        reserve(link is AbsentLink ? last + TransferJournal.tasksMax : last)
        result = .success(BackgroundSession(self, link, in: directory))
      } else {
        // A service that hangs may not have read all tasks of an earlier process.
        if isKnown { reserve(BackgroundLink.lastTask(in: directory, []) + TransferJournal.tasksMax) }
        result = .success(BackgroundSession(self, AbsentLink(directory: directory), in: directory))
        late = opening
      }
    } catch {
      BackgroundLink.log(error.localizedDescription)
      result = .failure(error)
    }
    state.withLock { state in
      state.background = result
      state.isOpening = late != nil
    }
    if case .success(let background) = result { background.start(session, late) }
  }

  /// Calls a function when a background session has the tasks of earlier processes, and for any other session at once.
  func whenOpened(_ body: @escaping @Sendable () -> Void) {
    if isBackground, let background { background.whenOpened(body) } else { body() }
  }

  /// The search for the executor is over. An invalidation that came before counts for the tasks of earlier processes too.
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
