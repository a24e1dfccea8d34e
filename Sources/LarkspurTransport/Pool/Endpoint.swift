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

  /// The buckets of the host's rate limits, once a connection or a request needs them.
  var rates: HostRates?

  init(_ route: Route) { self.route = route }

  /// Notes the version of a response. Call it on the loop.
  public func answered(by exchange: Exchange) {
    let isOld = exchange.isOfHTTP10
    if answersByHTTP10 != isOld { answersByHTTP10 = isOld }
  }
}
