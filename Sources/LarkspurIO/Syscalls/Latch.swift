import LarkspurBytes

/// A door that opens once and stays open. Threads block at it until then.
public final class Latch: Sendable {
  private let semaphore = Semaphore()

  public init() {}

  /// Lets everyone through, now and later. Any thread; more than once is as good as once.
  public func open() { semaphore.put() }

  /// Blocks until it is open. False: it was still shut at the deadline.
  @discardableResult
  public func wait(until deadline: Deadline = .never) -> Bool {
    guard semaphore.take(until: deadline) else { return false }
    // Whoever passes holds the door for the next.
    open()
    return true
  }
}
