import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// An error of the transport.
public enum TransportError: Error, Hashable, Sendable {
  /// The name could not be looked up.
  case resolutionFailed(host: String, reason: String)
  /// No address accepted the connection. The attempts are in their order.
  case connectFailed([Attempt])
  /// No connection can be made from the local endpoint. Without an error number, the endpoint reaches none of the
  /// host's addresses.
  indirect case localEndpointUnusable(LocalEndpoint, Errno?)
  /// An option has a value that cannot be used. Nothing was sent.
  case optionInvalid(_ option: String, _ reason: String)
  /// A time limit was exceeded: the limit of the whole call, unless `limit` says otherwise.
  case timedOut(Phase, limit: Timeouts.Limit = .total)
  /// The task or the request was cancelled, or the connection was closed locally.
  case cancelled
  /// The connection broke.
  case connectionLost(Phase, Errno?)
  /// The connection had ended before this request could be sent on it. Nothing of the request was sent.
  case connectionClosed
  /// TLS failed: the server is not trusted, or the two sides do not agree on parameters.
  indirect case tls(TLSError)
  /// The proxy cannot be used to reach the host.
  indirect case proxy(ProxyError)
  /// The server's response violates the protocol or is incomplete.
  case badResponse(ResponseError)
  /// More requests would wait for a connection than `PoolLimits.waitingMax` allows.
  case tooManyWaiting
  /// The request's body could not be produced or read, or the file for the response's body could not be written.
  indirect case bodyFailed(BodyFailure)
  /// The system's resources are exhausted, for example file descriptors.
  case unavailable(Errno)
  /// Larkspur's own state is inconsistent: a defect in Larkspur.
  case internalInconsistency
  /// A call that is not allowed in the current state: a defect in the caller.
  case localMisuse(Misuse)

  /// Whether the error of a send leaves the other direction whole: see `Errno.followsOrderlyEnd`.
  public var followsOrderlyEnd: Bool {
    if case .connectionLost(_, let cause?) = self { cause.followsOrderlyEnd } else { false }
  }

  /// Whether the error is one of the connection or its server's absence, so that another attempt may succeed.
  public var isOfConnection: Bool {
    switch self {
    case .connectionLost, .connectionClosed, .connectFailed, .resolutionFailed, .timedOut, .badResponse(.truncated):
      true
    case .tls(let error): error.problem == .truncated || error.problem == .connectionLost
    case .proxy(let error): if case .transport(let cause) = error.failure { cause.isOfConnection } else { false }
    default: false
    }
  }

  public struct Attempt: Hashable, Sendable {
    public var address: SocketAddress
    public var error: Errno

    public init(address: SocketAddress, error: Errno) {
      self.address = address
      self.error = error
    }
  }

  /// The part of opening a connection or of an exchange in which the error occurred.
  public enum Phase: String, Hashable, Sendable {
    case queueing = "while waiting in the queue for a connection"
    case resolving = "while looking up the host's name"
    case connecting = "while connecting"
    case tunnelling = "while asking the proxy for a tunnel"
    case securing = "while making the connection secure"
    case sending = "while sending the request"
    case awaitingHead = "while waiting for the response"
    case receivingBody = "while receiving the body"
  }

  public enum Misuse: String, Hashable, Sendable {
    case notOnLoop = "the call was made on a thread that is not the loop's"
    case exchangeRunning = "another exchange is still running on the connection"
    case exchangeOver = "the exchange is over"
    case bodyLengthWrong = "the body is not as long as the request's head says"
    case slotBusy = "the slot has another request"
    case poolShutDown = "the pool has been shut down"
    case recipientWrong = "a request for a proxy goes to a server, or the other way round"
    case securityMissing = "the proxy speaks TLS, and how is not said"
    case bodyTooLarge = "the body is larger than the caller allowed"
  }
}

extension TransportError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .resolutionFailed(let host, let reason): "could not resolve \(host): \(reason)"
    case .connectFailed(let attempts):
      "could not connect: " + attempts.map { "\($0.address): \($0.error)" }.joined(separator: "; ")
    case .localEndpointUnusable(let local, let error):
      "cannot connect from the localEndpoint \(local): "
        + (error.map { "\($0)" } ?? "none of the host's addresses is reached from there")
    case .optionInvalid(let option, let reason): "the option \(option) cannot be used: \(reason)"
    case .timedOut(let phase, .total): "timed out \(phase.rawValue)"
    case .timedOut(let phase, let limit): "timed out \(phase.rawValue): \(limit.rawValue) was up"
    case .cancelled: "cancelled"
    case .connectionLost(let phase, let error):
      "the connection broke \(phase.rawValue)" + (error.map { ": \($0)" } ?? "")
    case .connectionClosed: "the connection had been closed already"
    case .tls(let error): "TLS: \(error)"
    case .proxy(let error): "\(error)"
    case .badResponse(let error): "bad response: \(error)"
    case .tooManyWaiting: "too many requests wait for a connection"
    case .bodyFailed(let failure): "\(failure)"
    case .unavailable(let error): "out of resources: \(error)"
    case .internalInconsistency: "an internal inconsistency of Larkspur's"
    case .localMisuse(let misuse): misuse.rawValue
    }
  }
}
