import LarkspurBytes

/// Keeps a transfer to a mean rate.
package struct Pace {
  private let bytesPerSecondMax: Int
  private let start: Deadline
  private var received = 0.0

  package init(bytesPerSecondMax: Int, now: Deadline) {
    self.bytesPerSecondMax = bytesPerSecondMax
    start = now
  }

  /// How long to wait after these bytes.
  package mutating func pause(after count: Int, now: Deadline) -> Duration {
    received += Double(count)
    return .seconds(received / Double(bytesPerSecondMax)) - now.duration(since: start)
  }
}
