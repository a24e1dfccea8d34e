import LarkspurCoding
import LarkspurHTTP
import LarkspurTLS
import LarkspurTransport

/// The error of a client's request.
public struct HTTPClientError: Error, Sendable {
  /// The kind of an error.
  public enum Code: String, Hashable, Sendable {
    /// The URL is not one of `http` or `https` with a host.
    case invalidURL
    /// A part of the request cannot be sent, for instance a field with a line break in its value.
    case invalidRequest
    /// An option of the client cannot be used, for instance a variable of the environment that names no proxy.
    case invalidOption
    /// The task was cancelled.
    case cancelled
    /// A time limit of ``HTTPClient/Options/timeouts`` was exceeded.
    case timedOut
    /// The host's name could not be looked up.
    case unresolvedHost
    /// No connection could be made.
    case unconnected
    /// The connection broke, or the server ended it too early.
    case connectionLost
    /// TLS failed: the server is not trusted, or the two sides do not agree on parameters.
    case insecure
    /// The proxy cannot be used to reach the host.
    case proxyFailed
    /// The response violates the protocol, or its content coding.
    case invalidResponse
    /// There were more redirections than ``HTTPClient/Options/redirectsMax``.
    case tooManyRedirections
    /// The request's body could not be read or produced, or cannot be sent a second time.
    case bodyFailed
    /// The response's body, a line or an event of it, or a WebSocket's message is larger than the caller allows.
    case tooLarge
    /// The body was read after the end of the closure that it belongs to.
    case bodyOver
    /// A call on a WebSocket after the Close of either side.
    case closed
    /// More requests would wait for a connection than the client allows, or the system's resources are exhausted.
    case unavailable
    /// Larkspur's own state is inconsistent: a defect in Larkspur.
    case internalInconsistency
  }

  /// The kind of the error.
  public let code: Code
  /// The URL of the request that failed, without user and password: after a redirection, the latest one. Empty if the
  /// error does not belong to a request.
  public let url: String
  /// The reason in plain words.
  public let reason: String
  /// The error of the transport, if it is the cause.
  package let cause: TransportError?

  init(_ code: Code, _ reason: String, url: String = "", cause: TransportError? = nil) {
    self.cause = cause
    self.code = code
    self.reason = reason
    self.url = url.withoutUserinfo
  }
}

extension HTTPClientError: CustomStringConvertible {
  public var description: String { url.isEmpty ? reason : "\(url): \(reason)" }
}

extension HTTPClientError {
  init(_ error: TransportError, url: String) {
    let code: Code =
      switch error {
      case .resolutionFailed: .unresolvedHost
      case .connectFailed, .localEndpointUnusable: .unconnected
      case .optionInvalid: .invalidOption
      case .timedOut: .timedOut
      case .cancelled: .cancelled
      case .connectionLost, .connectionClosed: .connectionLost
      case .tls(let problem): problem.problem == .handshakeTimedOut ? .timedOut : .insecure
      case .proxy: .proxyFailed
      case .badResponse(.truncated): .connectionLost
      case .badResponse: .invalidResponse
      case .bodyFailed: .bodyFailed
      case .tooManyWaiting, .unavailable: .unavailable
      case .internalInconsistency, .localMisuse: .internalInconsistency
      }
    self.init(code, "\(error)", url: url, cause: error)
  }

  init(_ reason: LoadTarget.Invalid, url: String) {
    let text =
      switch reason {
      case .schemeUnsupported: "the URL does not begin with http:// or https://"
      case .hostMissing: "the URL has no host"
      case .hostInvalid: "the URL's host is invalid; a name in another script is written in its ASCII form (xn--)"
      case .portInvalid: "the URL's port is not a number up to 65535"
      case .portZero: "no server has port 0"
      }
    self.init(.invalidURL, text, url: url)
  }

  init(_ error: WebSocketError, url: String) {
    let code: Code =
      switch error {
      case .messageTooBig: .tooLarge
      case .frameInvalid, .closeTooShort, .closeCodeInvalid, .invalidUTF8, .compressionInvalid, .dataUnsupported:
        .invalidResponse
      case .pongTimedOut, .closeTimedOut: .timedOut
      case .endedWithoutClose: .connectionLost
      case .internalInconsistency: .internalInconsistency
      }
    self.init(code, "\(error)", url: url)
  }

  init(_ error: CodingError, url: String) { self.init(.invalidResponse, "\(error)", url: url) }

  static let inconsistency = HTTPClientError(.internalInconsistency, "a stage of the load has come out of its order")
}
