import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport

/// A session's part of the transport: its loop, its pool, and the ways to its servers.
final class SessionEngine: @unchecked Sendable {
  let loop: ClientLoop
  let pool: Pool
  /// The loop's.
  let clocks: LoadClocks
  /// Who carries out the session's tasks.
  let crew: Crew
  private let held: LoopGroup.Held
  private let tls: TLSProvider
  private let proxies: ProxySettings?
  /// Why there is no way to know the proxies: every load fails with it.
  private let proxyFailure: String?
  /// The loop's.
  private var ways: [Key: Way] = [:]
  /// Those that nobody has gone since `ways` was begun anew.
  private var olderWays: [Key: Way] = [:]
  private var lastKey: Key?
  private var lastWay: Way?
  /// The latest way through a proxy that makes the requests itself, of those that no task's delegate decides about. Its connections,
  /// and the proxy's challenges on them, serve all origins. The loop's.
  private var forwarding: Way?
  /// How many loads have been given to the crew and do not run yet. The loop's.
  var startingCount = 0
  /// Where the last request went.
  var lastTarget: LoadTarget?

  private struct Key: Equatable, Hashable {
    var origin: LoadTarget.Origin
    /// The decider's identity. An object made later may have the same one: `Way.isDecided(by:)` tells them apart.
    var decider: ObjectIdentifier?
    var trafficClass: UInt8

    init(_ target: LoadTarget, _ decider: (any URLSessionTaskDelegate)?, _ trafficClass: UInt8) {
      origin = target.origin
      self.decider = decider.map(ObjectIdentifier.init)
      self.trafficClass = trafficClass
    }
  }

  /// How to get to an origin.
  final class Way {
    let endpoint: Endpoint
    /// The router of the connections' challenges, or `nil` if the session has no delegate that could answer one.
    let challenges: SessionChallenges?
    /// What the requests on it have in common.
    let knownFields = KnownFields()
    /// Nil: straight to the origin.
    let proxy: Proxy?

    /// Whether the connections belong to the tasks of this very delegate; `nil` stands for the session's delegate.
    func isDecided(by decider: (any URLSessionTaskDelegate)?) -> Bool {
      guard let decider, let challenges else { return true }
      return challenges.decider === decider
    }

    init(_ endpoint: Endpoint, _ challenges: SessionChallenges?) {
      self.endpoint = endpoint
      self.challenges = challenges
      proxy = endpoint.route.proxy?.proxy
    }

    /// The proxy that requests go to in place of the host, if they do.
    func forwarder(toSecure isSecure: Bool) -> Proxy? { proxy?.forwards(toSecure: isSecure) == true ? proxy : nil }
  }

  /// A session that has met twice as many servers forgets how it got to those that it has not gone to for long, and looks
  /// again: not a limit of its use.
  private static let waysMax = 500

  init(_ configuration: URLSessionConfiguration) throws(Errno) {
    let storage = configuration.storage
    held = try LoopGroup.shared.take()
    loop = held.loop
    crew = Crew(on: held.loop)
    clocks = LoadClocks(on: held.loop)
    var options = Pool.Options()
    options.limits.perEndpointMax = max(1, storage.maximumConnectionsPerHost)
    options.limits.totalMax = max(options.limits.totalMax, options.limits.perEndpointMax)
    options.limits.pipelineDepth = Self.pipelineDepth
    // The task's own times count. A server that takes connections and says nothing may not keep the host's places for as
    // long as tasks may take at all: a week by default.
    options.dialMax = max(options.dialMax, Duration(interval: storage.timeoutForRequest) ?? .seconds(1 << 32))
    pool = Pool(on: loop, options: options)
    tls = TLSProvider(storage)
    do {
      proxies = try SessionProxies.settings(storage.connectionProxyDictionary)
      proxyFailure = nil
    } catch {
      proxies = nil
      proxyFailure = "\(error)"
    }
  }

  /// How many requests may wait on a connection for their answers.
  private static let pipelineDepth = 8

  /// Returns the task's own delegate if it may decide about a connection to a target. Connections that it decides about belong to
  /// the tasks of that very delegate and to no others. All other connections belong to the session: its delegate decides; without
  /// one the default handling applies.
  func decider(of task: URLSessionTask, for target: LoadTarget, _ core: SessionCore) -> (any URLSessionTaskDelegate)? {
    // Without TLS and a proxy a connection asks nothing.
    guard target.isSecure || proxies != nil, task.isKnown, let own = task.read({ $0.delegate }),
      own !== core.delegate, AsyncForms.mayBe(.challenge, in: own)
    else { return nil }
    return own
  }

  /// The way to a target, if it has been gone before. On the loop.
  ///
  /// - Parameters:
  ///   - decider: The task's own delegate, if it may decide about the connection.
  ///   - trafficClass: The mark of its packets: connections with different ones are different.
  func knownWay(to target: LoadTarget, decider: (any URLSessionTaskDelegate)?, trafficClass: UInt8) -> Way? {
    if let lastKey, let lastWay, lastKey.decider == decider.map(ObjectIdentifier.init),
      lastKey.trafficClass == trafficClass, lastKey.origin.isOrigin(of: target), lastWay.isDecided(by: decider)
    {
      return lastWay
    }
    let key = Key(target, decider, trafficClass)
    guard let way = ways[key] ?? olderWays[key], way.isDecided(by: decider) else { return nil }
    remember(way, key)
    return way
  }

  private func remember(_ way: Way, _ key: Key) {
    lastKey = key
    lastWay = way
    guard ways[key] !== way else { return }
    if ways.count >= Self.waysMax { (ways, olderWays) = ([:], ways) }
    ways[key] = way
  }

  /// The way to a target that has not been gone before. On the loop.
  func makeWay(
    to target: LoadTarget, of core: SessionCore, decider: (any URLSessionTaskDelegate)?, trafficClass: UInt8
  ) async throws(URLError) -> Way {
    let way = try await newWay(to: target.origin, of: core, decider: decider, trafficClass: trafficClass)
    // Another load may have made it meanwhile.
    if let first = knownWay(to: target, decider: decider, trafficClass: trafficClass) { return first }
    remember(way, Key(target, decider, trafficClass))
    return way
  }

  private func newWay(
    to origin: LoadTarget.Origin, of core: SessionCore, decider: (any URLSessionTaskDelegate)?, trafficClass: UInt8
  ) async throws(URLError) -> Way {
    if let proxyFailure { throw URLError.make(.cannotConnectToHost, proxyFailure) }
    let challenges = SessionChallenges(core, decider: decider)
    var route = Route(host: origin.host, port: origin.port)
    if trafficClass != 0 { route.local = LocalEndpoint(trafficClass: trafficClass) }
    if origin.isSecure {
      route.security = asking(challenges, origin.host, origin.port, try await tls.security())
    }
    if let proxy = proxies?.proxy(toHost: origin.host, port: origin.port, isSecure: origin.isSecure) {
      let isForwarded = proxy.forwards(toSecure: origin.isSecure)
      if isForwarded, decider == nil, let forwarding, forwarding.proxy == proxy,
        forwarding.endpoint.route.local == route.local
      {
        return Way(forwarding.endpoint, forwarding.challenges)
      }
      var way = ProxyRoute(proxy)
      if proxy.kind == .https {
        way.security = asking(challenges, proxy.host, proxy.port, try await tls.security())
      }
      way.userAgent = RequestComposer.userAgent
      way.authorization = way.authorization ?? core.composer.proxyAuthorization
      if !isForwarded, !proxy.kind.isSOCKS {
        way.makeAuthorizer = { TunnelTalk(by: challenges) }
      }
      route.proxy = way
    }
    // A connection to the origin itself, without TLS, asks nothing.
    let asksNothing = route.security == nil && route.proxy == nil
    let way = Way(pool.endpoint(for: route), asksNothing || !challenges.asksDelegate ? nil : challenges)
    if decider == nil, way.forwarder(toSecure: origin.isSecure) != nil { forwarding = way }
    return way
  }

  private func asking(
    _ challenges: SessionChallenges, _ host: String, _ port: UInt16, _ security: Security
  ) -> Security {
    var security = security
    if challenges.asksDelegate { security.decideTrust = { await challenges.decide($0, port: Int(port)) } }
    security.provideIdentity = { await challenges.identity(forHost: host, port: Int(port), issuers: $0) }
    return security
  }

  /// From any thread. What runs ends by itself.
  func shutDown() {
    crew.dismiss()
    loop.post { [self] in
      ways = [:]
      olderWays = [:]
      lastWay = nil
      lastKey = nil
      forwarding = nil
      lastTarget = nil
      clocks.stopTimer()
      pool.shutDown()
    }
  }

  /// What follows is to get new connections.
  func renewConnections(_ completion: @escaping @Sendable () -> Void) {
    loop.post { [self] in
      pool.renewConnections()
      completion()
    }
  }
}
