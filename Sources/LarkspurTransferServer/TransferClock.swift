import LarkspurBytes
import LarkspurIO
import LarkspurTransfers

/// The time by which a transfer server ends.
public protocol TransferClock: Sendable {
  var now: Deadline { get }
  /// Blocks until the wake-up is signalled or the deadline has passed.
  func wait(for wakeUp: WakeUp, until deadline: Deadline)
}

/// The monotonic clock of the machine.
public struct MachineClock: TransferClock {
  public init() {}

  public var now: Deadline { LinuxKernel.shared.now() }

  public func wait(for wakeUp: WakeUp, until deadline: Deadline) { wakeUp.wait(until: deadline) }
}
