/// A lower limit on a rate: a time within which a number of bytes has to move.
///
/// Theory of operation. Each time the bytes have moved, the time starts again. So a transfer that is never slower than
/// the rate passes, and one that stays slower fails within the time. The time stands still in pauses, in which no byte
/// is due.
public struct RateFloor: Hashable, Sendable {
  private let bytes: Int
  private let nanoseconds: UInt64
  private var start: Deadline
  private var moved = 0
  private var pausedAt: Deadline?

  public init(bytes: Int, over duration: Duration, now: Deadline) {
    self.bytes = max(bytes, 1)
    nanoseconds = duration.wholeNanoseconds
    start = now
  }

  /// The moment at which the transfer is too slow, or `never` in a pause.
  public var end: Deadline { pausedAt == nil ? start.advanced(byNanoseconds: nanoseconds) : .never }

  public mutating func moved(_ count: Int, at now: Deadline) {
    moved = moved.addingReportingOverflow(count).partialValue
    guard moved >= bytes || moved < 0 else { return }
    (start, moved) = (now, 0)
    if pausedAt != nil { pausedAt = now }
  }

  public mutating func pause(at now: Deadline) {
    if pausedAt == nil { pausedAt = now }
  }

  public mutating func resume(at now: Deadline) {
    guard let since = pausedAt else { return }
    pausedAt = nil
    start = start.advanced(by: now.duration(since: since))
  }
}
