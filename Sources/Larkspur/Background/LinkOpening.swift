import Dispatch
import Foundation
import LarkspurIO
import LarkspurTransfers
import Synchronization

/// The search for the executor of a background session, on a thread of its own: a service that was stopped by a signal, or
/// a disk that hangs, must not hold up the thread that makes the session.
final class LinkOpening: Sendable {
  typealias Outcome = Result<any TransferLink, URLError>

  private let search = DispatchGroup()
  private let outcome = Mutex<Outcome?>(nil)

  /// - Parameter open: Finds the executor. May block.
  init(_ open: @escaping @Sendable () -> Outcome) {
    search.enter()
    do throws(Errno) {
      try SystemThread(name: "transfers-open") { [self] in end(open()) }.detach()
    } catch {
      end(.failure(.make(.backgroundSessionWasDisconnected, "the program has no thread left: \(error)")))
    }
  }

  private func end(_ result: Outcome) {
    outcome.withLock { $0 = result }
    search.leave()
  }

  /// Waits for the outcome.
  ///
  /// - Returns: `nil` if there is none within this time.
  func wait(_ time: DispatchTimeInterval) -> Outcome? {
    _ = search.wait(timeout: .now() + time)
    return outcome.withLock { $0 }
  }

  /// Calls a function with the outcome, on any thread.
  func whenOver(_ body: @escaping @Sendable (Outcome) -> Void) {
    search.notify(queue: .global()) { [self] in
      if let outcome = outcome.withLock({ $0 }) { body(outcome) }
    }
  }
}
