import LarkspurIO

/// A moment, as both clocks of the machine show it.
public struct TransferMoment: Hashable, Sendable {
  /// The time in seconds since 1970.
  public var wallSeconds: Double
  /// The time since the machine's start in seconds.
  public var bootSeconds: Double
  /// The machine's start (`MachineClock.boot`), or `nil` if it is not known.
  public var boot: UInt64?

  public init(wallSeconds: Double, bootSeconds: Double, boot: UInt64?) {
    self.wallSeconds = wallSeconds
    self.bootSeconds = bootSeconds
    self.boot = boot
  }

  /// Reads the clocks.
  public static var now: TransferMoment {
    TransferMoment(
      wallSeconds: MachineClock.wallSeconds, bootSeconds: MachineClock.bootSeconds, boot: MachineClock.boot)
  }
}
