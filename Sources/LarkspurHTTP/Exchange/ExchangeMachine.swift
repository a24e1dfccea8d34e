/// Decides, for one connection, what becomes of each exchange and of the connection.
///
/// Theory of operation. A connection serves one exchange after another. An exchange has two sides that end
/// independently: the request is sent, the response is received. The connection lives on only when both ended
/// well and the server allows it; every other end closes it. A request that the server stops taking does not
/// fail the exchange: the server may have answered already, and closed (RFC 9112 9.5), so the answer is waited
/// for, and only the connection is lost. Likewise an answer that comes early and wants no more of the request. One that
/// comes early and wants the rest (a 2xx: the server answers while it reads) is complete when the request has been sent.
///
/// ```
///                           +-------------- responseEnded, sent, persistent -------------+
///                           v                                                            |
///   idle --begin--> active(running, head) --requestSent--> active(done, head) --> active(done, body)
///    |                      |      \--sendingFailed--> active(stopped, head) --> active(stopped, body)
///    |                      |       \--2xx, responseEnded--> active(running, ended) --requestSent--> idle
///    |                      |                                  |
///    +---- peerClosed, -----+---- responseFailed, cancelled, --+--> closed      (101, CONNECT: --> tunnel)
///          bytes            |     timedOut, any other end      |
/// ```
///
/// It does not know: bytes, sockets, the clock. Invariant: an exchange gets exactly one of `complete`, `fail`
/// and `handOver`, and a closed connection exactly one `close`.
public struct ExchangeMachine {
  /// The request's side.
  public enum Sending: Hashable, CaseIterable, Sendable {
    case running
    case done
    /// The server takes no more of it.
    case stopped
  }

  /// The response's side.
  public enum Receiving: Hashable, Sendable {
    case head
    case body(isPersistent: Bool)
    /// It is complete, and the rest of the request is still wanted.
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
    /// The connection broke: not closed in an orderly way.
    case connectionLost
    /// A fact came that does not fit the state: a defect of ours, which costs one connection and no more.
    case internalInconsistency
    case timedOut
    case cancelled
    /// The body could not be had: from its file or producer, or into its file.
    case bodyFailed
  }

  /// Why a connection was closed.
  public enum CloseReason: Hashable, Sendable {
    /// The response said so, or could only end so.
    case serverWillClose
    /// The response came before the request had been sent.
    case requestUnfinished
    case exchangeFailed
    case peerClosed
    case unsolicitedBytes
    case connectionLost
    /// The owner does not need it any more.
    case unneeded
  }

  public enum Action: Hashable, Sendable {
    case complete
    case fail(Failure)
    /// The connection is another protocol's from here on.
    case handOver
    case close(CloseReason)
    /// What is still queued of the request is not to be sent.
    case stopSending
  }

  /// The decisions on one fact, in order. There are never more than two.
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

  /// Whether nothing is missing but the rest of the request.
  public var isSendingOnly: Bool { state == .active(.running, .ended) }

  /// A request is about to be sent. False: the connection is not free.
  public mutating func begin() -> Bool {
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

  /// The kernel takes no more of the request: the peer has closed or reset.
  public mutating func sendingFailed(into actions: inout Actions) {
    guard case .active(.running, let receiving) = state else { return }
    guard receiving != .ended else { return completeWithoutRest(.requestUnfinished, &actions) }
    state = .active(.stopped, receiving)
    actions.append(.stopSending)
  }

  /// `holdsBody`: the body waits for a 100 (Continue), and nothing of it has been sent.
  public mutating func headReceived(
    status: Int = 200, isPersistent: Bool, holdsBody: Bool = false, into actions: inout Actions
  ) {
    guard case .active(let sending, .head) = state else { return inconsistent(&actions) }
    state = .active(sending, .body(isPersistent: isPersistent))
    // RFC 9112 9.5: whoever answers so does not want the rest. After a 2xx it may be read while the answer is written.
    // RFC 9110 10.1.1: a final response in place of a 100 asks for no body at all.
    if sending == .running, status >= 300 || holdsBody { sendingFailed(into: &actions) }
  }

  /// A 101, or a 2xx to CONNECT.
  public mutating func tunnelBegan(into actions: inout Actions) {
    guard case .active(_, .head) = state else { return inconsistent(&actions) }
    state = .tunnel
    actions.append(.handOver)
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

  /// The response breaks the rules, or ended too soon.
  public mutating func responseFailed(_ error: ResponseError, into actions: inout Actions) {
    fail(.response(error), &actions)
  }

  public mutating func bodyFailed(into actions: inout Actions) { fail(.bodyFailed, &actions) }

  /// The end of the stream while nothing was asked.
  public mutating func peerClosed(into actions: inout Actions) {
    if isSendingOnly { return completeWithoutRest(.peerClosed, &actions) }
    guard state == .idle else { return fail(.connectionLost, &actions) }
    close(.peerClosed, &actions)
  }

  /// Bytes while nothing was asked: whatever they are, they must never answer a later request.
  public mutating func unsolicitedBytes(into actions: inout Actions) {
    if isSendingOnly { return completeWithoutRest(.unsolicitedBytes, &actions) }
    guard state == .idle else { return inconsistent(&actions) }
    close(.unsolicitedBytes, &actions)
  }

  /// Reading failed.
  public mutating func connectionLost(into actions: inout Actions) {
    if isSendingOnly { return completeWithoutRest(.connectionLost, &actions) }
    guard state == .idle else { return fail(.connectionLost, &actions) }
    close(.connectionLost, &actions)
  }

  public mutating func timedOut(into actions: inout Actions) { fail(.timedOut, &actions) }

  public mutating func cancelled(into actions: inout Actions) { fail(.cancelled, &actions) }

  /// The owner lets go of the connection.
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

  /// The response is there. What is left of the request the server does not get.
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
