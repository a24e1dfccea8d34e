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

  /// Creates limits that limit nothing.
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

  var limitsHosts: Bool { bytesPerSecondPerHost != nil || requestsPerSecondPerHost != nil }
}

/// The buckets of a pool's rate limits. They belong to the pool's loop.
final class PoolRates {
  private let limits: RateLimits
  /// The buckets of all connections together, or `nil` for no limit.
  private let all: ByteRates?
  private var hosts: [Route.Place: HostRates] = [:]

  /// Maximum number of hosts in `hosts`. At the limit all are dropped; those in use keep theirs through their endpoints.
  private static let hostsMax = 1_000

  init(_ limits: RateLimits, at now: Deadline) {
    self.limits = limits
    all = limits.bytesPerSecond.map { ByteRates($0, $0, now) }
  }

  /// Returns the buckets of an endpoint's host, or `nil` for no limit.
  func host(of endpoint: Endpoint, at now: Deadline) -> HostRates? {
    guard limits.limitsHosts else { return nil }
    if let known = endpoint.rates { return known }
    let place = endpoint.route.ratedPlace
    if hosts.count >= Self.hostsMax { hosts = [:] }
    let rates = hosts[place] ?? HostRates(limits, at: now)
    hosts[place] = rates
    endpoint.rates = rates
    return rates
  }

  /// Returns the buckets of a connection: those of its host, and those of all connections.
  func bytes(of endpoint: Endpoint?, at now: Deadline) -> [ByteRates] {
    [endpoint.flatMap { host(of: $0, at: now) }?.bytes, all].compactMap(\.self)
  }
}

/// The buckets of one host and port. All routes to it share them: those of other traffic classes, and those with trust of
/// their own. They belong to the connections' loop.
final class HostRates {
  let bytes: ByteRates?
  /// The bucket of the requests, which has no burst.
  private var requests: TokenBucket?

  /// The tokens of a request in its bucket, so that a rate may be a fraction.
  private static let tokensPerRequest = 1_000_000

  init(_ limits: RateLimits, at now: Deadline) {
    bytes = limits.bytesPerSecondPerHost.map { ByteRates($0, $0, now) }
    requests = limits.requestsPerSecondPerHost.map { rate in
      let tokens = Int(min(max(rate * Double(Self.tokensPerRequest), 1), 1e15))
      return TokenBucket(bytesPerSecond: tokens, burstBytes: 1, now: now)
    }
  }

  /// Takes the next place for a request.
  ///
  /// - Returns: The moment at which the request may leave, or `nil` for no limit.
  func takeRequest(at now: Deadline) -> Deadline? {
    let moment = requests?.paidUntil
    requests?.take(Self.tokensPerRequest, at: now)
    return moment
  }
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
