/// A moment on the monotonic clock, in nanoseconds since an arbitrary start. It never jumps with the wall clock.
///
/// Each request compares some twenty of them: what is `@inlinable` here saves a call each, 2 % of a request through a pool.
public struct Deadline: Comparable, Hashable, Sendable {
  public var nanoseconds: UInt64

  @inlinable
  public init(nanoseconds: UInt64) {
    self.nanoseconds = nanoseconds
  }

  /// A moment that does not come.
  @inlinable
  @inline(__always)
  public static var never: Deadline { Deadline(nanoseconds: .max) }

  @inlinable
  @inline(__always)
  public static func < (lhs: Deadline, rhs: Deadline) -> Bool { lhs.nanoseconds < rhs.nanoseconds }

  // Without this one, others would ask the conformance.
  @inlinable
  @inline(__always)
  public static func > (lhs: Deadline, rhs: Deadline) -> Bool { lhs.nanoseconds > rhs.nanoseconds }

  @inlinable
  @inline(__always)
  public static func == (lhs: Deadline, rhs: Deadline) -> Bool { lhs.nanoseconds == rhs.nanoseconds }

  /// The moment `duration` after this one. A negative duration counts as zero; one that is too long gives `never`.
  public func advanced(by duration: Duration) -> Deadline { advanced(byNanoseconds: duration.wholeNanoseconds) }

  /// For those who do it often: a duration takes a hundred instructions to convert.
  @inlinable
  @inline(__always)
  public func advanced(byNanoseconds count: UInt64) -> Deadline {
    let (result, overflow) = nanoseconds.addingReportingOverflow(count)
    return overflow ? .never : Deadline(nanoseconds: result)
  }

  /// How long it is from `earlier` to here: zero if that is later.
  public func duration(since earlier: Deadline) -> Duration {
    .nanoseconds(Int64(clamping: nanoseconds > earlier.nanoseconds ? nanoseconds - earlier.nanoseconds : 0))
  }

  /// What `epoll_wait` is to be told at `now`: whole milliseconds, rounded up so that it does not wake too
  /// early and spin; -1 for ever.
  public func timeoutMilliseconds(from now: Deadline) -> Int32 {
    guard self != .never else { return -1 }
    guard self > now else { return 0 }
    let left = nanoseconds - now.nanoseconds
    return Int32(clamping: left / 1_000_000 + (left % 1_000_000 == 0 ? 0 : 1))
  }
}

extension Duration {
  /// Zero if it is negative, and at most what fits.
  package var wholeNanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    let (whole, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow2) = whole.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
    return overflow || overflow2 ? .max : sum
  }
}
