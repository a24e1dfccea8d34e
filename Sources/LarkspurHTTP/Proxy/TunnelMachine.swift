/// Decides how a tunnel through an HTTP proxy comes about: CONNECT (RFC 9110 9.3.6), with authentication.
///
/// Theory of operation. CONNECT is asked for over a connection to the proxy. A 2xx opens the tunnel. After a 407 the
/// owner is asked for an authorization, and CONNECT is asked for again: over the same connection if the proxy keeps it
/// and its answer's body can be read to the end within a limit, or else over a new one. Any other status is a refusal.
/// What a proxy says in a body is never anybody's response: it is thrown away.
///
/// ```
///  ready --begin--> asking <--opened-- opening
///                    |  ^ ^               ^
///     2xx: establish |  | +--authorized---+  (the connection was closed meanwhile: open)
///     other: fail    |  |                 |
///                    v  |                 |
///                   over  407 --> draining --drained, drainFailed--> authorizing --nil--> over (fail)
/// ```
///
/// It does not know: bytes, sockets, time, what a challenge means. Invariants: exactly one of `establish` and `fail`; at
/// most `requestsMax` answers and as many connections.
public struct TunnelMachine: Sendable {
  public enum State: Hashable, Sendable {
    case ready
    case opening
    case asking
    case draining(challenges: [String])
    case authorizing
    case over
  }

  public enum Action: Hashable, Sendable {
    /// Connect to the proxy: the connection before is not used again.
    case open
    /// Send CONNECT.
    case ask(authorization: String?)
    /// Read the rest of the answer, so many bytes of body at most, and throw it away.
    case drain(bytesMax: Int)
    /// Find an authorization that answers the challenges.
    case authorize(challenges: [String])
    case establish
    case fail(TunnelError)
  }

  public typealias Actions = [Action]

  /// What the head of an answer says.
  public struct Answer: Hashable, Sendable {
    public var status: Int
    public var reason: String
    /// The values of `Proxy-Authenticate`.
    public var challenges: [String]
    public var isPersistent: Bool

    public init(status: Int, reason: String = "", challenges: [String] = [], isPersistent: Bool = true) {
      self.status = status
      self.reason = reason
      self.challenges = challenges
      self.isPersistent = isPersistent
    }
  }

  /// The CONNECT requests for one tunnel that are answered. Without a limit a proxy and an owner with an answer to every challenge would go
  /// on for ever.
  public static let requestsMax = 5
  /// The body of a 407, in bytes. A longer one costs more than a new connection.
  public static let drainBytesMax = 64 * 1024

  public private(set) var state = State.ready
  private var authorization: String?
  private var requests = 0
  /// Whether there is a connection that may be used again.
  private var isConnected = true
  /// Whether it has served a request: then the proxy may close it before it sees the next one.
  private var isUsed = false

  /// Begins with a connection. `authorization` is of the first request.
  public init(authorization: String?) {
    self.authorization = authorization
  }

  public mutating func begin(into actions: inout Actions) {
    guard state == .ready else { return }
    ask(&actions)
  }

  /// There is a new connection.
  public mutating func opened(into actions: inout Actions) {
    guard state == .opening else { return }
    isConnected = true
    isUsed = false
    ask(&actions)
  }

  public mutating func answered(_ answer: Answer, into actions: inout Actions) {
    guard state == .asking else { return }
    isUsed = true
    switch answer.status {
    case 200..<300:
      state = .over
      actions.append(.establish)
    // RFC 9110 15.5.8.
    case 407 where requests < Self.requestsMax:
      isConnected = answer.isPersistent
      if isConnected {
        state = .draining(challenges: answer.challenges)
        actions.append(.drain(bytesMax: Self.drainBytesMax))
      } else {
        authorize(answer.challenges, &actions)
      }
    case 407: fail(.tooManyChallenges(limit: Self.requestsMax), &actions)
    default: fail(.refused(status: answer.status, reason: answer.reason), &actions)
    }
  }

  /// The connection was closed before it brought an answer, and nobody is to blame: it had been idle.
  /// False: it was a new one, and that is an error.
  public mutating func closedUnanswered(into actions: inout Actions) -> Bool {
    guard state == .asking, isUsed else { return false }
    requests -= 1
    open(&actions)
    return true
  }

  public mutating func drained(into actions: inout Actions) { drained(isConnected: true, &actions) }

  /// The body is too long, or ended too soon.
  public mutating func drainFailed(into actions: inout Actions) { drained(isConnected: false, &actions) }

  /// Nil: there is no answer to the challenges.
  public mutating func authorized(_ authorization: String?, into actions: inout Actions) {
    guard state == .authorizing else { return }
    guard let authorization else { return fail(.authenticationRequired, &actions) }
    self.authorization = authorization
    if isConnected { ask(&actions) } else { open(&actions) }
  }

  private mutating func drained(isConnected: Bool, _ actions: inout Actions) {
    guard case .draining(let challenges) = state else { return }
    self.isConnected = isConnected
    authorize(challenges, &actions)
  }

  private mutating func authorize(_ challenges: [String], _ actions: inout Actions) {
    state = .authorizing
    actions.append(.authorize(challenges: challenges))
  }

  private mutating func ask(_ actions: inout Actions) {
    state = .asking
    requests += 1
    actions.append(.ask(authorization: authorization))
  }

  private mutating func open(_ actions: inout Actions) {
    state = .opening
    actions.append(.open)
  }

  private mutating func fail(_ error: TunnelError, _ actions: inout Actions) {
    state = .over
    actions.append(.fail(error))
  }
}

/// Why an HTTP proxy made no tunnel.
public enum TunnelError: Error, Hashable, Sendable {
  /// Any status that is neither 2xx nor 407.
  case refused(status: Int, reason: String)
  /// The proxy wants to know who we are, and there is nothing to say (any more).
  case authenticationRequired
  case tooManyChallenges(limit: Int)
  /// The request cannot be written.
  case requestInvalid(RequestError)
}

extension TunnelError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .refused(let status, let reason):
      "the proxy refuses the tunnel with \(status)" + (reason.isEmpty ? "" : " \(reason)")
    case .authenticationRequired: "the proxy wants authentication (407)"
    case .tooManyChallenges(let limit): "the proxy still wants authentication (407) after \(limit) requests"
    case .requestInvalid(let error): "the proxy cannot be asked: \(error)"
    }
  }
}

extension TunnelMachine {
  /// The request for a tunnel (RFC 9112 3.2.3).
  public static func request(
    host: String, port: UInt16, authorization: String?, userAgent: String?
  ) throws(RequestError) -> RequestHead {
    let target = authority(host, port)
    var writer = try RequestWriter(method: "CONNECT", target: target, host: target, to: .proxy)
    if let authorization { try writer.field("Proxy-Authorization", authorization) }
    if let userAgent { try writer.field("User-Agent", userAgent) }
    return writer.finish()
  }
}
