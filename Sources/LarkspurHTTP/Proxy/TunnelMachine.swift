/// Opens a tunnel through an HTTP proxy: CONNECT (RFC 9110 9.3.6), with authentication (decision 11).
///
/// Theory of operation. The owner sends CONNECT over a connection to the proxy. A 2xx opens the tunnel. After a 407 the
/// machine asks the owner for an authorization, and CONNECT is sent again: over the same connection if the proxy
/// keeps it open and the body of its answer can be read to the end within a limit, or else over a new connection. Any
/// other status is a refusal. The body of a proxy's answer is never the response to the program's request: it is
/// discarded.
///
/// ```
///  ready --start--> asking <--opened-- opening
///                    |  ^ ^               ^
///     2xx: establish |  | +--authorized---+  (the connection was closed meanwhile: open)
///     other: fail    |  |                 |
///                    v  |                 |
///                   over  407 --> draining --drained, drainFailed--> authorizing --nil--> over (fail)
/// ```
///
/// If the proxy closes a connection that has carried an answered request without answering the next one, `asking` leads
/// back to `opening`.
///
/// The machine does not depend on bytes, sockets, time, or what a challenge means. Invariants: exactly one of
/// `establish` and `fail`, unless the owner stops early; at most `requestsMax` answers, and as many connections.
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
    /// Open a new connection to the proxy, and close the previous one.
    case open
    /// Send CONNECT.
    case ask(authorization: String?)
    /// Read the rest of the answer, at most `bytesMax` bytes of body, and discard it.
    case drain(bytesMax: Int)
    /// Find an authorization for the challenges.
    case authorize(challenges: [String])
    case establish
    case fail(TunnelError)
  }

  public typealias Actions = [Action]

  /// The head of a response to CONNECT.
  public struct Response: Hashable, Sendable {
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

  /// Maximum number of answered CONNECT requests for one tunnel. Without a limit, a proxy that always challenges and an
  /// owner that always has an authorization would never end.
  public static let requestsMax = 5
  /// Maximum size in bytes of a 407's body that is read to keep the connection. Reading a longer one costs more than a
  /// new connection.
  public static let drainBytesMax = 64 * 1024

  public private(set) var state = State.ready
  private var authorization: String?
  private var requests = 0
  /// Whether the current connection may carry another request.
  private var isConnected = true
  /// Whether the current connection has carried an answered request. The proxy may close such a connection before it
  /// gets the next request.
  private var isUsed = false

  /// Creates the machine for an open connection to the proxy.
  ///
  /// - Parameter authorization: The authorization of the first request, or `nil` for none.
  public init(authorization: String?) {
    self.authorization = authorization
  }

  public mutating func start(into actions: inout Actions) {
    guard state == .ready else { return }
    ask(&actions)
  }

  /// A new connection to the proxy is open.
  public mutating func opened(into actions: inout Actions) {
    guard state == .opening else { return }
    isConnected = true
    isUsed = false
    ask(&actions)
  }

  public mutating func answered(_ response: Response, into actions: inout Actions) {
    guard state == .asking else { return }
    isUsed = true
    switch response.status {
    case 200..<300:
      state = .over
      actions.append(.establish)
    // RFC 9110 15.5.8.
    case 407 where requests < Self.requestsMax:
      isConnected = response.isPersistent
      if isConnected {
        state = .draining(challenges: response.challenges)
        actions.append(.drain(bytesMax: Self.drainBytesMax))
      } else {
        authorize(response.challenges, &actions)
      }
    case 407: fail(.tooManyChallenges(limit: Self.requestsMax), &actions)
    default: fail(.refused(status: response.status, reason: response.reason), &actions)
    }
  }

  /// The proxy closed the connection without answering.
  ///
  /// - Returns: Whether the request is sent again over a new connection, because the old one had been idle. `false` for
  ///   a new connection, where such a close is an error.
  public mutating func closedUnanswered(into actions: inout Actions) -> Bool {
    guard state == .asking, isUsed else { return false }
    requests -= 1
    open(&actions)
    return true
  }

  public mutating func drained(into actions: inout Actions) { drained(isConnected: true, &actions) }

  /// The body of the answer is too long, ended too soon or did not end in time, or the proxy closed the connection.
  public mutating func drainFailed(into actions: inout Actions) { drained(isConnected: false, &actions) }

  /// The owner has found an authorization. `nil` if it cannot answer the challenges.
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
  /// The proxy demands authentication, and there is no authorization, or no further one.
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
  /// Returns the request for a tunnel (RFC 9112 3.2.3).
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
