import LarkspurBytes
import LarkspurTransport

extension ClientLoop {
  /// Suspends a task on the loop until a condition holds, for about a minute at most. Uses the loop's timers: others would
  /// open descriptors, which some tests count.
  ///
  /// - Returns: Whether the condition holds.
  package func waits(until condition: () -> Bool) async -> Bool {
    for _ in 0..<60_000 {
      if condition() { return true }
      var timer: Timer?
      await withCheckedContinuation { continuation in
        timer = startTimer(now.advanced(by: .milliseconds(1))) { continuation.resume() }
      }
      if let timer { stopTimer(timer) }
    }
    return false
  }
}
