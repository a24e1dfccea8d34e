/// How many connections a pool keeps, and how long.
public struct PoolLimits: Hashable, Sendable {
  /// Connections to one endpoint, those that are being opened included. Browsers have settled on six.
  public var perEndpointMax = 6
  /// Connections in all. When they are used up, an idle one of another endpoint gives way, the one that is idle for longest.
  public var totalMax = 256
  /// Requests that wait for a connection: a caller who makes more of them than are ever answered would fill the memory.
  public var waitingMax = 100_000
  /// How long a connection is kept while nobody uses it. A server's `Keep-Alive: timeout` may shorten it.
  public var idleMax = Duration.seconds(60)
  /// How old a connection may become. It ends between two requests. Nil: no limit.
  public var ageMax: Duration?
  /// How many requests one connection serves. A server's `Keep-Alive: max` may shorten it.
  public var requestsMax = Int.max
  /// How many requests may be on their way on one connection. 1: no pipelining.
  public var pipelineDepth = 1

  public init() {}
}
