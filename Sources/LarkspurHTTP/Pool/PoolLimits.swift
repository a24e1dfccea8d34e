/// How many connections a pool keeps, and for how long.
public struct PoolLimits: Hashable, Sendable {
  /// Maximum number of connections to one endpoint, including those being opened; a value below 1 counts as 1. Browsers
  /// have settled on six.
  public var perEndpointMax = 6
  /// Maximum number of connections to all endpoints, including those being opened; a value below 1 counts as 1. At the
  /// limit, a new connection takes the place of the idle connection whose idle time ends first, whatever its endpoint.
  public var totalMax = 256
  /// Maximum number of requests waiting for a connection. Further requests fail: a program that makes requests faster
  /// than they are answered would otherwise fill the memory.
  public var waitingMax = 100_000
  /// How long an idle connection is kept. A server's `Keep-Alive: timeout` may shorten this time.
  public var idleMax = Duration.seconds(60)
  /// Maximum age of a connection, or `nil` for no limit. The pool closes an older connection between two requests.
  public var ageMax: Duration?
  /// Maximum number of requests on one connection; a value below 1 counts as 1. A server's `Keep-Alive: max` may lower
  /// this number.
  public var requestsMax = Int.max
  /// Maximum number of unanswered requests on one connection. The default of 1 means no pipelining.
  public var pipelineDepth = 1

  public init() {}
}
