import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// What a connection tells its observer.
public enum ConnectionEvent: Sendable {
  case resolving(host: String)
  case resolved([SocketAddress])
  case connecting(SocketAddress)
  case connectFailed(SocketAddress, Errno)
  case connected(SocketAddress)
  /// A proxy is asked for a tunnel to a host, and has granted it.
  case tunnelling(to: String, through: Proxy)
  case tunnelled
  case securing(ServerName)
  case secured(Handshake)
  case requestStarted(bytes: Int)
  /// So much of the body has left in all, what the chunked coding adds not counted.
  case bodySent(bytes: Int)
  case requestSent
  case interimReceived(status: Int, bytes: [UInt8], fields: FieldTable)
  case headReceived(status: Int, bytes: Int)
  case bodyReceived(bytes: Int)
  case completed
  case handedOver
  case failed(TransportError)
  case closed(ExchangeMachine.CloseReason)
}
