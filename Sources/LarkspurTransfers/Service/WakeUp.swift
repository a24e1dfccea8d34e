import LarkspurBytes
import LarkspurIO

/// A semaphore that threads share. Its holder wakes one thread.
public final class WakeUp: Sendable {
  private let semaphore = Semaphore()

  public init() {}

  /// Makes the next or the present `wait` return. May be called on any thread.
  public func signal() { semaphore.put() }

  /// Blocks until a signal that no earlier call has taken, or until the deadline. All signals so far are taken.
  public func wait(until deadline: Deadline = .never) {
    if semaphore.take(until: deadline) { semaphore.takeAll() }
  }
}
