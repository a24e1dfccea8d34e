import LarkspurHTTP

/// A route that a pool knows. Keep it for as many requests as one likes: it saves looking the route up. It belongs to the
/// pool's loop.
public final class Endpoint: @unchecked Sendable {
  public let route: Route
  /// The machine's number for it. Nil: the machine has forgotten it, for nobody used it.
  var id: PoolMachine.EndpointID?
  /// How the latest connection to it was opened, or is being opened.
  var latestDial: DialRecord?
  /// Whether the latest answer over it was of HTTP/1.0: then no body may be sent in chunks (RFC 9112 6.1). On the loop.
  public private(set) var answersByHTTP10 = false

  init(_ route: Route) { self.route = route }

  /// Notes the version of an answer. On the loop.
  public func answered(by exchange: Exchange) {
    let isOld = exchange.isOfHTTP10
    if answersByHTTP10 != isOld { answersByHTTP10 = isOld }
  }
}
