/// A moment on the monotonic clock, in nanoseconds since an arbitrary start. Changes of the wall clock do not
/// affect it.
///
/// Performance: each request compares about twenty deadlines. `@inlinable` saves a call for each, which is 2 % of a
/// request through a pool (decision 23).
public struct Deadline: Comparable, Hashable, Sendable {
  public var nanoseconds: UInt64

  @inlinable
  public init(nanoseconds: UInt64) {
    self.nanoseconds = nanoseconds
  }

  /// A moment that never comes.
  @inlinable
  @inline(__always)
  public static var never: Deadline { Deadline(nanoseconds: .max) }

  @inlinable
  @inline(__always)
  public static func < (lhs: Deadline, rhs: Deadline) -> Bool { lhs.nanoseconds < rhs.nanoseconds }

  // Performance: the default `>` of Comparable calls `<` through the conformance.
  @inlinable
  @inline(__always)
  public static func > (lhs: Deadline, rhs: Deadline) -> Bool { lhs.nanoseconds > rhs.nanoseconds }

  @inlinable
  @inline(__always)
  public static func == (lhs: Deadline, rhs: Deadline) -> Bool { lhs.nanoseconds == rhs.nanoseconds }

  /// Returns the moment `duration` after this one. A negative duration counts as zero, and the result is at most
  /// `never`.
  public func advanced(by duration: Duration) -> Deadline { advanced(byNanoseconds: duration.wholeNanoseconds) }

  /// Returns the moment `count` nanoseconds after this one, at most `never`. Performance: converting a `Duration` takes
  /// a hundred instructions.
  @inlinable
  @inline(__always)
  public func advanced(byNanoseconds count: UInt64) -> Deadline {
    let (result, overflow) = nanoseconds.addingReportingOverflow(count)
    return overflow ? .never : Deadline(nanoseconds: result)
  }

  /// Returns the moment in the middle between this one and a later one.
  public func halfway(to end: Deadline) -> Deadline {
    advanced(byNanoseconds: (max(self, end).nanoseconds - nanoseconds) / 2)
  }

  /// Returns the time from `earlier` to this moment, or zero if `earlier` is later.
  public func duration(since earlier: Deadline) -> Duration {
    .nanoseconds(Int64(clamping: nanoseconds > earlier.nanoseconds ? nanoseconds - earlier.nanoseconds : 0))
  }

  /// Returns the timeout for `epoll_wait` at `now`, in whole milliseconds, or -1 for no timeout. Rounds up, because a
  /// wait that ends too early would be repeated until the deadline.
  public func timeoutMilliseconds(from now: Deadline) -> Int32 {
    guard self != .never else { return -1 }
    guard self > now else { return 0 }
    let left = nanoseconds - now.nanoseconds
    return Int32(clamping: left / 1_000_000 + (left % 1_000_000 == 0 ? 0 : 1))
  }
}

extension Duration {
  /// The duration in nanoseconds: zero if it is negative, and at most `UInt64.max`.
  package var wholeNanoseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds >= 0, attoseconds >= 0 else { return 0 }
    let (whole, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overflow2) = whole.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
    return overflow || overflow2 ? .max : sum
  }
}
