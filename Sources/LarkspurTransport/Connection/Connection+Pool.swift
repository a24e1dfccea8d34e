import LarkspurBytes
import LarkspurHTTP

/// The part of a connection that its pool uses.
extension Connection {
  /// Sets the watcher that is called when an idle connection becomes readable: the server has closed it, or sent
  /// unsolicited bytes.
  func watch(by watcher: any ChannelWatcher) { channel?.watcher = watcher }

  /// The latest exchange's verdict on the connection: whether it can be reused, for how long and for how many requests.
  var exchangeOutcome: PoolMachine.ExchangeOutcome {
    if isIdle { lookForEnd() }
    guard hasEndedWell, !mayHaveLeftUnread else { return PoolMachine.ExchangeOutcome(isReusable: false) }
    guard head.hasKeepAlive, let field = head.fields.first(named: keepAlive, in: headBytes.span) else {
      return PoolMachine.ExchangeOutcome(isReusable: true)
    }
    let (idle, requestsLeft) = KeepAlive.parameters(FieldValue.text(field.value, in: headBytes.span))
    return PoolMachine.ExchangeOutcome(isReusable: true, idle: idle, requestsLeft: requestsLeft)
  }

  /// Whether the server refused a body of 64 KiB or more. A server that has not read all of a body closes soon after,
  /// although its response may say otherwise.
  private var mayHaveLeftUnread: Bool { status >= 300 && sentBodyBytes >= 64 * 1024 }

  /// The time after which a server that closes without announcing it has done so. If the connection is still open then,
  /// the server keeps it.
  static let closingTime = Duration.milliseconds(10)

  /// The time from which on the connection, if it is still open, is known to be kept by the server after a response.
  /// `nil` if it has served no exchange, or more than one.
  var provenAt: Deadline? { exchangeNumber == 1 ? exchangeEnded.advanced(by: Self.closingTime) : nil }

  /// Returns a try over this connection with the connection's facts.
  func observed(_ attempt: RequestTry, isStarted: Bool) -> RequestTry {
    var attempt = attempt
    attempt.isStarted = isStarted
    attempt.followsIdleTime = exchangeNumber > 1 || wasKeptUnused
    attempt.hasReceived = hasReceived
    attempt.holdsBody = holdsBody
    return attempt
  }

  /// Whether the response is the end of a connection on which the server waited too long for a request.
  var hasRefusedAsLate: Bool { status == 408 && !head.isPersistent }

  /// Starts a request of a pool. See `start(_:body:deadline:isPipelined:)`.
  func start(_ request: PoolRequest, deadline: Deadline, isPipelined: Bool) throws(TransportError) -> UInt64 {
    if request.timeouts == nil {
      switch request.body {
      case .none: return try start(request.head, body: [], deadline: deadline, isPipelined: isPipelined)
      case .bytes(let bytes): return try start(request.head, body: bytes, deadline: deadline, isPipelined: isPipelined)
      case .lent, .file, .produced: break
      }
    }
    return try start(request.head, body: request.body, timeouts: request.timeouts ?? Timeouts(), deadline: deadline)
  }
}

extension TransportError {
  /// The end of a try that ended with this error.
  var endOfTry: RequestTry.Outcome {
    switch self {
    case .connectionClosed: .unsent
    case .connectionLost, .badResponse(.truncated(.beforeHead)): .lost
    default: .failed
    }
  }
}

private var keepAlive: CaseInsensitiveToken { "keep-alive" }
