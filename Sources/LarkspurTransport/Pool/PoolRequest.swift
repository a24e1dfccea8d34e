import LarkspurBytes
import LarkspurHTTP

/// A request for a pool: what is sent, and how it may be.
public struct PoolRequest {
  public var head: RequestHead
  public var body: RequestBody
  /// How long the parts of the exchange may take, and all of it with the wait for a connection. Nil: as long as they do.
  /// Opening a connection is the pool's, and has the pool's own time.
  public var timeouts: Timeouts?
  /// Told what happens to the request and its response, on the loop, soon after it did. Of a connection's opening it hears
  /// nothing. A request that is observed is not pipelined.
  public var observer: Connection.Observer?
  /// Whether it may be pipelined, if it can be.
  public var mayBePipelined = true
  /// The larger one goes first.
  public var priority: UInt8
  /// For everything, from the wait for a connection to the last byte of the body.
  public var deadline = Deadline.never

  public init(_ head: RequestHead, body: RequestBody = .none, priority: UInt8 = 128) {
    self.head = head
    self.body = body
    self.priority = priority
  }

  /// Whether it can be sent once more if the connection turns out to be dead.
  var mayBeSentAgain: Bool { head.mayBeSentAgain && body.isRepeatable }

  /// Whether it may follow another one that has not been answered, and be followed.
  var isPipelinable: Bool {
    switch body {
    case .none, .bytes: mayBePipelined && head.isPipelinable && timeouts == nil && observer == nil
    case .file, .produced: false
    }
  }
}
