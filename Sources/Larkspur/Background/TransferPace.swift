import LarkspurBytes
import Synchronization

/// The transfers of a process that are not discretionary and are being carried out.
final class TransferTraffic: Sendable {
  static let shared = TransferTraffic()

  /// One of the transfers, as long as the object lives.
  final class Load: Sendable {
    private let traffic: TransferTraffic

    fileprivate init(_ traffic: TransferTraffic) {
      self.traffic = traffic
      traffic.count.withLock { $0 += 1 }
    }

    deinit { traffic.count.withLock { $0 -= 1 } }
  }

  private let count = Mutex(0)

  /// Whether there are any.
  var isBusy: Bool { count.withLock { $0 > 0 } }

  func add() -> Load { Load(self) }
}

/// The rate of one discretionary transfer while the process carries out others.
///
/// The transfer is paused when it is ahead of the rate. A paused task does not read from its connection, so the window of
/// TCP closes and the server sends no more.
struct TransferPace: Hashable {
  /// The rate in bytes per second: about that of a modem in the slowest mobile networks in use.
  static let bytesPerSecond = 65_536
  /// Maximum length of one pause. The others may have ended after that.
  static let pauseMax = Duration.seconds(1)

  /// The bucket of the bytes beyond `bytes`, or `nil` while there are no others.
  private var bucket: TokenBucket?
  private var bytes: Int64 = 0

  /// Returns the length of the pause that is due now, or `nil` if no pause is due.
  ///
  /// - Parameters:
  ///   - bytes: The number of bytes that the transfer has sent and received.
  ///   - now: The time by any clock that only goes forward.
  ///   - isYielding: Whether the process carries out others.
  mutating func pause(
    bytes: Int64, at now: Deadline, isYielding: Bool, bytesPerSecond: Int = Self.bytesPerSecond
  ) -> Duration? {
    guard isYielding else {
      bucket = nil
      return nil
    }
    // Another attempt counts from 0.
    if bucket == nil || bytes < self.bytes {
      // Time in which the transfer was slower by itself is not made up for: the burst is one byte.
      bucket = TokenBucket(bytesPerSecond: bytesPerSecond, burstBytes: 1, now: now)
      self.bytes = bytes
    }
    bucket?.take(Int(clamping: bytes - self.bytes), at: now)
    self.bytes = bytes
    guard let paid = bucket?.paidUntil, paid > now else { return nil }
    return min(paid.duration(since: now), Self.pauseMax)
  }
}
