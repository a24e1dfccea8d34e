import LarkspurIO

/// The times of a record. The wall clock may have been wrong when they were written.
///
/// Within one boot, a time is the monotonic clock's time plus `clock.startSeconds`, so the difference of two times does
/// not depend on the wall clock. When the wall clock is set, `adjust` moves the times by the same amount. After another
/// boot, only the wall clock connects a record with the current time, and `adjust` corrects impossible times.
extension TransferRecord {
  /// The relation between the two clocks when the times of a record were written.
  public struct Clock: Codable, Hashable, Sendable {
    public var boot: UInt64
    /// The time of the wall clock at the machine's start, in seconds since 1970.
    public var startSeconds: Double

    public init(boot: UInt64, startSeconds: Double) {
      self.boot = boot
      self.startSeconds = startSeconds
    }

    init?(_ moment: TransferMoment) {
      guard let boot = moment.boot else { return nil }
      self.init(boot: boot, startSeconds: moment.wallSeconds - moment.bootSeconds)
    }
  }

  /// Maximum wait for the next attempt in seconds.
  public static let waitMax = 3600.0
  /// The first moment of 2026, in seconds since 1970. No record is older, and a clock before it has not been set.
  static let earliestSeconds = 1_767_225_600.0
  /// The difference in seconds from which on a clock counts as set.
  private static let driftMax = 60.0

  /// Returns a moment as a time that can be compared with those of the record.
  public func seconds(at moment: TransferMoment) -> Double {
    if let clock, clock.boot == moment.boot { moment.bootSeconds + clock.startSeconds } else { moment.wallSeconds }
  }

  /// Whether the wall clock has been set since the times were written.
  public func hasOtherClock(at moment: TransferMoment) -> Bool {
    guard let clock, let other = Clock(moment) else { return false }
    return clock.boot != other.boot || abs(clock.startSeconds - other.startSeconds) > Self.driftMax
  }

  /// Whether the task waits neither for its earliest start nor for its next attempt.
  public func isDue(at moment: TransferMoment) -> Bool {
    let (earliest, next) = (earliestBeginSeconds ?? -.infinity, nextAttemptSeconds ?? -.infinity)
    return earliest <= moment.wallSeconds && next <= seconds(at: moment)
  }

  /// Expresses the times by the wall clock of a moment. The earliest start, which the program has set, stays as it is.
  public mutating func adjust(to moment: TransferMoment) {
    let other = Clock(moment)
    let now = moment.wallSeconds
    if let clock, let other, clock.boot == other.boot {
      move(by: other.startSeconds - clock.startSeconds)
    } else if createdSeconds < Self.earliestSeconds {
      createdSeconds = now
    }
    clock = other
    createdSeconds = min(createdSeconds, now)
    suspendedSeconds = suspendedSeconds.map { min(max($0, createdSeconds), now) }
    pausedSeconds = min(pausedSeconds, now - createdSeconds)
    nextAttemptSeconds = nextAttemptSeconds.map { min($0, now + Self.waitMax) }
  }

  private mutating func move(by seconds: Double) {
    createdSeconds += seconds
    suspendedSeconds = suspendedSeconds.map { $0 + seconds }
    nextAttemptSeconds = nextAttemptSeconds.map { $0 + seconds }
  }
}

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
