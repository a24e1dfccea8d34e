import LarkspurBytes
import LarkspurHTTP

/// A route of a pool. It belongs to the pool's loop. Keep an endpoint for further requests over the route: that saves
/// the look-up of the route.
public final class Endpoint: @unchecked Sendable {
  public let route: Route
  /// The machine's ID of the endpoint, or `nil` if the endpoint has not been used yet, or has neither connections nor
  /// waiting requests any more.
  var id: PoolMachine.EndpointID?
  /// The record of the latest connection to the endpoint, which is open, being opened or failed.
  var latestDial: DialRecord?
  /// Whether the latest response over the route was HTTP/1.0. No body may then be sent in chunks (RFC 9112 6.1). On the
  /// loop.
  public private(set) var answersByHTTP10 = false

  /// The buckets of the endpoint's rate limits, once a connection or a request needs them.
  private var rates: Rates?

  private final class Rates {
    let bytes: ByteRates?
    var requests: TokenBucket?

    init(_ limits: RateLimits, _ now: Deadline) {
      bytes = limits.ofHost(now)
      requests = limits.requestsOfHost(now)
    }
  }

  init(_ route: Route) { self.route = route }

  private func rates(_ limits: RateLimits, _ now: Deadline) -> Rates? {
    guard limits.bytesPerSecondPerHost != nil || limits.requestsPerSecondPerHost != nil else { return nil }
    if rates == nil { rates = Rates(limits, now) }
    return rates
  }

  /// Returns the buckets of the endpoint's connections, or `nil` for no limit.
  func byteRates(_ limits: RateLimits, at now: Deadline) -> ByteRates? { rates(limits, now)?.bytes }

  /// Takes the next place for a request.
  ///
  /// - Returns: The moment at which the request may leave, or `nil` for no limit.
  func takeRequest(_ limits: RateLimits, at now: Deadline) -> Deadline? {
    guard let rates = rates(limits, now), let moment = rates.requests?.paidUntil else { return nil }
    rates.requests?.take(RateLimits.tokensPerRequest, at: now)
    return moment
  }

  /// Notes the version of a response. Call it on the loop.
  public func answered(by exchange: Exchange) {
    let isOld = exchange.isOfHTTP10
    if answersByHTTP10 != isOld { answersByHTTP10 = isOld }
  }
}
