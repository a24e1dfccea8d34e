import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// The times of the parts of opening a connection, and their results.
public struct ConnectionMetrics: Sendable {
  public struct Span: Hashable, Sendable {
    public var start: Deadline
    /// The end, or `nil` if the part did not complete.
    public var end: Deadline?
  }

  /// One address that was tried. Several may be tried at the same time (RFC 8305).
  public struct Attempt: Hashable, Sendable {
    public var address: SocketAddress
    public var span: Span
    /// The error, or `nil` if the attempt succeeded or was no longer needed.
    public var error: Errno?
  }

  /// The look-up of the name. This and the properties below are `nil` if that part did not take place.
  public var lookUp: Span?
  /// From the first attempt to the last success. A proxy may be connected to more than once.
  public var connect: Span?
  public var attempts: [Attempt] = []
  /// From the first message to the proxy until the proxy has granted the tunnel.
  public var tunnel: Span?
  public var handshake: Span?

  public var remoteAddress: SocketAddress?
  public var localAddress: SocketAddress?
  /// Whether the connection uses multipath TCP, at the end of its first exchange.
  public internal(set) var isMultipath = false
  /// Whether the connection leads to a proxy, and not past it because it could not be reached.
  public internal(set) var isProxied = false
  /// The proxy of a tunnel, without user and password.
  public var proxy: String?
  public var tlsVersion: TLSVersion?
  public var cipher: String?

  public init() {}

  /// Records an event of a connection that is being opened. A part that takes place twice, first with the proxy and
  /// then with the server, lasts from the first start to the last end.
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
    case .openFailed, .requestStarted, .requestContent, .bodySent, .requestSent, .interimReceived, .headReceived,
      .bodyReceived, .responseContent, .completed, .handedOver, .failed, .closed:
      break
    }
  }

  /// The address that the connection leads to, or else the address that was tried last.
  public var peer: SocketAddress? { remoteAddress ?? attempts.last?.address }

  private mutating func end(_ address: SocketAddress, at time: Deadline, _ error: Errno?) {
    guard let index = attempts.lastIndex(where: { $0.address == address && $0.span.end == nil }) else { return }
    attempts[index].span.end = time
    attempts[index].error = error
  }
}

/// The recorder of one connection's metrics while it is opened. It belongs to the connection's loop.
final class DialRecord: @unchecked Sendable {
  private var metrics = ConnectionMetrics()
  private var opening: OpeningMetrics?

  /// The error of the dial, if it has failed.
  var failure: TransportError?
  /// Whether the connection was to use multipath TCP.
  private let usesMultipath: Bool
  /// The number of the connection in its pool, counted from 1.
  let number: UInt64

  /// - Parameter route: The route that is dialled, or `nil` if the connection was not opened by a pool.
  init(number: UInt64 = 0, of route: Route? = nil) {
    self.number = number
    usesMultipath = route?.local?.usesMultipath == true
    metrics.isProxied = route?.proxy != nil
  }

  /// Notes that the connection leads past the proxy.
  func leftProxy() { metrics.isProxied = false }

  /// The part of opening that is in progress.
  private(set) var phase = TransportError.Phase.connecting

  func note(_ event: ConnectionEvent, at time: Deadline) {
    metrics.note(event, at: time)
    if let next = event.beginningPhase { phase = next }
  }

  var peer: SocketAddress? { metrics.peer }

  /// Returns the metrics once the connection is open or has failed. No event may be noted after this.
  ///
  /// - Parameter channel: The connection's channel. Asked once, on the first call, because that takes system calls.
  func finished(_ channel: Channel? = nil) -> OpeningMetrics {
    if let opening { return opening }
    metrics.localAddress = channel?.localAddress
    if usesMultipath { metrics.isMultipath = channel?.isMultipath == true }
    let finished = OpeningMetrics(metrics)
    opening = finished
    return finished
  }
}
