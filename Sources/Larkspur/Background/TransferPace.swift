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
  /// The rate in bytes per second: about what a modem of the slowest mobile networks in use carries.
  static let bytesPerSecond = 65_536.0
  /// Maximum length of one pause in seconds. The others may have ended after that.
  static let pauseMax = 1.0

  private struct Start: Hashable {
    var bytes: Int64
    var seconds: Double
  }

  /// The point from which the rate counts, or `nil` while there are no others.
  private var start: Start?

  /// Returns the length of the pause in seconds that is due now, or `nil` if none is.
  ///
  /// - Parameters:
  ///   - bytes: The number of bytes that the transfer has sent and received.
  ///   - seconds: The time by any clock that only goes forward.
  ///   - isYielding: Whether the process carries out others.
  mutating func pause(
    bytes: Int64, at seconds: Double, isYielding: Bool, bytesPerSecond: Double = Self.bytesPerSecond
  ) -> Double? {
    guard isYielding else {
      start = nil
      return nil
    }
    // Time in which the transfer was slower by itself is not made up for.
    guard let start, bytes >= start.bytes,
      case let due = start.seconds + (Double(bytes) - Double(start.bytes)) / bytesPerSecond, due > seconds
    else {
      start = Start(bytes: bytes, seconds: seconds)
      return nil
    }
    return min(due - seconds, Self.pauseMax)
  }
}
