import Dispatch
import Foundation
import LarkspurIO
import LarkspurTransfers
import Synchronization

/// The search for the executor.
extension BackgroundSession {
  /// Searches for the first executor, on a dedicated thread: a service that was stopped by a signal, or a disk that hangs,
  /// must not delay the thread that makes the session.
  ///
  /// - Parameter patience: The time for which the calling thread waits for the outcome.
  /// - Returns: The state after that.
  func start(_ session: URLSession, patience: DispatchTimeInterval) -> SessionLinkMachine.State {
    ExitHook.register(self)
    state.withLock { $0.session = session }
    do throws(Errno) {
      try SystemThread(name: "transfers-open") { [self] in connect() }.detach()
    } catch {
      failed(.unavailable(reason: "the program has no thread left: \(error)"), hasEarlierSession: false)
    }
    let isOpen = DispatchSemaphore(value: 0)
    whenOpened { isOpen.signal() }
    _ = isOpen.wait(timeout: .now() + patience)
    return state.withLock { $0.machine.state }
  }

  func report(after time: Duration, _ fact: @escaping @Sendable (inout State) -> Void) {
    let (seconds, attoseconds) = time.components
    let delay = Double(seconds) + Double(attoseconds) * 1e-18
    DispatchQueue.global().asyncAfter(deadline: .now() + delay) { [weak self] in
      self?.report(fact)
    }
  }

  func connect() {
    // An earlier session gives its identifier up first, and then its mark. So the marks are counted before the attempt.
    let ownMarks = state.withLock { $0.machine.isEnding } ? 1 : 0
    let hasEarlierSession = EndingSessions.count(directory) > ownMarks
    do throws(TransferLinkError) {
      let link = try BackgroundLink.open(core.configuration, in: directory)
      for record in link.records { core.reserve(record.task) }
      report { state in
        state.found = link
        state.machine.attached(link.records, into: &state.actions)
      }
    } catch {
      failed(error, hasEarlierSession: hasEarlierSession)
    }
  }

  private func failed(_ error: TransferLinkError, hasEarlierSession: Bool) {
    if !hasEarlierSession {
      BackgroundLink.log("background session \"\(core.configuration.identifier ?? "")\": \(error)")
    }
    report { $0.machine.failed(error, hasEarlierSession: hasEarlierSession, into: &$0.actions) }
  }

  /// Makes the task of a record of an earlier process.
  func adopt(_ record: TransferRecord) {
    let session = state.withLock { $0.session }
    // A URL that this version cannot parse: the task can be neither shown nor loaded.
    guard let session, let task = Self.task(of: record, core) else {
      return report { $0.machine.rejected(record.task, isReadable: session == nil, into: &$0.actions) }
    }
    core.adopt(task, session)
    state.withLock { $0.tasks[record.task] = task }
  }
}
