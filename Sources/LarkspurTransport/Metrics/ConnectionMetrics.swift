import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// When the parts of opening a connection began and ended, and what came of them.
public struct ConnectionMetrics: Sendable {
  public struct Span: Hashable, Sendable {
    public var start: Deadline
    /// Nil: it did not come to its end.
    public var end: Deadline?
  }

  /// One address that was tried. Several may be at the same time (RFC 8305).
  public struct Attempt: Hashable, Sendable {
    public var address: SocketAddress
    public var span: Span
    /// Nil: it succeeded, or was not needed any more.
    public var error: Errno?
  }

  /// Of the name. Nil, here and below: there was none.
  public var lookUp: Span?
  /// From the first attempt to the first success.
  public var connect: Span?
  public var attempts: [Attempt] = []
  /// From the first message to the proxy to its consent.
  public var tunnel: Span?
  public var handshake: Span?

  public var remoteAddress: SocketAddress?
  public var localAddress: SocketAddress?
  /// Without user and password.
  public var proxy: String?
  public var tlsVersion: TLSVersion?
  public var cipher: String?

  public init() {}

  /// Takes down what a connection that is being opened tells. What is done with a proxy first, and then with the server,
  /// counts from the first to the last.
  mutating func note(_ event: ConnectionEvent, at time: Deadline) {
    switch event {
    case .resolving: lookUp = Span(start: lookUp?.start ?? time)
    case .resolved: lookUp?.end = time
    case .connecting(let address):
      connect = Span(start: connect?.start ?? time)
      attempts.append(Attempt(address: address, span: Span(start: time)))
    case .connectFailed(let address, let error): end(address, at: time, error)
    case .connected(let address):
      end(address, at: time, nil)
      connect?.end = time
      remoteAddress = address
    case .tunnelling(_, let proxy):
      tunnel = Span(start: time)
      self.proxy = proxy.description
    case .tunnelled: tunnel?.end = time
    case .securing: handshake = Span(start: handshake?.start ?? time)
    case .secured(let result):
      handshake?.end = time
      tlsVersion = result.version
      cipher = result.cipher
    case .requestStarted, .bodySent, .requestSent, .interimReceived, .headReceived, .bodyReceived, .completed,
      .handedOver,
      .failed,
      .closed:
      break
    }
  }

  /// Whom the connection leads to, or the one that was tried last.
  public var peer: SocketAddress? { remoteAddress ?? attempts.last?.address }

  private mutating func end(_ address: SocketAddress, at time: Deadline, _ error: Errno?) {
    guard let index = attempts.lastIndex(where: { $0.address == address && $0.span.end == nil }) else { return }
    attempts[index].span.end = time
    attempts[index].error = error
  }
}

/// Takes the metrics of one connection down while it is being opened. It belongs to the connection's loop.
final class DialRecord: @unchecked Sendable {
  private var metrics = ConnectionMetrics()
  private var opening: OpeningMetrics?

  func note(_ event: ConnectionEvent, at time: Deadline) { metrics.note(event, at: time) }

  var peer: SocketAddress? { metrics.peer }

  /// What has been taken down when the connection is open, or could not be opened: nothing is noted after this.
  ///
  /// - Parameter localAddress: The kernel is asked when somebody wants to know, and only once.
  func finished(localAddress: @autoclosure () -> SocketAddress? = nil) -> OpeningMetrics {
    if let opening { return opening }
    metrics.localAddress = localAddress()
    let finished = OpeningMetrics(metrics)
    opening = finished
    return finished
  }
}
