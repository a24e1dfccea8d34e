import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

extension Connection {
  /// Connects to a host, through a proxy if `route` is not `nil`.
  ///
  /// Without `security`, an HTTP proxy makes the requests itself. The connection is then one to the proxy: its
  /// `recipient` is `proxy`, and requests must be made for a proxy. In all other cases with a proxy the connection is a
  /// tunnel to the host.
  ///
  /// - Parameters:
  ///   - host: A name, or an IP address without brackets.
  ///   - place: The place to connect to in place of the host, or `nil`.
  ///   - deadline: The deadline for all of it.
  public static func open(
    host: String, port: UInt16, at place: Route.Place? = nil, security: Security? = nil, via route: ProxyRoute?,
    resolver: Resolver = .shared, from local: LocalEndpoint? = nil, on loop: ClientLoop, deadline: Deadline = .never,
    timeouts: Timeouts = Timeouts(), limits: Limits = Limits(), observer: Observer? = nil
  ) async throws(TransportError) -> Connection {
    guard let route else {
      return try await open(
        host: host, port: port, at: place, security: security, resolver: resolver, from: local, on: loop,
        deadline: deadline, timeouts: timeouts, limits: limits, observer: observer)
    }
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    let end = timeouts.end(from: loop.now, within: deadline)
    let mayFail = route.allowsFailover && !route.forwards(toSecure: security != nil)
    var dial = ProxyDial(
      route: route, host: place?.host ?? host, port: place?.port ?? port, resolver: resolver, local: local, loop: loop,
      deadline: mayFail ? loop.now.halfway(to: end) : end, end: end, timeouts: timeouts, limits: limits,
      observer: observer)
    do throws(TransportError) {
      return try await dial.open(by: security, as: host, port: port)
    } catch {
      guard mayFail, dial.isOfProxy(error) else { throw error }
      let connection = try await open(
        host: host, port: port, at: place, security: security, via: nil, resolver: resolver, from: local, on: loop,
        deadline: end, timeouts: timeouts, limits: limits, observer: observer)
      connection.hasLeftProxy = true
      return connection
    }
  }
}

/// Connects through a proxy: performs the decisions of a `TunnelMachine` or a `SOCKSMachine`.
struct ProxyDial {
  let route: ProxyRoute
  let host: String
  let port: UInt16
  let resolver: Resolver
  /// The local endpoint of the connection to the proxy, if one was chosen.
  let local: LocalEndpoint?
  let loop: ClientLoop
  /// The deadline for opening the tunnel. If the host may be reached without the proxy, that has the other half of the
  /// time, until the proxy asks for authorization: it answers, and the program may need time.
  private(set) var deadline: Deadline
  /// The deadline for all of it.
  let end: Deadline
  let timeouts: Timeouts
  let limits: Limits
  let observer: Connection.Observer?

  var proxy: Proxy { route.proxy }

  mutating func open(by security: Security?, as host: String, port: UInt16) async throws(TransportError) -> Connection {
    let server = try security.map { _ throws(TransportError) in try Connection.serverName(host) }
    guard !route.forwards(toSecure: security != nil) else { return try await connect(observer: observer) }
    let tunnel = try await proxy.kind.isSOCKS ? openBySOCKS() : openByCONNECT()
    deadline = end
    notify(.tunnelled)
    let connection = Connection(through: tunnel, limits: limits, observer: observer)
    if var security, let server {
      security.path = proxy.description
      try await connection.secure(by: security, as: server, port: port, timeouts: timeouts, deadline: deadline)
    }
    return connection
  }

  /// Whether an error shows that the proxy cannot be reached, does not answer in its time, or breaks the connection. A
  /// refusal by the proxy is its decision.
  func isOfProxy(_ error: TransportError) -> Bool {
    switch error {
    case .timedOut: deadline < end && loop.now < end
    case .proxy(let problem): if case .transport = problem.failure { true } else { false }
    default: false
    }
  }

  func notify(_ event: ConnectionEvent) { observer?(event, loop.kernel.now()) }

  /// Connects to the proxy itself.
  private func connect(observer: Connection.Observer?) async throws(TransportError) -> Connection {
    guard proxy.kind != .https || route.security != nil else { throw .localMisuse(.securityMissing) }
    do throws(TransportError) {
      let connection = try await Connection.open(
        host: proxy.host, port: proxy.port, security: proxy.kind == .https ? route.security : nil,
        resolver: resolver, from: local, on: loop, deadline: deadline, timeouts: timeouts, limits: limits,
        observer: observer)
      connection.recipient = .proxy
      return connection
    } catch {
      throw blaming(error)
    }
  }

  /// Wraps errors that the proxy causes. Timeouts, cancellations and local errors stay as they are.
  func blaming(_ error: TransportError) -> TransportError {
    switch error {
    case .timedOut, .cancelled, .tooManyWaiting, .localEndpointUnusable, .optionInvalid, .bodyFailed, .unavailable,
      .internalInconsistency,
      .localMisuse, .proxy:
      error
    case .resolutionFailed, .connectFailed, .connectionLost, .connectionClosed, .tls, .badResponse:
      .proxy(ProxyError(proxy, .transport(error)))
    }
  }

  // MARK: - CONNECT

  private mutating func openByCONNECT() async throws(TransportError) -> Tunnel {
    // CONNECT requests and their responses are internal: until the tunnel is open, the observer sees only the events of
    // connecting.
    let observer: Connection.Observer? = observer.map { observer in
      { event, time in if event.isOfConnecting { observer(event, time) } }
    }
    let asked = ProxyChallenge.Request(proxy: proxy, method: "CONNECT", target: authority(host, port))
    let authorizer = route.makeAuthorizer?()
    let unasked = route.authorization == nil ? authorizer?.first(for: asked) : nil
    var usesAuthorizer = unasked != nil
    var machine = TunnelMachine(authorization: route.authorization ?? unasked)
    var actions: TunnelMachine.Actions = []
    var connection = try await connect(observer: observer)
    var exchange: Exchange?
    notify(.tunnelling(to: authority(host, port), through: proxy))
    machine.start(into: &actions)
    while !actions.isEmpty {
      switch actions.removeFirst() {
      case .open:
        connection.close()
        connection = try await connect(observer: observer)
        machine.opened(into: &actions)
      case .ask(let authorization):
        let request = try request(authorization)
        do throws(TransportError) {
          let answered = try await send(request, over: connection)
          exchange = answered
          machine.answered(TunnelMachine.Response(answered), into: &actions)
        } catch {
          guard error.isEndBeforeAnswer, machine.closedUnanswered(into: &actions) else {
            throw blaming(error.tunnelling)
          }
        }
      case .drain(let bytesMax):
        guard let answered = exchange else { throw .internalInconsistency }
        if try await drain(answered, bytesMax) {
          machine.drained(into: &actions)
        } else {
          machine.drainFailed(into: &actions)
        }
      case .authorize(let challenges):
        guard let authorizer else {
          machine.authorized(nil, into: &actions)
          continue
        }
        usesAuthorizer = true
        deadline = end
        let challenge = ProxyChallenge(request: asked, values: challenges)
        machine.authorized(try await answer { await authorizer.next(after: challenge) }, into: &actions)
      case .establish:
        if usesAuthorizer, let authorizer, let info = exchange?.values(of: "proxy-authentication-info") {
          // The tunnel is open, so a timeout of this notification is ignored.
          let outcome = await LoopPromise.run(until: deadline, on: loop) { await authorizer.accepted(info: info) }
          if case .cancelled = outcome { throw .cancelled }
        }
        guard let tunnel = connection.takeTunnel() else { throw .internalInconsistency }
        return tunnel
      case .fail(let error): throw .proxy(ProxyError(proxy, .tunnel(error)))
      }
    }
    throw .internalInconsistency
  }

  private func request(_ authorization: String?) throws(TransportError) -> RequestHead {
    do throws(RequestError) {
      return try TunnelMachine.request(
        host: host, port: port, authorization: authorization, userAgent: route.userAgent)
    } catch {
      throw .proxy(ProxyError(proxy, .tunnel(.requestInvalid(error))))
    }
  }

  private func send(_ request: RequestHead, over connection: Connection) async throws(TransportError) -> Exchange {
    try await connection.cancelledWithTask { () async throws(TransportError) in
      try await connection.send(request, deadline: deadline)
    }
  }

  /// Receives a response's body and throws it away.
  ///
  /// - Returns: `false` if the body is too long, too slow or cut short. The connection cannot be reused then.
  private func drain(_ exchange: Exchange, _ bytesMax: Int) async throws(TransportError) -> Bool {
    if case .length(let count) = exchange.head.framing, count > bytesMax { return false }
    let connection = exchange.connection
    connection.channel?.setDeadline(min(deadline, loop.now.advanced(by: Exchange.drainTimeMax)))
    var left = bytesMax
    do throws(TransportError) {
      try await connection.cancelledWithTask { () async throws(TransportError) in
        while left >= 0, try await exchange.receiveData({ left -= $0.count }) {}
      }
    } catch {
      switch error {
      case .timedOut where deadline <= loop.now, .cancelled: throw error.tunnelling
      default: return false
      }
    }
    return left >= 0 && connection.isIdle
  }

  /// Runs a function of the authorizer on another thread.
  private func answer<Value: Sendable>(
    _ ask: @escaping @Sendable () async -> Value
  ) async throws(TransportError) -> Value {
    switch await LoopPromise.run(until: deadline, on: loop, ask) {
    case .fulfilled(let value): return value
    case .timedOut: throw .timedOut(.tunnelling)
    case .cancelled: throw .cancelled
    }
  }
}

extension TunnelMachine.Response {
  fileprivate init(_ exchange: Exchange) {
    let head = exchange.head
    self.init(
      status: head.status, reason: FieldValue.text(head.reason, in: exchange.headBytes.span),
      challenges: exchange.values(of: "proxy-authenticate"), isPersistent: head.isPersistent)
  }
}

extension Exchange {
  fileprivate func values(of name: CaseInsensitiveToken) -> [String] { head.fields.values(of: name, in: headBytes) }
}

extension TransportError {
  /// This error, with `tunnelling` as its phase.
  var tunnelling: TransportError {
    switch self {
    case .timedOut: .timedOut(.tunnelling)
    case .connectionLost(_, let error): .connectionLost(.tunnelling, error)
    default: self
    }
  }

  /// Whether the other side has closed the connection before it answered.
  fileprivate var isEndBeforeAnswer: Bool {
    switch self {
    case .connectionClosed, .connectionLost, .badResponse(.truncated(.beforeHead)): true
    default: false
    }
  }
}

extension ConnectionEvent {
  fileprivate var isOfConnecting: Bool {
    switch self {
    case .resolving, .resolved, .connecting, .connectFailed, .connected, .securing, .secured: true
    default: false
    }
  }
}
