import LarkspurBytes

/// Upper limits on the rates of a pool's connections. `nil`, the default, is no limit.
public struct RateLimits: Hashable, Sendable, Codable {
  /// The bytes a second of all connections together, for each direction. Heads count, TLS and TCP do not. curl:
  /// `--limit-rate`, for one transfer.
  public var bytesPerSecond: Int?
  /// The bytes a second of the connections to one host and port, for each direction. For a proxy that makes the requests
  /// itself, the proxy is the host.
  public var bytesPerSecondPerHost: Int?
  /// The requests a second to one host and port: 0.5 is one in two seconds. Redirections and logins count. curl: `--rate`.
  public var requestsPerSecondPerHost: Double?

  public init() {}

  /// Checks that each limit can be used.
  ///
  /// - Throws: `optionInvalid`.
  func check() throws(TransportError) {
    let bytes = ["bytesPerSecond": bytesPerSecond, "bytesPerSecondPerHost": bytesPerSecondPerHost]
    for (name, rate) in bytes { if let rate, rate <= 0 { throw Self.invalid(name) } }
    if let rate = requestsPerSecondPerHost, !(rate > 0) { throw Self.invalid("requestsPerSecondPerHost") }
  }

  private static func invalid(_ name: String) -> TransportError {
    .optionInvalid("rateLimits.\(name)", "the rate has to be above zero")
  }

  var limitsBytes: Bool { bytesPerSecond != nil || bytesPerSecondPerHost != nil }

  func ofPool(_ now: Deadline) -> ByteRates? { bytesPerSecond.map { ByteRates($0, $0, now) } }

  func ofHost(_ now: Deadline) -> ByteRates? { bytesPerSecondPerHost.map { ByteRates($0, $0, now) } }

  /// Returns the bucket of one host's requests, which has no burst.
  func requestsOfHost(_ now: Deadline) -> TokenBucket? {
    requestsPerSecondPerHost.map { rate in
      let tokens = Int(min(max(rate * Double(Self.tokensPerRequest), 1), 1e15))
      return TokenBucket(bytesPerSecond: tokens, burstBytes: 1, now: now)
    }
  }

  /// The tokens of a request in its bucket, so that a rate may be a fraction.
  static let tokensPerRequest = 1_000_000
}

/// The buckets of connections that share a rate limit. They belong to the connections' loop.
final class ByteRates {
  var sending: TokenBucket?
  var receiving: TokenBucket?

  init(_ sending: Int?, _ receiving: Int?, _ now: Deadline) {
    self.sending = sending.map { TokenBucket(bytesPerSecond: $0, now: now) }
    self.receiving = receiving.map { TokenBucket(bytesPerSecond: $0, now: now) }
  }
}
