import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// A client's part of the transport: its loop, its pool, the routes to its servers, and its cookies. The state belongs to
/// the loop.
final class ClientEngine: @unchecked Sendable {
  let options: HTTPClient.Options
  let loop: ClientLoop
  let pool: Pool
  let composer: RequestComposer
  private let lease: LoopGroup.Lease?
  private let tls: TLSProvider
  private let proxies: ProxySettings?
  private var routes: [RouteKey: ClientRoute] = [:]
  private var jar = CookieJar()
  let credentials = ClientCredentials()
  /// Whether no interceptor waits or blocks.
  let interceptsQuickly: Bool
  let observer: (any HTTPEventObserver)?
  /// The number of loads, counted for the observer only.
  var loadsSeen = 0
  /// The target of the latest request.
  var latestTarget: LoadTarget?

  /// Maximum number of routes. At the limit all are dropped; a route that is needed again is made again.
  private static let routesMax = 1_000

  convenience init(_ options: HTTPClient.Options) throws(HTTPClientError) {
    let lease: LoopGroup.Lease
    do throws(Errno) {
      lease = try LoopGroup.shared.lease()
    } catch {
      throw HTTPClientError(.unavailable, "a thread could not be started: \(error)")
    }
    var poolOptions = Pool.Options()
    poolOptions.limits.perEndpointMax = max(1, options.connectionsPerHostMax)
    poolOptions.limits.totalMax = max(poolOptions.limits.totalMax, poolOptions.limits.perEndpointMax)
    poolOptions.dialMax = options.connectTimeout
    if !options.hostOverrides.isEmpty { poolOptions.resolver = Resolver(overrides: options.hostOverrides) }
    poolOptions.timeouts = options.timeouts
    // The whole time of a request is its own limit, and not one of opening a connection for it.
    poolOptions.timeouts.total = nil
    poolOptions.rates = options.rateLimits
    try self.init(options, on: lease.loop, lease, poolOptions)
  }

  /// - Parameter lease: The lease of the loop, or `nil` if the loop outlives the client.
  init(
    _ options: HTTPClient.Options, on loop: ClientLoop, _ lease: LoopGroup.Lease?, _ poolOptions: Pool.Options
  ) throws(HTTPClientError) {
    self.options = options
    interceptsQuickly = options.interceptors.allSatisfy { $0 is any QuickInterceptor }
    self.lease = lease
    self.loop = loop
    do throws(TransportError) {
      try poolOptions.check()
    } catch {
      throw HTTPClientError(.invalidOption, "\(error)")
    }
    observer = options.eventObserver
    var poolOptions = poolOptions
    poolOptions.observer = observer.map { PoolObserver($0) }
    pool = Pool(on: loop, options: poolOptions)
    composer = RequestComposer(
      additional: options.fields,
      program: [Field("User-Agent", RequestComposer.userAgent(ofProgram: CommandLine.arguments.first ?? ""))])
    let (configuration, fileFailed) = (options.tls, options.fileFailed)
    tls = TLSProvider(configuration, isShareable: options.isTLSStandard) { () throws(TLSError) in
      try Security(configuration, fileFailed: fileFailed)
    }
    switch options.proxy {
    case .none: proxies = nil
    case .settings(let settings): proxies = settings
    case .environment:
      do throws(ProxySettings.InvalidVariable) {
        proxies = try ProxySettings(environment: EnvironmentVariable.all)
      } catch {
        // With a broken environment the client fails visibly instead of bypassing the proxy.
        throw HTTPClientError(.invalidOption, "\(error)")
      }
    }
  }

  /// Ends the idle connections. From any thread. Exchanges that are running end by themselves.
  func shutDown() {
    loop.post { [self] in
      routes = [:]
      pool.shutDown()
    }
  }

  // MARK: - Routes

  private struct RouteKey: Hashable {
    var origin: LoadTarget.Origin
    var tunnels: Bool
  }

  /// - Parameter tunnels: Whether a proxy has to open a tunnel, because another protocol than HTTP uses the connection.
  func knownRoute(to target: LoadTarget, tunnels: Bool) -> ClientRoute? {
    routes[RouteKey(origin: target.origin, tunnels: tunnels)]
  }

  func route(to target: LoadTarget, tunnels: Bool) async throws(TransportError) -> ClientRoute {
    var route = Route(host: target.host, port: target.port)
    route.local = options.localEndpoint
    try route.apply(options.hostOverrides)
    if target.isSecure { route.security = try await security(host: target.host, port: target.port) }
    var isForwarded = false
    if let rule = route.proxyRule(of: proxies, isSecure: target.isSecure) {
      let proxy = rule.proxy
      isForwarded = !tunnels && route.isForwarded(by: rule, isSecure: target.isSecure)
      var way = ProxyRoute(proxy)
      way.alwaysTunnels = !isForwarded
      way.allowsFailover = rule.allowsFailover
      if proxy.kind == .https { way.security = try await security(host: proxy.host, port: proxy.port) }
      way.userAgent = composer.tunnelUserAgent
      way.authorization = way.authorization ?? composer.proxyAuthorization
      if options.credential != nil, !isForwarded, !proxy.kind.isSOCKS {
        let (options, credentials) = (options, credentials)
        way.makeAuthorizer = { FlowTunnelAuthorizer(from: { credentials }) { await options.reply(to: $0) } }
      }
      route.proxy = way
    }
    // Another load may have made the route meanwhile.
    if let first = knownRoute(to: target, tunnels: tunnels) { return first }
    if routes.count >= Self.routesMax { routes = [:] }
    let made = ClientRoute(pool.endpoint(for: route), isForwarded: isForwarded)
    routes[RouteKey(origin: target.origin, tunnels: tunnels)] = made
    return made
  }

  private func security(host: String, port: UInt16) async throws(TransportError) -> Security {
    var security: Security
    do throws(TLSError) { security = try await tls.security() } catch { throw .tls(error) }
    if let provide = options.provideIdentity { security.provideIdentity = { _ in await provide(host, Int(port)) } }
    return security
  }

  // MARK: - Cookies

  private func cookieRequest(_ target: LoadTarget) -> CookieRequest? {
    guard options.keepsCookies, let host = CookieHost(target.host) else { return nil }
    let path = target.path.utf8.prefix { $0 != UInt8(ascii: "?") }
    var request = CookieRequest(host: host, path: String(Substring(path)), isSecure: target.isSecure)
    request.port = Int(target.port)
    return request
  }

  func cookieField(for target: LoadTarget) -> String? {
    guard !jar.isEmpty, let request = cookieRequest(target) else { return nil }
    return jar.field(for: request, now: CookieTime(secondsSince1970: Int64(MachineClock.wallSeconds)))
  }

  func keepCookies(_ values: [String], from target: LoadTarget) {
    guard let request = cookieRequest(target) else { return }
    jar.receive(
      values, from: request, now: CookieTime(secondsSince1970: Int64(MachineClock.wallSeconds)),
      isPublicSuffix: { PublicSuffixes.system.isPublicSuffix($0) })
  }
}

/// A route to an origin, with the shared state of its requests. Belongs to the loop.
final class ClientRoute {
  let endpoint: Endpoint
  let headCache = HeadCache()
  /// Whether requests go to a proxy in place of the host.
  let isForwarded: Bool

  init(_ endpoint: Endpoint, isForwarded: Bool) {
    self.endpoint = endpoint
    self.isForwarded = isForwarded
  }

  /// The origin of a request, or the proxy that forwards the request.
  func peer(_ role: AuthenticationTarget.Role, of target: LoadTarget) -> AuthenticationTarget? {
    switch role {
    case .proxy: (isForwarded ? endpoint.route.proxy : nil).map { AuthenticationTarget(proxy: $0.proxy) }
    case .origin:
      AuthenticationTarget(
        .origin, scheme: target.isSecure ? "https" : "http", host: target.host, port: Int(target.port))
    }
  }
}
