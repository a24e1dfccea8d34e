import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// An event that a connection reports to its observer.
public enum ConnectionEvent: Sendable {
  case resolving(host: String)
  case resolved([SocketAddress])
  case connecting(SocketAddress)
  case connectFailed(SocketAddress, Errno)
  case connected(SocketAddress)
  /// The proxy is asked for a tunnel to a host. Followed by `tunnelled` when the proxy has granted it.
  case tunnelling(to: String, through: Proxy)
  case tunnelled
  case securing(ServerName)
  case secured(Handshake)
  /// The request's head, and the number of bytes that are queued: the head, and a body that is sent together with it.
  case requestStarted(head: [UInt8], bytes: Int)
  /// The number of bytes of the body sent so far, without the chunked coding.
  case bodySent(bytes: Int)
  case requestSent
  case interimReceived(status: Int, bytes: [UInt8], fields: FieldTable)
  /// The final response's head, as received.
  case headReceived(status: Int, bytes: [UInt8])
  case bodyReceived(bytes: Int)
  case completed
  case handedOver
  case failed(TransportError)
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
    case .resolved, .connectFailed, .connected, .tunnelled, .secured, .requestStarted, .bodySent, .requestSent,
      .interimReceived, .headReceived, .bodyReceived, .completed, .handedOver, .failed, .closed:
      nil
    }
  }
}
