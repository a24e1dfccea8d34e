import LarkspurBytes
import LarkspurHTTP

/// A request for a pool.
public struct PoolRequest {
  public var head: RequestHead
  public var body: RequestBody
  /// The time limits of the parts of the exchange, or `nil` for none. `total` includes the wait for a connection. The
  /// limits for opening a connection do not apply: `Pool.Options` has them.
  public var timeouts: Timeouts?
  /// Called on the loop for each event of the request and its response, soon after the event and after the pool's own
  /// observer. Events of opening the connection are not reported. A request with an observer is not pipelined.
  public var observer: Connection.Observer?
  /// Whether the request may be pipelined if it is otherwise suitable.
  public var mayBePipelined = true
  /// The priority among waiting requests. Larger values go first.
  public var priority: UInt8
  /// The deadline of everything, from the wait for a connection to the last byte of the body.
  public var deadline = Deadline.never

  public init(_ head: RequestHead, body: RequestBody = .none, priority: UInt8 = 128) {
    self.head = head
    self.body = body
    self.priority = priority
  }

  /// Whether the request can be sent once more if its connection turns out to be dead.
  var mayBeSentAgain: Bool { head.mayBeSentAgain && body.isRepeatable }

  /// Whether the request may follow an unanswered one, and be followed by others.
  var isPipelinable: Bool {
    switch body {
    case .none, .bytes: mayBePipelined && head.isPipelinable && timeouts == nil && observer == nil
    case .lent, .file, .produced: false
    }
  }
}
