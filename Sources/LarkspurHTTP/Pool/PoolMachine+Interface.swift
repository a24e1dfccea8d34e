/// The interface between `PoolMachine` and its shell.
extension PoolMachine {
  public struct RequestID: Hashable, Sendable {
    public let index: Int
    let generation: UInt32
    /// Sequence number of the request: an earlier request has a smaller one.
    public let sequenceNumber: UInt64
  }

  public struct ConnectionID: Hashable, Sendable {
    public let index: Int
    let generation: UInt32
  }

  public struct EndpointID: Hashable, Sendable {
    public let index: Int
    let generation: UInt32
  }

  public enum Failure: Error, Hashable, Sendable {
    /// The connection could not be opened.
    case dialFailed
    /// Too many requests wait already.
    case tooManyWaiting
    /// The pool has been shut down.
    case closed
  }

  public enum Action: Hashable, Sendable {
    case run(RequestID, on: ConnectionID)
    case fail(RequestID, Failure)
    case dial(ConnectionID, to: EndpointID)
    /// Close the connection, or cancel its dial.
    case close(ConnectionID)
    /// Drop the endpoint: its `EndpointID` is no longer valid.
    case forget(EndpointID)
  }

  public typealias Actions = [Action]

  /// The requirements of a request for its connection.
  public struct Demand: Hashable, Sendable {
    /// Priority in the queue: requests of a larger one are served first.
    public var priority: UInt8 = 128
    /// Whether the request may be sent after a request that is not answered yet (RFC 9112 9.3.2: idempotent methods).
    public var isPipelinable = false
    /// Whether the request needs a connection that has served no request before, because its last one was dead.
    public var needsFresh = false
    /// The sequence number of the request's earlier ID, which gives the request its old position in the queue; `nil`
    /// for a new request.
    public var sequenceNumber: UInt64?

    public init() {}
  }

  /// The consequences of the end of an exchange for its connection.
  public struct ExchangeOutcome: Hashable, Sendable {
    /// Whether another request may follow on the connection.
    public var isReusable: Bool
    /// The server's `Keep-Alive: timeout`, less a margin (`KeepAlive.parameters(_:)`), or `nil` if it did not send it.
    public var idle: Duration?
    /// Number of further requests that the server's `Keep-Alive: max` allows, or `nil` if it did not send it.
    public var requestsLeft: Int?

    public init(isReusable: Bool, idle: Duration? = nil, requestsLeft: Int? = nil) {
      self.isReusable = isReusable
      self.idle = idle
      self.requestsLeft = requestsLeft
    }
  }
}
