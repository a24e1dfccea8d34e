import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// Why the transport could not do what it was asked.
public enum TransportError: Error, Hashable, Sendable {
  /// The name could not be looked up.
  case resolutionFailed(host: String, reason: String)
  /// None of the addresses took the connection.
  case connectFailed([Attempt])
  /// Nothing can be connected from there. Without an error number: it reaches none of the host's addresses.
  indirect case localEndpointUnusable(LocalEndpoint, Errno?)
  /// The time was up: that of the whole call, unless `limit` says otherwise.
  case timedOut(Phase, limit: Timeouts.Limit = .total)
  /// The task was cancelled.
  case cancelled
  /// The connection broke.
  case connectionLost(Phase, Errno?)
  /// The connection had ended before this request could be sent on it: nothing was sent.
  case connectionClosed
  /// TLS failed: the server is not trusted, or the two sides do not agree.
  indirect case tls(TLSError)
  /// There is no way through the proxy.
  indirect case proxy(ProxyError)
  /// The server's response breaks the rules or is incomplete.
  case badResponse(ResponseError)
  /// More requests wait for a connection than the pool allows.
  case tooManyWaiting
  /// The request's body, or the file for the response's, could not be had.
  indirect case bodyFailed(BodyFailure)
  /// The loop's resources are exhausted.
  case unavailable(Errno)
  /// Larkspur's own state does not fit what happened: a defect of ours.
  case internalInconsistency
  /// A call that does not fit: a defect of the caller's.
  case localMisuse(Misuse)

  public struct Attempt: Hashable, Sendable {
    public var address: SocketAddress
    public var error: Errno

    public init(address: SocketAddress, error: Errno) {
      self.address = address
      self.error = error
    }
  }

  /// How far an exchange had come.
  public enum Phase: String, Hashable, Sendable {
    case queueing = "while waiting for a connection"
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
      "cannot connect from \(local): " + (error.map { "\($0)" } ?? "none of the host's addresses is reached from there")
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
