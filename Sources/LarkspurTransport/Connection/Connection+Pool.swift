import LarkspurBytes
import LarkspurHTTP

/// What a pool asks of its connections.
extension Connection {
  /// Tells `watcher` when the server closes the connection while it is idle, or sends something that nobody has asked for.
  func watch(by watcher: any ChannelWatcher) { channel?.watcher = watcher }

  /// What the exchange that is over means for the connection.
  var ending: PoolMachine.Ending {
    if isIdle { lookForEnd() }
    guard hasEndedWell, !mayHaveLeftUnread else { return PoolMachine.Ending(isReusable: false) }
    guard head.hasKeepAlive, let field = head.fields.first(named: keepAlive, in: headBytes.span) else {
      return PoolMachine.Ending(isReusable: true)
    }
    let (idle, requestsLeft) = KeepAlive.parameters(FieldValue.text(field.value, in: headBytes.span))
    return PoolMachine.Ending(isReusable: true, idle: idle, requestsLeft: requestsLeft)
  }

  /// Whether a large body was not accepted: a server that has not read all of it closes soon after, whatever it says.
  private var mayHaveLeftUnread: Bool { status >= 300 && sentBodyBytes >= 64 * 1024 }

  /// A server that closes behind a response without having said so has done it after this time.
  static let closingTime = Duration.milliseconds(10)

  /// When it is known whether the server closes behind each response. Nil: it has kept the connection behind one.
  var provenAt: Deadline? { exchangeNumber == 1 ? exchangeEnded.advanced(by: Self.closingTime) : nil }

  /// Whether what has come as the present response may not be one: a server that has waited for a request for too long says
  /// 408 and closes, just when the request is on its way (RFC 9110 15.5.9). It cannot be on a connection's first request,
  /// unless the connection was kept before.
  var mayHaveBeenLate: Bool { status == 408 && (exchangeNumber > 1 || wasKeptUnused) && !head.isPersistent }

  /// Whether a request that has failed here may be sent once more, over another connection.
  func mayReplay(_ request: PoolRequest, _ isBegun: Bool, after error: TransportError) -> Bool {
    guard !isBegun || request.body.isRepeatable else { return false }
    switch error {
    // Nothing was sent.
    case .connectionClosed: return true
    // RFC 9112 9.3.1: the server may have closed just when the request was on its way. It may also have acted on it, but
    // not on a body that waited for its consent.
    case .connectionLost, .badResponse(.truncated(.beforeHead)):
      return (exchangeNumber > 1 || wasKeptUnused) && !hasReceived && (request.head.isIdempotent || holdsBody)
    default: return false
    }
  }

  /// Begins a pool's request. See `begin(_:body:deadline:isPipelined:)`.
  func begin(_ request: PoolRequest, deadline: Deadline, isPipelined: Bool) throws(TransportError) -> UInt64 {
    if request.timeouts == nil {
      switch request.body {
      case .none: return try begin(request.head, body: [], deadline: deadline, isPipelined: isPipelined)
      case .bytes(let bytes): return try begin(request.head, body: bytes, deadline: deadline, isPipelined: isPipelined)
      case .file, .produced: break
      }
    }
    return try begin(request.head, body: request.body, timeouts: request.timeouts ?? Timeouts(), deadline: deadline)
  }
}

private var keepAlive: CaselessWord { "keep-alive" }
