import LarkspurBytes
import LarkspurTLS

/// The time limits of the parts of a connection and of an exchange, on the monotonic clock. `nil`, the default of all
/// but `expectation`, is no limit. Fractions of a second count; a limit that is not above zero cannot be used.
///
/// Pauses in which the owner asks for no more of a response, or has no more of a body, do not count.
public struct Timeouts: Hashable, Sendable, Codable {
  /// A rate below which a transfer counts as stalled.
  public struct LowestRate: Hashable, Sendable, Codable {
    /// The number of bytes that have to move within the time.
    public var bytes: Int
    /// The time within which they have to move.
    public var over: Duration

    /// Creates a rate: a number of bytes, and the time within which they have to move.
    public init(bytes: Int, over duration: Duration) {
      self.bytes = bytes
      over = duration
    }
  }

  /// The limit that was exceeded.
  public enum Limit: String, Hashable, Sendable {
    /// The limit `Timeouts.resolve`.
    case resolve = "the time for looking up the name"
    /// The limit `Timeouts.connect`.
    case connect = "the time for connecting"
    /// The limit `Timeouts.secure`.
    case secure = "the time for making the connection secure"
    /// The limit `Timeouts.send`.
    case send = "the time without progress in sending"
    /// The limit `Timeouts.firstByte`.
    case firstByte = "the time for the response's first byte"
    /// The limit `Timeouts.idle`.
    case idle = "the time between two bytes of the response"
    /// The limit `Timeouts.total`.
    case total = "the time for all of it"
    /// The limit `Timeouts.lowestRate`.
    case lowestRate = "the time of the lowest rate"
  }

  // The limits in nanoseconds. `UInt64.max` is no limit.
  // Performance: pools store one `Timeouts` for each request, and a `Duration` has twice the size and is slow to
  // convert.
  private var resolveMax = UInt64.max
  private var connectMax = UInt64.max
  private var secureMax = UInt64.max
  private(set) var sendMax = UInt64.max
  private(set) var firstByteMax = UInt64.max
  private(set) var idleMax = UInt64.max
  private(set) var totalMax = UInt64.max
  private(set) var expectationMax: UInt64 = 1_000_000_000

  /// The limit for looking up a name.
  public var resolve: Duration? {
    get { Self.duration(resolveMax) }
    set { resolveMax = Self.nanoseconds(newValue) }
  }
  /// The limit for connecting to one of the addresses, all attempts together.
  public var connect: Duration? {
    get { Self.duration(connectMax) }
    set { connectMax = Self.nanoseconds(newValue) }
  }
  /// The limit for each TLS handshake: with the server, and with an `https` proxy.
  public var secure: Duration? {
    get { Self.duration(secureMax) }
    set { secureMax = Self.nanoseconds(newValue) }
  }
  /// The limit without progress while there is something to send and the server does not take it. The time that a
  /// producer takes does not count.
  public var send: Duration? {
    get { Self.duration(sendMax) }
    set { sendMax = Self.nanoseconds(newValue) }
  }
  /// The limit for the response's first byte, counted from the last progress in sending the request.
  public var firstByte: Duration? {
    get { Self.duration(firstByteMax) }
    set { firstByteMax = Self.nanoseconds(newValue) }
  }
  /// The limit between two bytes of the response. Counts only while the caller asks for more of the response.
  public var idle: Duration? {
    get { Self.duration(idleMax) }
    set { idleMax = Self.nanoseconds(newValue) }
  }
  /// The limit of a call to `open`, or of an exchange from its beginning to the end of its response.
  public var total: Duration? {
    get { Self.duration(totalMax) }
    set { totalMax = Self.nanoseconds(newValue) }
  }
  /// The time for which a body waits for `100 Continue` before it is sent anyway, because a server may not know of it
  /// (RFC 9110 10.1.1). Fails nothing. 1 second by default.
  public var expectation: Duration? {
    get { Self.duration(expectationMax) }
    set { expectationMax = Self.nanoseconds(newValue) }
  }

  /// The rate below which a request's body that is being sent, or a response's body, fails. The wait for the response's
  /// head does not count, nor does a pause for an upper limit of the rate. curl: `--speed-limit`, `--speed-time`.
  public var lowestRate: LowestRate?

  private static func duration(_ nanoseconds: UInt64) -> Duration? {
    nanoseconds == .max ? nil : .nanoseconds(Int64(clamping: nanoseconds))
  }

  private static func nanoseconds(_ duration: Duration?) -> UInt64 { duration?.wholeNanoseconds ?? .max }

  /// Creates the default limits: no limit but `expectation`, which is 1 second.
  public init() {}

  /// The deadline of a call to `open`, or of an exchange, that begins at `now`.
  func end(from now: Deadline, within deadline: Deadline) -> Deadline {
    min(deadline, now.advanced(byNanoseconds: totalMax))
  }

  /// Whether nothing of an exchange but its total time is limited.
  var leavesExchangesAlone: Bool { sendMax & firstByteMax & idleMax == .max && lowestRate == nil }

  /// Whether the limits change exchanges, and not only the opening of connections.
  public var concernsExchanges: Bool {
    !leavesExchangesAlone || totalMax != .max || expectationMax != Timeouts().expectationMax
  }

  /// Checks that each limit can be used.
  ///
  /// - Throws: `optionInvalid`.
  func check() throws(TransportError) {
    let limits = [
      "resolve": resolveMax, "connect": connectMax, "secure": secureMax, "send": sendMax, "firstByte": firstByteMax,
      "idle": idleMax, "total": totalMax, "expectation": expectationMax,
    ]
    for (name, limit) in limits where limit == 0 {
      throw .optionInvalid("timeouts.\(name)", "the time has to be above zero")
    }
    if let lowestRate, lowestRate.bytes <= 0 || lowestRate.over <= .zero {
      throw .optionInvalid("timeouts.lowestRate", "the bytes and their time have to be above zero")
    }
  }
}

extension Deadline {
  /// The time `duration` after this one, or `never` if `duration` is `nil`.
  func advanced(by duration: Duration?) -> Deadline {
    guard let duration else { return .never }
    return advanced(by: duration)
  }
}

extension Connection {
  /// Makes the TLS handshake, within its own time limit if there is one.
  func secure(
    by security: Security, as server: ServerName, port: UInt16, timeouts: Timeouts, deadline: Deadline
  ) async throws(TransportError) {
    guard timeouts.secure != nil, let loop = channel?.loop else {
      return try await secure(by: security, as: server, port: port, deadline: deadline)
    }
    try await Self.limited(by: timeouts.secure, as: .secure, in: .securing, within: deadline, on: loop) {
      (deadline) async throws(TransportError) in
      try await secure(by: security, as: server, port: port, deadline: deadline)
    }
  }

  /// Runs a part of `open` within its own time limit. If that limit ends before the deadline does, the error names the
  /// limit.
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
