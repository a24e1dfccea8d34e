import LarkspurBytes
import LarkspurIO
import LarkspurTransfers

/// The time by which a transfer server ends.
public protocol TransferClock: Sendable {
  func now() -> Deadline
  /// Blocks until the wake-up is signalled or the deadline has passed.
  func wait(for wakeUp: WakeUp, until deadline: Deadline)
}

extension LinuxKernel: TransferClock {
  public func wait(for wakeUp: WakeUp, until deadline: Deadline) { wakeUp.wait(until: deadline) }
}
