import LarkspurBytes

/// A one-way gate. Threads block at it until it opens, and it stays open.
public final class Latch: Sendable {
  private let semaphore = Semaphore()

  public init() {}

  /// Releases all waiting and future threads. May be called on any thread; further calls have no effect.
  public func open() { semaphore.put() }

  /// Blocks until the latch is open.
  ///
  /// - Returns: `false` if it was still closed at the deadline.
  @discardableResult
  public func wait(until deadline: Deadline = .never) -> Bool {
    guard semaphore.take(until: deadline) else { return false }
    // Each thread that passes releases the next one.
    open()
    return true
  }
}
