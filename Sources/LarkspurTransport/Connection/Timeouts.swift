import LarkspurBytes
import LarkspurTLS

/// How long each part of a connection and of an exchange may take, on the monotonic clock. Nil: as long as it takes.
package struct Timeouts: Hashable, Sendable {
  /// Which time was up.
  package enum Limit: String, Hashable, Sendable {
    case resolve = "the time for looking up the name"
    case connect = "the time for connecting"
    case secure = "the time for making the connection secure"
    case send = "the time without progress in sending"
    case firstByte = "the time for the response's first byte"
    case idle = "the time between two bytes of the response"
    case total = "the time for all of it"
  }

  package var resolve: Duration?
  package var connect: Duration?
  package var secure: Duration?
  /// While there is something to send, and the server takes none of it. A producer may take its time.
  package var send: Duration?
  /// From the moment when the request has been sent.
  package var firstByte: Duration?
  /// While somebody asks for more of the response.
  package var idle: Duration?
  /// Of a call to `open`, and of an exchange from its beginning to the end of its response.
  package var total: Duration?
  /// How long a body waits for `100 Continue` before it is sent all the same: a server may not know of it (RFC 9110
  /// 10.1.1). This fails nothing.
  package var expectation: Duration? = .seconds(1)

  package init() {}

  /// Whether nothing of an exchange is limited.
  var leavesExchangesAlone: Bool { send == nil && firstByte == nil && idle == nil }
}

extension Deadline {
  /// The moment after `duration`; never, without one.
  func advanced(by duration: Duration?) -> Deadline {
    guard let duration else { return .never }
    return advanced(by: duration)
  }
}

extension Connection {
  /// Runs a part of `open` within its own time. If that is up before the deadline is, the error says so.
  static func limited<T>(
    by duration: Duration?, as limit: Timeouts.Limit, in phase: TransportError.Phase, within deadline: Deadline,
    on loop: ClientLoop, _ operation: (Deadline) async throws(TransportError) -> T
  ) async throws(TransportError) -> T {
    let own = loop.now.advanced(by: duration)
    guard own < deadline else { return try await operation(deadline) }
    do throws(TransportError) {
      return try await operation(own)
    } catch {
      switch error {
      case .timedOut: throw .timedOut(phase, limit: limit)
      case .tls(let problem) where problem.problem == .handshakeTimedOut: throw .timedOut(phase, limit: limit)
      default: throw error
      }
    }
  }
}
