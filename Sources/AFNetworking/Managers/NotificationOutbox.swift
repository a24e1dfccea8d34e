import Dispatch
import Foundation
import Synchronization

/// Carries notifications to the main thread.
///
/// All that wait go by one block, in order. A program whose main thread never serves its queue would keep every
/// notification, and with it every response, for ever: when too many wait the oldest are given up, which nobody would
/// have heard.
final class NotificationOutbox: Sendable {
  static let main = NotificationOutbox()

  /// So many notifications wait at most. Attack: a server that answers, to a program that never turns its main loop.
  static let waitingMax = 4096

  private struct Letter: @unchecked Sendable {
    let name: NSNotification.Name
    let object: URLSessionTask
    let userInfo: () -> [AnyHashable: Any]?
  }

  private struct State {
    var letters: [Letter] = []
    var isOnItsWay = false
  }

  private let state = Mutex(State())
  private let max: Int
  private let schedule: @Sendable (@escaping @Sendable () -> Void) -> Void

  init(
    max: Int = NotificationOutbox.waitingMax,
    schedule: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { DispatchQueue.main.async(execute: $0) }
  ) {
    self.max = max
    self.schedule = schedule
  }

  /// - Parameter userInfo: Called on the main thread.
  func post(
    _ name: NSNotification.Name, _ task: URLSessionTask, userInfo: @escaping () -> [AnyHashable: Any]? = { nil }
  ) {
    let letter = Letter(name: name, object: task, userInfo: userInfo)
    let (needsBlock, _) = state.withLock { state -> (Bool, Letter?) in
      defer { state.isOnItsWay = true }
      // What is given up goes when the lock has gone.
      let lost = state.letters.count >= max ? state.letters.removeFirst() : nil
      state.letters.append(letter)
      return (!state.isOnItsWay, lost)
    }
    if needsBlock { schedule { self.deliver() } }
  }

  /// Calls `body`, and posts what waits then: what `body` has posted needs no block of its own. On the main queue.
  func within(_ body: () -> Void) {
    state.withLock { $0.isOnItsWay = true }
    body()
    deliver()
  }

  /// What waits is posted now. On the main thread.
  func deliver() {
    let letters = state.withLock { state in
      defer { state = State() }
      return state.letters
    }
    for letter in letters {
      NotificationCenter.default.post(name: letter.name, object: letter.object, userInfo: letter.userInfo())
    }
  }
}
