/// A rate limit: a number of bytes a second, and a burst after a pause.
///
/// Theory of operation. The state is one moment, `paidUntil`. Taking bytes moves the moment forward by the time that
/// these bytes need at the rate. While the moment is in the past, the bytes of the time since then are available, but
/// never more than a burst. While the moment is in the future, more bytes were taken than were available (a kernel call
/// returns what it has), and no bytes are available until then. So the average rate holds in any case.
public struct TokenBucket: Hashable, Sendable {
  private let bytesPerSecond: UInt64
  private let burstNanoseconds: UInt64
  /// The moment up to which time has paid for the taken bytes. In the future if more was taken than available.
  public private(set) var paidUntil: Deadline

  /// Creates a bucket that allows a full burst.
  ///
  /// - Parameters:
  ///   - bytesPerSecond: The rate, at least one byte a second.
  ///   - burstBytes: The number of bytes available after a pause. The default is a tenth of a second's bytes.
  public init(bytesPerSecond: Int, burstBytes: Int? = nil, now: Deadline) {
    self.bytesPerSecond = UInt64(max(bytesPerSecond, 1))
    burstNanoseconds = Self.nanoseconds(
      for: max(burstBytes ?? bytesPerSecond / 10, 1), at: self.bytesPerSecond)
    paidUntil = Deadline(nanoseconds: now.nanoseconds - min(now.nanoseconds, burstNanoseconds))
  }

  /// Returns the number of bytes available at `now`.
  public func available(at now: Deadline) -> Int {
    let start = max(paidUntil.nanoseconds, now.nanoseconds - min(now.nanoseconds, burstNanoseconds))
    guard now.nanoseconds > start else { return 0 }
    let product = (now.nanoseconds - start).multipliedFullWidth(by: bytesPerSecond)
    guard product.high < Self.second else { return .max }
    return Int(clamping: Self.second.dividingFullWidth(product).quotient)
  }

  /// Takes `count` bytes. They may be more than are available.
  public mutating func take(_ count: Int, at now: Deadline) {
    let start = max(paidUntil.nanoseconds, now.nanoseconds - min(now.nanoseconds, burstNanoseconds))
    let (sum, overflow) = start.addingReportingOverflow(Self.nanoseconds(for: count, at: bytesPerSecond))
    paidUntil = overflow ? .never : Deadline(nanoseconds: sum)
  }

  /// The moment to continue: when a quarter of the burst is available. A wake-up for each byte would cost too much.
  public var refill: Deadline {
    let wait = max(burstNanoseconds / 4, Self.nanoseconds(for: 1, at: bytesPerSecond))
    return paidUntil.advanced(by: .nanoseconds(Int64(clamping: wait)))
  }

  private static let second: UInt64 = 1_000_000_000

  /// Returns the time that `count` bytes take, rounded up so that the rate is never exceeded.
  private static func nanoseconds(for count: Int, at bytesPerSecond: UInt64) -> UInt64 {
    let product = UInt64(max(count, 0)).multipliedFullWidth(by: second)
    guard product.high < bytesPerSecond else { return .max }
    let (quotient, remainder) = bytesPerSecond.dividingFullWidth(product)
    return quotient == .max || remainder == 0 ? quotient : quotient + 1
  }
}
