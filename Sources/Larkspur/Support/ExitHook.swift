import Foundation
import Synchronization

/// An object that completes its work when the process ends by `exit` or by the return of `main`.
package protocol FinishedAtExit: AnyObject, Sendable {
  /// Returns when the work is complete. Called once, on the thread that ends the process.
  func finishAtExit()
}

/// The objects that complete their work when the process ends. Holds them weakly.
package enum ExitHook {
  private struct Weak: @unchecked Sendable {
    weak var object: (any FinishedAtExit)?
  }

  private static let registered = Mutex<[Weak]>([])

  private static let isHooked: Bool = atexit { ExitHook.finishAll() } == 0

  /// Registers an object. A later registration of the object replaces the earlier one.
  ///
  /// - Parameter isFirst: Whether the object completes its work before those that are not first, because its work
  ///   changes what they write.
  package static func register(_ object: any FinishedAtExit, isFirst: Bool = false) {
    _ = isHooked
    // The last references are released outside the lock.
    let others = registered.withLock { registered in
      let others = registered.compactMap(\.object).filter { $0 !== object }
      registered = (isFirst ? [object] + others : others + [object]).map { Weak(object: $0) }
      return others
    }
    withExtendedLifetime(others) {}
  }

  private static func finishAll() {
    for object in registered.withLock({ $0.compactMap(\.object) }) { object.finishAtExit() }
  }
}
