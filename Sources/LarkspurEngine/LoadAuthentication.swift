import LarkspurHTTP
import LarkspurTransport

/// A load's challenges by 401 and 407, and the credentials that its requests carry: for one origin, and for the proxy that
/// forwards requests to it.
package struct LoadAuthentication<Source: CredentialSource> {
  package typealias Flow = CredentialFlow<Source>

  /// The authentication at the origin or at the proxy.
  private struct Side {
    var flow: Flow?
    /// The value of the authorization field that the request carries.
    var value: String?

    /// Whether there has been no challenge and no answer.
    var isOpen: Bool { flow == nil && value == nil }
  }

  private var origin = Side()
  private var proxy = Side()

  package init() {}

  /// Whether there has been no challenge and no answer.
  package var isOpen: Bool { origin.isOpen && proxy.isOpen }

  private subscript(role: AuthenticationTarget.Role) -> Side {
    get {
      switch role {
      case .origin: origin
      case .proxy: proxy
      }
    }
    set {
      switch role {
      case .origin: origin = newValue
      case .proxy: proxy = newValue
      }
    }
  }

  /// Adds the credentials that a request carries.
  ///
  /// - Parameters:
  ///   - isBlank: Whether no target has accepted a credential, so that no request carries one before it is challenged.
  ///   - hasOwn: Whether the program has set `Authorization` itself. That counts until the server refuses it.
  ///   - isForwarded: Whether a proxy forwards the request.
  ///   - makeFlow: Creates the flow for a target, if the target may get credentials.
  package mutating func prepare(
    _ additions: inout RequestComposer.AdditionalFields, isBlank: Bool, hasOwn: Bool, isForwarded: Bool,
    _ makeFlow: (AuthenticationTarget.Role) -> Flow?
  ) {
    additions.authorization = origin.value
    additions.proxyAuthorization = proxy.value ?? additions.proxyAuthorization
    if !isBlank, !hasOwn, origin.isOpen, var flow = makeFlow(.origin) {
      additions.authorization = flow.preemptiveValue()
      origin.flow = flow
    }
    if !isBlank, isForwarded, proxy.isOpen, var flow = makeFlow(.proxy) {
      additions.proxyAuthorization = flow.preemptiveValue() ?? additions.proxyAuthorization
      proxy.flow = flow
    }
    if additions.authorization != nil { additions.authorizationIdentity = origin.flow?.authorizationIdentity }
  }

  /// Finds credentials for the challenges of a response.
  ///
  /// - Parameter values: Returns the values of the response's fields with a name.
  /// - Returns: The next step, or `nil` if the response demands nothing that the load can give. A question is answered
  ///   by `replied`.
  package mutating func challenged(
    status: Int, values: (String) -> [String], isForwarded: Bool, canHashBody: Bool,
    _ makeFlow: (AuthenticationTarget.Role) -> Flow?
  ) -> Flow.Step? {
    let role = Self.role(ofStatus: status)
    // A 407 that comes through a tunnel is not the proxy's: an origin may not ask for the proxy's credentials.
    guard role == .origin || isForwarded, var flow = self[role].flow ?? makeFlow(role) else { return nil }
    let fields = values(role == .proxy ? "Proxy-Authenticate" : "WWW-Authenticate")
    let step = flow.challenged(fields, canHashBody: canHashBody)
    return keep(flow, step, role)
  }

  /// Takes the program's reply to the question about a response.
  package mutating func replied(_ reply: Flow.Reply, status: Int) -> Flow.Step? {
    let role = Self.role(ofStatus: status)
    guard var flow = self[role].flow else { return nil }
    let step = flow.replied(reply)
    return keep(flow, step, role)
  }

  private static func role(ofStatus status: Int) -> AuthenticationTarget.Role { status == 407 ? .proxy : .origin }

  private mutating func keep(_ flow: Flow, _ step: Flow.Step, _ role: AuthenticationTarget.Role) -> Flow.Step {
    self[role].flow = flow
    if case .send(let value) = step { self[role].value = value }
    return step
  }

  /// Handles a response: the server or the proxy that does not challenge the request has let it pass.
  ///
  /// - Parameter values: Returns the values of the response's fields with a name.
  /// - Returns: The closures of `CredentialFlow.accepted`.
  package mutating func accepted(status: Int, values: (String) -> [String]) -> [@Sendable () -> Void] {
    let ofOrigin = status == 401 ? nil : origin.flow?.accepted(info: values("Authentication-Info"))
    let ofProxy = status == 407 ? nil : proxy.flow?.accepted(info: values("Proxy-Authentication-Info"))
    return [ofOrigin, ofProxy].compactMap(\.self)
  }
}

extension AuthenticationTarget {
  package init(proxy: Proxy) {
    self.init(.proxy, scheme: proxy.kind.rawValue, host: proxy.host, port: Int(proxy.port))
  }
}

/// The `Proxy-Authorization` values for the CONNECT requests of one tunnel. The tunnel calls the methods one at a time, as it
/// does for every `TunnelAuthorizer`.
package final class FlowTunnelAuthorizer<Source: CredentialSource>: TunnelAuthorizer, @unchecked Sendable {
  private let makeSource: @Sendable () -> Source
  private let ask: @Sendable (Source.Question) async -> Source.Reply
  private var flow: CredentialFlow<Source>?

  package init(
    from makeSource: @escaping @Sendable () -> Source, ask: @escaping @Sendable (Source.Question) async -> Source.Reply
  ) {
    self.makeSource = makeSource
    self.ask = ask
  }

  private func makeFlow(about request: ProxyChallenge.Request) -> CredentialFlow<Source> {
    CredentialFlow(
      with: AuthenticationTarget(proxy: request.proxy),
      about: AuthenticatedRequest(method: request.method, target: request.target, to: .proxy), from: makeSource())
  }

  public func first(for request: ProxyChallenge.Request) -> String? {
    flow = makeFlow(about: request)
    return flow?.preemptiveValue()
  }

  public func next(after challenge: ProxyChallenge) async -> String? {
    var flow = flow ?? makeFlow(about: challenge.request)
    var step = flow.challenged(challenge.values, canHashBody: true)
    while case .ask(let question) = step { step = flow.replied(await ask(question)) }
    self.flow = flow
    if case .send(let value) = step { return value }
    return nil
  }

  public func accepted(info: [String]) { flow?.accepted(info: info)?() }
}
