import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// The server of a request, for messages.
struct Peer: CustomStringConvertible {
  private let host: String
  private let port: UInt16
  private let address: SocketAddress?
  private let proxy: Proxy?

  /// - Parameter address: The address of the connection, or `nil` before there is a connection.
  init(_ url: RequestURL, through proxy: Proxy? = nil, address: SocketAddress?) {
    self.proxy = proxy
    host = url.host
    port = url.port
    self.address = address
  }

  private var name: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

  /// The server and its address, `example.org:80 (192.0.2.1:80)`, or the address alone if the URL has it. Through a
  /// proxy, `example.org:80 through http://proxy:3128`, because the address would be the proxy's.
  var description: String {
    if let proxy { return "\(name) through \(proxy)" }
    guard let address, name != "\(address)" else { return name }
    return "\(name) (\(address))"
  }

  /// Returns the failure with its message: the server, the address, and the reason.
  func failure(_ error: TransportError, connectTimeout: Duration?, maxTime: Duration?) -> CommandFailure {
    CommandFailure(ExitStatus(error), message(for: error, connectTimeout: connectTimeout, maxTime: maxTime))
  }

  private func message(for error: TransportError, connectTimeout: Duration?, maxTime: Duration?) -> String? {
    switch error {
    case .resolutionFailed: return "\(error)"
    case .connectFailed(let attempts):
      return "could not connect to \(name) (\(Self.text(attempts, to: name)))"
    case .timedOut(_, .lowestRate): return "\(self): \(error) (--lowest-rate)"
    case .timedOut(let phase, _):
      return "\(self): \(error) (\(option(in: phase, connectTimeout, maxTime)))"
    case .tls(let problem) where problem.problem == .handshakeTimedOut:
      return "\(self): \(error) (\(option(in: .securing, connectTimeout, maxTime)))"
    case .cancelled: return nil
    case .tls(let problem) where problem.problem == .keyLogUnwritable: return "cannot set up TLS: \(problem)"
    case .proxy(let problem):
      guard case .transport(.connectFailed(let attempts)) = problem.failure else { return "\(name): \(problem)" }
      return "\(name): could not connect to the proxy \(problem.proxy) (\(Self.text(attempts, to: problem.proxy)))"
    // The connection is new, so only the server can have ended it.
    case .connectionClosed: return "\(self): the server closed the connection before the request was sent"
    case .localEndpointUnusable: return "\(self): \(error) (--interface)"
    case .optionInvalid, .connectionLost, .badResponse, .tls, .bodyFailed, .tooManyWaiting, .unavailable,
      .internalInconsistency, .localMisuse:
      return "\(self): \(error)"
    }
  }

  /// Returns the reasons why addresses could not be connected to. An address that `name` ends with is left out.
  private static func text(_ attempts: [TransportError.Attempt], to name: String) -> String {
    attempts.map { name.hasSuffix("\($0.address)") ? "\($0.error)" : "\($0.address): \($0.error)" }
      .joined(separator: "; ")
  }

  /// Returns the name of the option that set the limit which has been reached.
  private func option(in phase: TransportError.Phase, _ connectTimeout: Duration?, _ maxTime: Duration?) -> String {
    switch (phase, connectTimeout) {
    case (.resolving, let limit?), (.connecting, let limit?), (.tunnelling, let limit?),
      (.securing, let limit?):
      limit < maxTime ?? .seconds(Int64.max) ? "--connect-timeout" : "--max-time"
    default: "--max-time"
    }
  }
}
