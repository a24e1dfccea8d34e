/// Decides, for one connection, how each exchange ends and whether the connection stays open.
///
/// Theory of operation. A connection serves one exchange after another. An exchange has two sides that end
/// independently: the request is sent, and the response is received. The connection stays open only when both sides
/// ended well and the server allows it; every other end closes the connection.
///
/// - The server stops taking the request: the exchange does not fail, because the server may have answered already and
///   closed (RFC 9112 9.5). The machine waits for the response, and then closes the connection.
/// - A response with a status of 300 or more comes before the request has been sent: the machine stops sending,
///   receives the response, and closes the connection.
/// - A 2xx comes before the request has been sent, because the server answers while it reads: the exchange is complete
///   when the response has ended and the rest of the request has been sent (decision 21).
///
/// ```
///                           +-------------- responseEnded, sent, persistent -------------+
///                           v                                                            |
///   idle --start--> active(running, head) --requestSent--> active(done, head) --> active(done, body)
///    |                      |      \--sendingFailed--> active(stopped, head) --> active(stopped, body)
///    |                      |       \--2xx, responseEnded--> active(running, ended) --requestSent--> idle
///    |                      |                                  |
///    +---- peerClosed, -----+---- responseFailed, cancelled, --+--> closed      (101, CONNECT: --> tunnel)
///          bytes            |     timedOut, any other end      |
/// ```
///
/// The machine does not depend on bytes, sockets or the clock. Invariant: an exchange gets exactly one of `complete`,
/// `fail` and `handOver`, and a closed connection exactly one `close`.
public struct ExchangeMachine {
  /// State of the request's side.
  public enum Sending: Hashable, CaseIterable, Sendable {
    case running
    case done
    /// The rest of the request is not sent: the server takes no more of it, or has answered without needing it.
    case stopped
  }

  /// State of the response's side.
  public enum Receiving: Hashable, Sendable {
    case head
    case body(isPersistent: Bool)
    /// The response is complete, and the rest of the request has not been sent yet.
    case ended
  }

  public enum State: Hashable, Sendable {
    case idle
    case active(Sending, Receiving)
    case tunnel
    case closed
  }

  /// Why an exchange ended without its response.
  public enum Failure: Error, Hashable, Sendable {
    case response(ResponseError)
    /// The connection broke, or the server closed it during the exchange.
    case connectionLost
    /// A fact does not fit the state, which is a defect of this library. Only this connection fails.
    case internalInconsistency
    case timedOut
    case cancelled
    /// The request's body could not be read from its file or producer, or the response's body could not be written to
    /// its file; or a tunnel began before the request's body had been sent.
    case bodyFailed
  }

  /// Why a connection was closed.
  public enum CloseReason: Hashable, Sendable {
    /// The response allows no further exchange on the connection: `ResponseHead.isPersistent` is `false`.
    case serverWillClose
    /// The response is complete, and the rest of the request is not sent.
    case requestUnfinished
    case exchangeFailed
    case peerClosed
    case unsolicitedBytes
    case connectionLost
    /// The owner released the connection.
    case unneeded
  }

  public enum Action: Hashable, Sendable {
    case complete
    case fail(Failure)
    /// Hand the connection over to the protocol that follows the response.
    case handOver
    case close(CloseReason)
    /// Discard what is still queued of the request.
    case stopSending
  }

  /// The actions that follow from one fact, in order: two at most.
  public struct Actions: Hashable, Sendable {
    public private(set) var first: Action?
    public private(set) var second: Action?

    public init() {}

    mutating func append(_ action: Action) {
      if first == nil { first = action } else { second = action }
    }
  }

  public private(set) var state = State.idle

  public init() {}

  public var isIdle: Bool { state == .idle }

  /// Whether the response is complete and only the rest of the request is missing.
  public var isSendingOnly: Bool { state == .active(.running, .ended) }

  /// Whether the rest of the request is not sent. No other request may follow it on the connection.
  public var hasStoppedSending: Bool { if case .active(.stopped, _) = state { true } else { false } }

  /// Starts an exchange, before its request is sent.
  ///
  /// - Returns: Whether the exchange has begun; `false` if the connection is not idle.
  public mutating func start() -> Bool {
    guard state == .idle else { return false }
    state = .active(.running, .head)
    return true
  }

  /// The kernel has taken the last byte of the request.
  public mutating func requestSent(into actions: inout Actions) {
    guard case .active(.running, let receiving) = state else { return }
    guard receiving == .ended else { return state = .active(.done, receiving) }
    state = .idle
    actions.append(.complete)
  }

  /// The kernel takes no more of the request, because the server has closed or reset the connection.
  public mutating func sendingFailed(into actions: inout Actions) {
    guard case .active(.running, let receiving) = state else { return }
    guard receiving != .ended else { return completeWithoutRest(.requestUnfinished, &actions) }
    state = .active(.stopped, receiving)
    actions.append(.stopSending)
  }

  /// The final response's head has arrived.
  ///
  /// - Parameters:
  ///   - status: The status code.
  ///   - isPersistent: Whether the connection may be used again after the response.
  ///   - holdsBody: Whether the request's body still waits for a 100 (Continue), so that nothing of it has been sent.
  public mutating func headReceived(
    status: Int = 200, isPersistent: Bool, holdsBody: Bool = false, into actions: inout Actions
  ) {
    guard case .active(let sending, .head) = state else { return inconsistent(&actions) }
    state = .active(sending, .body(isPersistent: isPersistent))
    // RFC 9112 9.5: after a status of 300 or more, the server does not need the rest. With a 2xx, the server may read
    // the request while it writes the response. RFC 9110 10.1.1: a final response in place of a 100 asks for no body at
    // all.
    if sending == .running, status >= 300 || holdsBody { sendingFailed(into: &actions) }
  }

  /// The head of a 101, or of a 2xx to CONNECT, has arrived.
  public mutating func tunnelStarted(into actions: inout Actions) {
    guard case .active(_, .head) = state else { return inconsistent(&actions) }
    state = .tunnel
    actions.append(.handOver)
  }

  /// The owner uses the connection for another protocol, although no response has named one. Possible while the
  /// connection is idle, and once all of the request has been sent and its final response has begun.
  ///
  /// - Returns: Whether the connection is a tunnel now.
  public mutating func handOver() -> Bool {
    switch state {
    case .idle, .active(.done, .body), .tunnel:
      state = .tunnel
      return true
    case .active, .closed: return false
    }
  }

  public mutating func responseEnded(into actions: inout Actions) {
    switch state {
    case .active(.done, .body(isPersistent: true)):
      state = .idle
      actions.append(.complete)
    case .active(.done, .body(isPersistent: false)):
      actions.append(.complete)
      close(.serverWillClose, &actions)
    case .active(.running, .body(isPersistent: true)):
      state = .active(.running, .ended)
    case .active(.running, .body(isPersistent: false)), .active(.stopped, .body):
      completeWithoutRest(.requestUnfinished, &actions)
    case .idle, .active(_, .head), .active(_, .ended), .tunnel, .closed:
      inconsistent(&actions)
    }
  }

  /// The response breaks the rules of HTTP, or ended too soon.
  public mutating func responseFailed(_ error: ResponseError, into actions: inout Actions) {
    fail(.response(error), &actions)
  }

  public mutating func bodyFailed(into actions: inout Actions) { fail(.bodyFailed, &actions) }

  /// The server closed the connection while no response was expected: in between two exchanges, or after the response
  /// was complete and before the request had been sent.
  public mutating func peerClosed(into actions: inout Actions) {
    if isSendingOnly { return completeWithoutRest(.peerClosed, &actions) }
    guard state == .idle else { return fail(.connectionLost, &actions) }
    close(.peerClosed, &actions)
  }

  /// Bytes arrived while no response was expected. They must never answer a later request.
  public mutating func unsolicitedBytes(into actions: inout Actions) {
    if isSendingOnly { return completeWithoutRest(.unsolicitedBytes, &actions) }
    guard state == .idle else { return inconsistent(&actions) }
    close(.unsolicitedBytes, &actions)
  }

  /// The connection broke: receiving failed, the stream ended during the exchange, or the server closed the connection
  /// before any of the request was taken.
  public mutating func connectionLost(into actions: inout Actions) {
    if isSendingOnly { return completeWithoutRest(.connectionLost, &actions) }
    guard state == .idle else { return fail(.connectionLost, &actions) }
    close(.connectionLost, &actions)
  }

  public mutating func timedOut(into actions: inout Actions) { fail(.timedOut, &actions) }

  public mutating func cancelled(into actions: inout Actions) { fail(.cancelled, &actions) }

  /// The owner releases the connection.
  public mutating func released(into actions: inout Actions) {
    switch state {
    case .idle, .tunnel: close(.unneeded, &actions)
    case .active: fail(.cancelled, &actions)
    case .closed: return
    }
  }

  private mutating func fail(_ failure: Failure, _ actions: inout Actions) {
    switch state {
    case .active:
      actions.append(.fail(failure))
      close(.exchangeFailed, &actions)
    case .idle, .tunnel: close(.exchangeFailed, &actions)
    case .closed: return
    }
  }

  /// Completes the exchange with the response that is there, and closes the connection without sending the rest of the
  /// request.
  private mutating func completeWithoutRest(_ reason: CloseReason, _ actions: inout Actions) {
    actions.append(.complete)
    close(reason, &actions)
  }

  private mutating func inconsistent(_ actions: inout Actions) {
    guard state != .closed else { return }
    if case .active = state { actions.append(.fail(.internalInconsistency)) }
    close(.exchangeFailed, &actions)
  }

  private mutating func close(_ reason: CloseReason, _ actions: inout Actions) {
    state = .closed
    actions.append(.close(reason))
  }
}
