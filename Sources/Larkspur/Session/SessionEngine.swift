import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// A session's part of the transport: its loop, its pool, and the resolved routes to its servers.
final class SessionEngine: @unchecked Sendable {
  let loop: ClientLoop
  let pool: Pool
  let observer: (any HTTPEventObserver)?
  /// The clocks of the session's loads. They belong to the loop.
  let clocks: LoadClocks
  /// The pool of tasks that carry out loads which have to wait for more than the server.
  let taskPool: TaskPool
  /// `nil` if the configuration sets a loop.
  private let lease: LoopGroup.Lease?
  private let tls: TLSProvider
  private let hostOverrides: HostOverrides
  /// The local end of all connections, or `nil` to let the kernel choose.
  private let local: LocalEndpoint?
  private let proxies: ProxySettings?
  /// The reason why the proxies are not known or an option cannot be used, or `nil`. If it is set, every load that needs
  /// a connection fails with it.
  private let failure: URLError?
  /// The resolved routes. They belong to the loop.
  private var routes: [Key: ResolvedRoute] = [:]
  /// The routes that have not been used since `routes` was emptied.
  private var olderRoutes: [Key: ResolvedRoute] = [:]
  private var latestRouteKey: Key?
  private var latestRoute: ResolvedRoute?
  /// The latest route through a forwarding proxy, among those that no task's delegate decides about. Its connections,
  /// and the proxy's challenges on them, serve all origins. It belongs to the loop.
  private var forwarding: ResolvedRoute?
  /// The number of loads that have been given to `taskPool` and have not started. The count belongs to the loop.
  var startingCount = 0
  /// The target of the latest request.
  var latestTarget: LoadTarget?

  /// What a request needs of its connection.
  struct RouteNeeds: Hashable {
    /// The mark of the connection's packets. Requests with different marks use different connections.
    var trafficClass: UInt8 = 0
    /// Whether a proxy has to open a tunnel, also for a host without TLS.
    var tunnels = false
  }

  private struct Key: Equatable, Hashable {
    var origin: LoadTarget.Origin
    /// The identity of the decider. A later object may have an equal one: `ResolvedRoute.isDecided(by:)` distinguishes
    /// the two.
    var decider: ObjectIdentifier?
    var needs: RouteNeeds

    init(_ target: LoadTarget, _ decider: (any URLSessionTaskDelegate)?, _ needs: RouteNeeds) {
      origin = target.origin
      self.decider = decider.map(ObjectIdentifier.init)
      self.needs = needs
    }
  }

  /// A resolved route to an origin.
  final class ResolvedRoute {
    let endpoint: Endpoint
    /// The router of the connections' challenges, or `nil` if the session has no delegate that could answer one.
    let challenges: ChallengeRouter?
    /// The fields that the requests on this route have in common.
    let headCache = HeadCache()
    /// The proxy, or `nil` if connections lead to the origin itself.
    let proxy: Proxy?

    /// Returns whether the connections belong to the tasks of this very delegate; `nil` stands for the session's
    /// delegate.
    func isDecided(by decider: (any URLSessionTaskDelegate)?) -> Bool {
      guard let decider, let challenges else { return true }
      return challenges.decider === decider
    }

    init(_ endpoint: Endpoint, _ challenges: ChallengeRouter?) {
      self.endpoint = endpoint
      self.challenges = challenges
      proxy = endpoint.route.proxy?.proxy
    }

    /// Returns the proxy that requests are sent to in place of the host, or `nil` if the host itself gets them.
    func forwarder(toSecure isSecure: Bool) -> Proxy? {
      endpoint.route.proxy?.forwards(toSecure: isSecure) == true ? proxy : nil
    }
  }

  /// Maximum number of routes in `routes`. At the limit they replace `olderRoutes`, so that a session keeps at most
  /// twice as many. A route that has been dropped is resolved again: this does not limit the session.
  private static let routesMax = 500

  init(_ configuration: URLSessionConfiguration) throws(Errno) {
    let storage = configuration.storage
    if let own = storage.loop {
      (lease, loop) = (nil, own)
    } else {
      let lease = try LoopGroup.shared.lease()
      (self.lease, loop) = (lease, lease.loop)
    }
    taskPool = TaskPool(on: loop)
    clocks = LoadClocks(on: loop)
    var options = Pool.Options()
    options.limits.perEndpointMax = max(1, storage.settings.maximumConnectionsPerHost)
    options.limits.totalMax = max(options.limits.totalMax, options.limits.perEndpointMax)
    options.limits.pipelineDepth = Self.pipelineDepth
    // The task's own timeouts apply, so this limit is no shorter than the request's. The resource's timeout, a week by
    // default, would let a server that accepts connections and sends nothing occupy all connections of its host for too
    // long.
    options.dialMax =
      storage.settings.timeoutForConnection?.asTimeout.flatMap(Duration.init(interval:))
      ?? max(options.dialMax, Duration(interval: storage.settings.timeoutForRequest) ?? .seconds(1 << 32))
    hostOverrides = storage.settings.hostOverrides
    local = .endpoint(
      storage.settings.localEndpoint, trafficClass: 0, usesMultipath: storage.settings.multipathServiceType != .none)
    if storage.addressFamily != nil || !hostOverrides.isEmpty {
      options.resolver = Resolver(overrides: hostOverrides, family: storage.addressFamily)
    }
    options.timeouts = storage.settings.timeouts
    options.rates = storage.settings.rateLimits
    observer = storage.eventObserver
    options.observer = observer.map { PoolObserver($0) }
    pool = Pool(on: loop, options: options)
    tls = TLSProvider(storage)
    var proxies: ProxySettings?
    do {
      proxies = try SessionProxies.settings(storage)
      try options.check()
      failure = nil
    } catch {
      failure = (error as? TransportError).map { URLError($0, url: nil) } ?? .make(.cannotConnectToHost, "\(error)")
    }
    self.proxies = proxies
  }

  /// Maximum number of requests on a connection that wait for their responses.
  private static let pipelineDepth = 8

  /// Returns the task's own delegate if it may decide about a connection to a target. Connections that it decides about
  /// belong to the tasks of that very delegate and to no others. All other connections belong to the session: its
  /// delegate decides; without one the default handling applies.
  func decider(of task: URLSessionTask, for target: LoadTarget, _ core: SessionCore) -> (any URLSessionTaskDelegate)? {
    // A connection without TLS and without a proxy has no challenges.
    guard target.isSecure || proxies != nil, task.owner.isKnown,
      let own = task.owner.read({ $0.delegate }),
      own !== core.delegate, ImplementedAsyncMethods.mayBe(.challenge, in: own)
    else { return nil }
    return own
  }

  /// Returns the route to a target if it has been resolved before. Runs on the loop.
  ///
  /// - Parameters:
  ///   - decider: The task's own delegate, if it may decide about the connection.
  func cachedRoute(to target: LoadTarget, decider: (any URLSessionTaskDelegate)?, _ needs: RouteNeeds) -> ResolvedRoute?
  {
    if let latestRouteKey, let latestRoute, latestRouteKey.decider == decider.map(ObjectIdentifier.init),
      latestRouteKey.needs == needs, latestRouteKey.origin.isOrigin(of: target), latestRoute.isDecided(by: decider)
    {
      return latestRoute
    }
    let key = Key(target, decider, needs)
    guard let route = routes[key] ?? olderRoutes[key], route.isDecided(by: decider) else { return nil }
    remember(route, key)
    return route
  }

  private func remember(_ route: ResolvedRoute, _ key: Key) {
    latestRouteKey = key
    latestRoute = route
    guard routes[key] !== route else { return }
    if routes.count >= Self.routesMax { (routes, olderRoutes) = ([:], routes) }
    routes[key] = route
  }

  /// Resolves the route to a target that has no route yet. Runs on the loop.
  func resolveRoute(
    to target: LoadTarget, of core: SessionCore, decider: (any URLSessionTaskDelegate)?, _ needs: RouteNeeds
  ) async throws(URLError) -> ResolvedRoute {
    let route = try await newRoute(to: target.origin, of: core, decider: decider, needs)
    // Another load may have resolved the route meanwhile.
    if let first = cachedRoute(to: target, decider: decider, needs) { return first }
    remember(route, Key(target, decider, needs))
    return route
  }

  private func newRoute(
    to origin: LoadTarget.Origin, of core: SessionCore, decider: (any URLSessionTaskDelegate)?, _ needs: RouteNeeds
  ) async throws(URLError) -> ResolvedRoute {
    if let failure { throw failure }
    let challenges = ChallengeRouter(core, decider: decider)
    var route = try overriddenRoute(toHost: origin.host, port: origin.port)
    if needs.trafficClass != 0 {
      route.local = .endpoint(route.local, trafficClass: needs.trafficClass, usesMultipath: false)
    }
    if origin.isSecure {
      route.security = try await security(toHost: origin.host, port: origin.port, asking: challenges)
    }
    if let rule = route.proxyRule(of: proxies, isSecure: origin.isSecure) {
      let proxy = rule.proxy
      let isForwarded = !needs.tunnels && route.isForwarded(by: rule, isSecure: origin.isSecure)
      if isForwarded, decider == nil, let forwarding, forwarding.proxy == proxy,
        forwarding.endpoint.route.local == route.local
      {
        return ResolvedRoute(forwarding.endpoint, forwarding.challenges)
      }
      route.proxy = try await proxyRoute(rule, isForwarded: isForwarded, of: core, asking: challenges)
    }
    // A connection to the origin itself, without TLS, has no challenges.
    let asksNothing = route.security == nil && route.proxy == nil
    let resolved = ResolvedRoute(pool.endpoint(for: route), asksNothing || !challenges.asksDelegate ? nil : challenges)
    if decider == nil, resolved.forwarder(toSecure: origin.isSecure) != nil { forwarding = resolved }
    return resolved
  }

  /// Returns the route from the session's local endpoint to a host or to its override, without TLS and proxy.
  private func overriddenRoute(toHost host: String, port: UInt16) throws(URLError) -> Route {
    var route = Route(host: host, port: port)
    route.local = local
    do throws(TransportError) { try route.apply(hostOverrides) } catch { throw URLError(error, url: nil) }
    return route
  }

  private func proxyRoute(
    _ rule: ProxyRule, isForwarded: Bool, of core: SessionCore, asking challenges: ChallengeRouter
  ) async throws(URLError) -> ProxyRoute {
    let proxy = rule.proxy
    var route = ProxyRoute(proxy)
    route.alwaysTunnels = !isForwarded
    route.allowsFailover = rule.allowsFailover
    if proxy.kind == .https {
      route.security = try await security(toHost: proxy.host, port: proxy.port, asking: challenges)
    }
    route.userAgent = core.composer.tunnelUserAgent
    route.authorization = route.authorization ?? core.composer.proxyAuthorization
    if !isForwarded, !proxy.kind.isSOCKS {
      route.makeAuthorizer = {
        FlowTunnelAuthorizer(from: { challenges.tunnelCredentials }) {
          await challenges.ask($0.challenge(response: nil))
        }
      }
    }
    return route
  }

  /// Returns the router of the challenges of a stream's connection.
  func streamChallenges(of task: URLSessionTask, _ core: SessionCore) -> ChallengeRouter {
    let own = task.read { $0.delegate }
    let isDecider = own !== core.delegate && own.map { ImplementedAsyncMethods.mayBe(.challenge, in: $0) } == true
    return ChallengeRouter(core, decider: isDecider ? own : nil)
  }

  /// Returns the route of a stream without TLS.
  func streamRoute(
    toHost host: String, port: UInt16, of core: SessionCore, asking challenges: ChallengeRouter
  ) async throws(URLError) -> Route {
    if let failure { throw failure }
    var route = try overriddenRoute(toHost: host, port: port)
    if let rule = route.proxyRule(of: proxies, isSecure: true) {
      route.proxy = try await proxyRoute(rule, isForwarded: false, of: core, asking: challenges)
    }
    return route
  }

  /// Returns the way to use TLS with a host: the session's settings, and the delegate's answers.
  func security(
    toHost host: String, port: UInt16, asking challenges: ChallengeRouter
  ) async throws(URLError) -> Security {
    var security: Security
    do throws(TLSError) { security = try await tls.security() } catch { throw URLError(.tls(error), url: nil) }
    if challenges.asksDelegate { security.decideTrust = { await challenges.decide($0, port: Int(port)) } }
    security.provideIdentity = { await challenges.identity(forHost: host, port: Int(port), issuers: $0) }
    return security
  }

  /// Shuts the engine down. From any thread. Exchanges that are running end by themselves.
  func shutDown() {
    taskPool.shutDown()
    loop.post { [self] in
      routes = [:]
      olderRoutes = [:]
      latestRoute = nil
      latestRouteKey = nil
      forwarding = nil
      latestTarget = nil
      clocks.stopTimer()
      pool.shutDown()
    }
  }

  /// Makes all later requests use new connections.
  func renewConnections(_ completion: @escaping @Sendable () -> Void) {
    loop.post { [self] in
      pool.renewConnections()
      completion()
    }
  }
}
