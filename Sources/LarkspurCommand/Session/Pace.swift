import LarkspurBytes

/// Limits the mean rate of a transfer.
package struct Pace {
  private let bytesPerSecondMax: Int
  private let start: Deadline
  private var received = 0.0

  package init(bytesPerSecondMax: Int, now: Deadline) {
    self.bytesPerSecondMax = bytesPerSecondMax
    start = now
  }

  /// - Returns: The time to wait after these bytes: zero or less if the transfer is slower than the limit.
  package mutating func pause(after count: Int, now: Deadline) -> Duration {
    received += Double(count)
    return .seconds(received / Double(bytesPerSecondMax)) - now.duration(since: start)
  }
}
