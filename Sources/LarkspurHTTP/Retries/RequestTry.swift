/// One try to get a request answered over a pool's connection, and the rule for another try over another connection
/// (RFC 9112 9.3.1).
public struct RequestTry: Hashable, Sendable {
  /// How a try without a response ended.
  public enum Outcome: Hashable, Sendable {
    /// The connection had ended before the request. Nothing was sent.
    case unsent
    /// The connection ended, or broke, before a response.
    case lost
    /// A response 408 came, which announces the end of the connection. A server that has waited too long for a request
    /// sends it, perhaps just as the request is on its way (RFC 9110 15.5.9).
    case refusedAsLate
    /// Anything else happened, such as a timeout or a cancellation.
    case failed
  }

  /// Whether the try needed a connection that had served no request before, because an earlier one was dead. No other
  /// try follows it.
  private let isOverFresh: Bool
  /// Whether the body can be sent again after its sending has begun.
  private let isBodyRepeatable: Bool
  /// Whether the request's method is idempotent (RFC 9110 9.2.2).
  private let isIdempotent: Bool
  /// Whether the exchange has begun.
  public var isStarted = false
  /// Whether the connection was idle before the request: the server may have closed it just as the request was on its
  /// way.
  public var followsIdleTime = false
  /// Whether any byte of a response was received.
  public var hasReceived = false
  /// Whether the body waited for `100 Continue` and nothing of it has been sent.
  public var holdsBody = false

  public init(isOverFresh: Bool, isBodyRepeatable: Bool, isIdempotent: Bool) {
    self.isOverFresh = isOverFresh
    self.isBodyRepeatable = isBodyRepeatable
    self.isIdempotent = isIdempotent
  }

  /// Whether the request may be sent once more after this try. The server may have acted on a request that has
  /// left: such a request must be idempotent, or its body must not have been sent.
  public func mayBeRepeated(after end: Outcome) -> Bool {
    guard !isOverFresh, !isStarted || isBodyRepeatable else { return false }
    switch end {
    case .unsent: return true
    case .lost: return followsIdleTime && !hasReceived && (isIdempotent || holdsBody)
    case .refusedAsLate: return followsIdleTime && (isIdempotent || holdsBody)
    case .failed: return false
    }
  }
}
