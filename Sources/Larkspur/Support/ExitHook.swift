import Foundation
import Synchronization

/// An object that writes to the disk when the process ends by `exit` or by the return of `main`.
protocol FinishedAtExit: AnyObject, Sendable {
  /// Writes, and returns when everything is written. Called once, on the thread that ends the process.
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
    // The last references are released outside the lock.
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
