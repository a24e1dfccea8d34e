import LarkspurBytes
import LarkspurTLS

/// How long each part of a connection and of an exchange may take, on the monotonic clock. Nil: as long as it takes.
public struct Timeouts: Hashable, Sendable {
  /// Which time was up.
  public enum Limit: String, Hashable, Sendable {
    case resolve = "the time for looking up the name"
    case connect = "the time for connecting"
    case secure = "the time for making the connection secure"
    case send = "the time without progress in sending"
    case firstByte = "the time for the response's first byte"
    case idle = "the time between two bytes of the response"
    case total = "the time for all of it"
  }

  // Nanoseconds; all bits set: for ever. Pools hold one of these for each request, and a duration takes twice the room
  // and is long to convert.
  private var resolveMax = UInt64.max
  private var connectMax = UInt64.max
  private var secureMax = UInt64.max
  private(set) var sendMax = UInt64.max
  private(set) var firstByteMax = UInt64.max
  private(set) var idleMax = UInt64.max
  private(set) var totalMax = UInt64.max
  private(set) var expectationMax: UInt64 = 1_000_000_000

  public var resolve: Duration? {
    get { Self.duration(resolveMax) }
    set { resolveMax = Self.nanoseconds(newValue) }
  }
  public var connect: Duration? {
    get { Self.duration(connectMax) }
    set { connectMax = Self.nanoseconds(newValue) }
  }
  public var secure: Duration? {
    get { Self.duration(secureMax) }
    set { secureMax = Self.nanoseconds(newValue) }
  }
  /// While there is something to send, and the server takes none of it. A producer may take its time.
  public var send: Duration? {
    get { Self.duration(sendMax) }
    set { sendMax = Self.nanoseconds(newValue) }
  }
  /// From the moment when the request has been sent.
  public var firstByte: Duration? {
    get { Self.duration(firstByteMax) }
    set { firstByteMax = Self.nanoseconds(newValue) }
  }
  /// While somebody asks for more of the response.
  public var idle: Duration? {
    get { Self.duration(idleMax) }
    set { idleMax = Self.nanoseconds(newValue) }
  }
  /// Of a call to `open`, and of an exchange from its beginning to the end of its response.
  public var total: Duration? {
    get { Self.duration(totalMax) }
    set { totalMax = Self.nanoseconds(newValue) }
  }
  /// How long a body waits for `100 Continue` before it is sent all the same: a server may not know of it (RFC 9110
  /// 10.1.1). This fails nothing. One second by default.
  public var expectation: Duration? {
    get { Self.duration(expectationMax) }
    set { expectationMax = Self.nanoseconds(newValue) }
  }

  private static func duration(_ nanoseconds: UInt64) -> Duration? {
    nanoseconds == .max ? nil : .nanoseconds(Int64(clamping: nanoseconds))
  }

  private static func nanoseconds(_ duration: Duration?) -> UInt64 { duration?.wholeNanoseconds ?? .max }

  public init() {}

  /// When all of a call to `open`, or of an exchange, that begins at `now` has to be over.
  func end(from now: Deadline, within deadline: Deadline) -> Deadline {
    min(deadline, now.advanced(byNanoseconds: totalMax))
  }

  /// Whether nothing of an exchange is limited but its end.
  var leavesExchangesAlone: Bool { sendMax & firstByteMax & idleMax == .max }
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
