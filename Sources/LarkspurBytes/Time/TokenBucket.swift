/// How fast bytes may go: so many a second, and after a pause so many at once.
///
/// Theory of operation. The bucket is one moment: up to it, the bytes that have gone are paid for by time. Each byte
/// moves it on. While it lies in the past, the distance is what may go at once; it is never further back than a burst.
/// When it lies in the future, more went than was there (a kernel call gives what it gives), and nothing goes until then:
/// the average holds all the same.
public struct TokenBucket: Hashable, Sendable {
  private let bytesPerSecond: UInt64
  private let burstNanoseconds: UInt64
  private var paidUntil: Deadline

  /// - Parameters:
  ///   - bytesPerSecond: At least one.
  ///   - burstBytes: What may go at once after a pause; by default what goes in a tenth of a second.
  public init(bytesPerSecond: Int, burstBytes: Int? = nil, now: Deadline) {
    self.bytesPerSecond = UInt64(max(bytesPerSecond, 1))
    burstNanoseconds = Self.nanoseconds(
      for: max(burstBytes ?? bytesPerSecond / 10, 1), at: self.bytesPerSecond)
    paidUntil = Deadline(nanoseconds: now.nanoseconds - min(now.nanoseconds, burstNanoseconds))
  }

  /// How many bytes may go at `now`.
  public func available(at now: Deadline) -> Int {
    let start = max(paidUntil.nanoseconds, now.nanoseconds - min(now.nanoseconds, burstNanoseconds))
    guard now.nanoseconds > start else { return 0 }
    let product = (now.nanoseconds - start).multipliedFullWidth(by: bytesPerSecond)
    guard product.high < Self.second else { return .max }
    return Int(clamping: Self.second.dividingFullWidth(product).quotient)
  }

  /// So many bytes have gone. They may be more than were available.
  public mutating func take(_ count: Int, at now: Deadline) {
    let start = max(paidUntil.nanoseconds, now.nanoseconds - min(now.nanoseconds, burstNanoseconds))
    let (sum, overflow) = start.addingReportingOverflow(Self.nanoseconds(for: count, at: bytesPerSecond))
    paidUntil = overflow ? .never : Deadline(nanoseconds: sum)
  }

  /// When it is worth going on: as soon as a quarter of the burst may go. For each single byte would be a wake-up each.
  public var refill: Deadline {
    let wait = max(burstNanoseconds / 4, Self.nanoseconds(for: 1, at: bytesPerSecond))
    return paidUntil.advanced(by: .nanoseconds(Int64(clamping: wait)))
  }

  private static let second: UInt64 = 1_000_000_000

  /// How long so many bytes take, rounded up: never faster than allowed.
  private static func nanoseconds(for count: Int, at bytesPerSecond: UInt64) -> UInt64 {
    let product = UInt64(max(count, 0)).multipliedFullWidth(by: second)
    guard product.high < bytesPerSecond else { return .max }
    let (quotient, remainder) = bytesPerSecond.dividingFullWidth(product)
    return quotient == .max || remainder == 0 ? quotient : quotient + 1
  }
}
