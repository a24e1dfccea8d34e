/// What a pool's machine and its shell say to each other.
extension PoolMachine {
  public struct Ticket: Hashable, Sendable {
    public let index: Int
    let generation: UInt32
    /// Counts the requests: who came earlier has the smaller one.
    public let order: UInt64
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
    case run(Ticket, on: ConnectionID)
    case fail(Ticket, Failure)
    case dial(ConnectionID, to: EndpointID)
    /// Close the connection, or stop opening it.
    case close(ConnectionID)
    /// The endpoint's number is not good any more.
    case forget(EndpointID)
  }

  public typealias Actions = [Action]

  /// What a request needs of its connection.
  public struct Demand: Hashable, Sendable {
    /// The larger one goes first.
    public var priority: UInt8 = 128
    /// May follow another request that is not answered yet (RFC 9112 9.3.2: idempotent methods).
    public var isPipelinable = false
    /// Wants a connection that nobody has used before: the one it was given was dead.
    public var wantsFresh = false
    /// The order of an earlier ticket, whose place it takes.
    public var order: UInt64?

    public init() {}
  }

  /// What the end of an exchange says about its connection.
  public struct Ending: Hashable, Sendable {
    /// Another request may follow.
    public var isReusable: Bool
    /// The server's `Keep-Alive: timeout`, if it sent one.
    public var idle: Duration?
    /// How many more requests the server's `Keep-Alive: max` allows, if it sent one.
    public var requestsLeft: Int?

    public init(isReusable: Bool, idle: Duration? = nil, requestsLeft: Int? = nil) {
      self.isReusable = isReusable
      self.idle = idle
      self.requestsLeft = requestsLeft
    }
  }
}
