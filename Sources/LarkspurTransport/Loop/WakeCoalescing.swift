/// Whether a loop pauses before it wakes the few callers whose results have come, so that others are woken with them.
///
/// Theory of operation. Where many load at once from a server that is as slow as the loop, or slower, each turn brings a result or
/// two, and to wake somebody for them costs more than all else. While the loop pauses, results come together. With few requests
/// on their way the server would be idle then, and all would wait for one another; with many it is busy meanwhile. So there are
/// to be many, and where a pause brings little (the server is slow or far away) there is none for a while: for twice as many
/// occasions after each failure, and for half as many after each success. It knows no clock.
struct WakeCoalescing {
  /// So many requests have to be on their way, at least.
  static let requestsMin = 16
  /// So many callers at most wait for others.
  static let callersMax = 8
  /// So many more a pause has to bring.
  static let broughtMin = 3
  /// How long a pause is, but for the kernel's slack (50 us most often).
  static let nanoseconds = 20_000

  /// How many callers there were before the pause that has been made. 0: none has.
  private var before = 0
  /// How many occasions pass without a pause, and how many did after the last failure.
  private var skips = 0
  private var skipsLast = 0

  /// - Parameter count: How many are to be called.
  mutating func pauses(before count: Int) -> Bool {
    guard endPause(with: count), count <= Self.callersMax else { return false }
    guard skips == 0 else {
      skips -= 1
      return false
    }
    before = count
    return true
  }

  /// The pause is over, if there is one. False: it was in vain.
  ///
  /// - Parameter count: How many are to be called now.
  @discardableResult
  mutating func endPause(with count: Int) -> Bool {
    guard before > 0 else { return true }
    let wasWorthIt = count >= before + Self.broughtMin
    before = 0
    skipsLast = Backoff.skips(after: skipsLast, wasWorthIt: wasWorthIt)
    if !wasWorthIt { skips = skipsLast }
    return wasWorthIt
  }
}

/// How many occasions to pass by after something was not worth it.
enum Backoff {
  static let skipsMax = 1_023

  /// - Parameter last: How many those were the last time, less what has gone well since.
  static func skips(after last: Int, wasWorthIt: Bool) -> Int { wasWorthIt ? last / 2 : min(2 * last + 1, skipsMax) }
}
