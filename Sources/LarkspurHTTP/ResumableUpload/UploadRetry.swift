/// Decides how long a resumable upload waits before it requests the offset again.
///
/// The type does not depend on time or random numbers: the caller passes in a fraction that spreads the delay.
package struct UploadRetry: Hashable, Sendable {
  /// The delay after the first failure, doubled with each further one.
  package var firstDelay = Duration.seconds(1)
  /// The longest delay that failures lead to. A longer one that the server asks for is kept.
  package var delayMax = Duration.seconds(60)
  /// The longest delay that a server can ask for by `Retry-After`. Without this limit, a server could stop an upload
  /// forever.
  package var serverDelayMax = Duration.seconds(3600)
  /// The number of failures without new bytes at the server between them that ends the upload, or `nil` for no limit.
  package var failuresMax: Int? = 8
  /// The time limit of the request that deletes the upload resource after a failure. A server that does not answer it
  /// must not delay the failure for long.
  package var cancellationTimeMax = Duration.seconds(10)

  package init() {}

  /// Whether the upload continues after this status. The drafts allow 5xx, and 4xx whose meaning recommends another try
  /// (draft 10, sections 4.2.1 to 4.4.1).
  package func continues(after status: Int) -> Bool { status == 408 || status == 429 || 500...599 ~= status }

  /// Whether the failure of this number, counted from 1, is the last one.
  func isOver(_ failureCount: Int) -> Bool { failuresMax.map { failureCount >= max($0, 1) } ?? false }

  /// Returns the delay before the next try: between half and the whole of the doubled delay, so that the clients of a
  /// server that restarts do not return at once, and never shorter than the server has asked for.
  ///
  /// - Parameters:
  ///   - failureCount: The number of failures without progress, at least 1.
  ///   - retryAfter: The delay in seconds that the server has asked for.
  ///   - fraction: A random number from 0 to 1.
  package func delay(_ failureCount: Int, retryAfter: Double?, fraction: Double) -> Duration {
    let delay = BackOff.delay(
      failures: failureCount, first: firstDelay.inSeconds, longest: delayMax.inSeconds, fixedShare: 0.5,
      fraction: fraction)
    let asked = retryAfter.map { $0.isNaN ? 0 : min(max($0, 0), serverDelayMax.inSeconds) } ?? 0
    return .seconds(max(delay, asked))
  }
}

extension Duration {
  /// The duration in seconds, with their fraction.
  var inSeconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }
}
