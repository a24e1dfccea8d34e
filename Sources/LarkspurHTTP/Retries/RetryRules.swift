/// Decides whether a request is sent again after an attempt that has failed, and how long to wait before.
///
/// The type depends on neither time nor random numbers: the caller passes in a fraction that spreads the delays.
public struct RetryRules: Hashable, Sendable {
  /// Maximum number of attempts, the first one included. Values below 1 count as 1.
  public var attemptsMax = 3
  /// The longest delay after the first attempt, doubled with each further one. The delay is a random part of it
  /// ("full jitter"), so that the clients of a server that restarts do not return at once.
  public var firstDelay = Duration.milliseconds(500)
  /// The longest delay that failures lead to. A longer one that the server asks for is kept.
  public var delayMax = Duration.seconds(30)
  /// The longest delay that a server can ask for by `Retry-After` (RFC 9110 10.2.3). After a response that asks for more,
  /// there is no further attempt.
  public var serverDelayMax = Duration.seconds(60)
  /// The status codes of responses that another attempt may change.
  public var statusCodes: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
  /// Whether requests of all methods are repeated. Otherwise those of idempotent methods (RFC 9110 9.2.2), and those with
  /// the field `Idempotency-Key`, by which a server recognizes a repetition.
  public var repeatsAllMethods = false

  /// Creates the default rules: three attempts at idempotent requests.
  public init() {}

  /// An attempt that has no useful response.
  public struct Attempt: Hashable, Sendable {
    /// The way in which an attempt has failed.
    public enum Failure: Hashable, Sendable {
      /// A response with this status code.
      ///
      /// - Parameter retryAfter: The delay in seconds that the response asks for.
      case status(Int, retryAfter: Double?)
      /// An incomplete response, or no response at all.
      ///
      /// - Parameter isOfConnection: Whether the connection or the server's absence is the reason, so that another attempt
      ///   may succeed.
      case error(isOfConnection: Bool)
    }

    /// The number of the attempt, counted from 1.
    public var number: Int
    /// The request's method, such as `GET`.
    public var method: String
    /// Whether the request has the field `Idempotency-Key`.
    public var hasIdempotencyKey: Bool
    /// The way in which the attempt has failed.
    public var failure: Failure

    /// Creates the description of a failed attempt.
    public init(number: Int, method: String, hasIdempotencyKey: Bool = false, failure: Failure) {
      self.number = number
      self.method = method
      self.hasIdempotencyKey = hasIdempotencyKey
      self.failure = failure
    }
  }

  /// Returns the delay before the next attempt, or `nil` if there is none.
  ///
  /// - Parameter fraction: A random number from 0 to 1.
  public func delay(after attempt: Attempt, fraction: Double) -> Duration? {
    guard attempt.number < attemptsMax,
      repeatsAllMethods || attempt.hasIdempotencyKey || RequestWriter.Method(attempt.method) != .other
    else { return nil }
    var asked = 0.0
    switch attempt.failure {
    case .status(let status, let retryAfter):
      guard statusCodes.contains(status) else { return nil }
      if let retryAfter, !retryAfter.isNaN { asked = max(retryAfter, 0) }
      guard asked <= serverDelayMax.inSeconds else { return nil }
    case .error(let isOfConnection):
      guard isOfConnection else { return nil }
    }
    let delay = BackOff.delay(
      failures: attempt.number, first: firstDelay.inSeconds, longest: delayMax.inSeconds, fixedShare: 0,
      fraction: fraction)
    return .seconds(max(delay, asked))
  }
}
