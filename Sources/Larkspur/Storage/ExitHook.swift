import Foundation
import Synchronization

/// What has something to write when the process ends of itself, by `exit` or by the return of `main`.
protocol FinishedAtExit: AnyObject, Sendable {
  /// Returns when it is written. Called once, by whoever ends the process.
  func finishAtExit()
}

enum ExitHook {
  private struct Weak: @unchecked Sendable {
    weak var object: (any FinishedAtExit)?
  }

  private static let registered = Mutex<[Weak]>([])

  private static let isHooked: Bool = atexit { ExitHook.finishAll() } == 0

  static func register(_ object: any FinishedAtExit) {
    _ = isHooked
    // Whoever goes with the last reference goes outside of the lock.
    let others = registered.withLock { registered in
      let others = registered.compactMap(\.object).filter { $0 !== object }
      registered = (others + [object]).map { Weak(object: $0) }
      return others
    }
    withExtendedLifetime(others) {}
  }

  private static func finishAll() {
    for object in registered.withLock({ $0.compactMap(\.object) }) { object.finishAtExit() }
  }
}
