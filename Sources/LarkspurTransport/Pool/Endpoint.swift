import LarkspurHTTP

/// A route that a pool knows. Keep it for as many requests as one likes: it saves looking the route up. It belongs to the
/// pool's loop.
public final class Endpoint: @unchecked Sendable {
  public let route: Route
  /// The machine's number for it. Nil: the machine has forgotten it, for nobody used it.
  var id: PoolMachine.EndpointID?
  /// How the latest connection to it was opened, or is being opened.
  var latestDial: DialRecord?

  init(_ route: Route) { self.route = route }
}
