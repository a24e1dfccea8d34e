import LarkspurTransport

/// The options that limit rates.
extension GetOptions {
  /// Reads the value of `--lowest-rate`.
  mutating func setLowestRate(_ text: String) throws(UsageError) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2, let bytes = SessionOptions.bytes(parts[0]), let time = Duration(seconds: String(parts[1])),
      time > .zero
    else { throw UsageError("--lowest-rate wants BYTES:SECONDS, such as 1K:30, not \(text.debugDescription)") }
    timeouts.lowestRate = Timeouts.LowestRate(bytes: bytes, over: time)
  }
}
