import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// An event of a connection: of its opening, of its exchanges, and of its end.
public enum ConnectionEvent: Sendable {
  /// The look-up of a name starts. An address in the URL is looked up as well, at once.
  case resolving(host: String)
  /// The addresses of the name, in the order in which they are tried.
  case resolved([SocketAddress])
  /// The attempt to connect to an address starts. Several attempts may run at a time (RFC 8305).
  case connecting(SocketAddress)
  /// The attempt to connect to an address has failed, with the error of the kernel.
  case connectFailed(SocketAddress, Errno)
  /// An attempt to connect to an address has succeeded. All other attempts end.
  case connected(SocketAddress)
  /// The proxy is asked for a tunnel to a host. Followed by `tunnelled` when the proxy has granted it.
  case tunnelling(to: String, through: Proxy)
  /// The proxy has granted the tunnel.
  case tunnelled
  /// The TLS handshake starts.
  case securing(ServerName)
  /// The TLS handshake is complete.
  case secured(Handshake)
  /// The connection could not be opened. Reported by pools only.
  case openFailed(TransportError)
  /// The request's head, the number of bytes that are queued (the head, and a body that is sent together with it), and
  /// whether the connection has served an earlier request.
  case requestStarted(head: [UInt8], bytes: Int, isReused: Bool)
  /// A part of the request's body, without the chunked coding. Reported to observers that want bodies: see
  /// `PoolObserver.bodyBytesMax`.
  case requestContent([UInt8])
  /// The number of bytes of the body sent so far, without the chunked coding.
  case bodySent(bytes: Int)
  /// The kernel has taken the last byte of the request.
  case requestSent
  /// The head of an interim response (1xx).
  case interimReceived(status: Int, bytes: [UInt8], fields: FieldTable)
  /// The final response's head, as received.
  case headReceived(status: Int, bytes: [UInt8])
  /// The number of bytes of a piece of the response's body, without the chunked coding, with content codings.
  case bodyReceived(bytes: Int)
  /// A part of the response's body as in `bodyReceived`. Reported to observers that want bodies.
  case responseContent([UInt8])
  /// The response has arrived, and the request has been sent.
  case completed
  /// Another protocol than HTTP uses the connection from here on.
  case handedOver
  /// The exchange has failed.
  case failed(TransportError)
  /// The connection is closed, for this reason.
  case closed(ExchangeMachine.CloseReason)
}

extension ConnectionEvent {
  /// The part of opening a connection that begins with this event, or `nil` if no part does.
  var beginningPhase: TransportError.Phase? {
    switch self {
    case .resolving: .resolving
    case .connecting: .connecting
    case .tunnelling: .tunnelling
    case .securing: .securing
    case .resolved, .connectFailed, .connected, .tunnelled, .secured, .openFailed, .requestStarted,
      .requestContent, .bodySent, .requestSent, .interimReceived, .headReceived, .bodyReceived, .responseContent,
      .completed, .handedOver, .failed, .closed:
      nil
    }
  }
}
