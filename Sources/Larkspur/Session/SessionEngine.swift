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
  let clocks: TaskClocks
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
  /// How many loads have been given to the crew and do not run yet. The loop's.
  var startingCount = 0
  /// Where the last request went.
  var lastTarget: LoadTarget?

  private struct Key: Equatable, Hashable {
    var origin: LoadTarget.Origin
    var asksDelegate: Bool
    var trafficClass: UInt8
  }

  /// How to get to an origin.
  final class Way {
    let endpoint: Endpoint
    /// Nil: there is nobody to be asked.
    let challenges: SessionChallenges?
    /// What the requests on it have in common.
    let knownFields = KnownFields()
    /// Nil: straight to the origin.
    let proxy: Proxy?

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
    clocks = TaskClocks(on: held.loop)
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

  /// The way to a target, for a task, if it has been gone before. On the loop.
  ///
  /// - Parameters:
  ///   - asksDelegate: Whether somebody is to be asked about the server's certificate. Those who are asked do not share
  ///     connections with those who are not.
  ///   - trafficClass: The mark of its packets: connections with different ones are different.
  func knownWay(to target: LoadTarget, asksDelegate: Bool, trafficClass: UInt8) -> Way? {
    if let lastKey, let lastWay, lastKey.asksDelegate == asksDelegate, lastKey.trafficClass == trafficClass,
      lastKey.origin.isOrigin(of: target)
    {
      return lastWay
    }
    let key = Key(origin: target.origin, asksDelegate: asksDelegate, trafficClass: trafficClass)
    guard let way = ways[key] ?? olderWays[key] else { return nil }
    remember(way, key)
    return way
  }

  private func remember(_ way: Way, _ key: Key) {
    lastKey = key
    lastWay = way
    guard ways[key] == nil else { return }
    if ways.count >= Self.waysMax { (ways, olderWays) = ([:], ways) }
    ways[key] = way
  }

  /// The way to a target that has not been gone before. On the loop.
  func makeWay(
    to target: LoadTarget, of core: SessionCore, asksDelegate: Bool, trafficClass: UInt8
  ) async throws(URLError) -> Way {
    let key = Key(origin: target.origin, asksDelegate: asksDelegate, trafficClass: trafficClass)
    let way = try await makeWay(key, of: core)
    // Somebody else may have made it meanwhile.
    let first = ways[key] ?? olderWays[key] ?? way
    remember(first, key)
    return first
  }

  private func makeWay(_ key: Key, of core: SessionCore) async throws(URLError) -> Way {
    let origin = key.origin
    if let proxyFailure { throw URLError.make(.cannotConnectToHost, proxyFailure) }
    let challenges = SessionChallenges(core, asksDelegate: key.asksDelegate)
    var route = Route(host: origin.host, port: origin.port)
    if key.trafficClass != 0 { route.local = LocalEndpoint(trafficClass: key.trafficClass) }
    if origin.isSecure {
      route.security = asking(challenges, origin.host, origin.port, try await tls.security())
    }
    if let proxy = proxies?.proxy(toHost: origin.host, port: origin.port, isSecure: origin.isSecure) {
      var way = ProxyRoute(proxy)
      if proxy.kind == .https {
        way.security = asking(challenges, proxy.host, proxy.port, try await tls.security())
      }
      way.userAgent = RequestComposer.userAgent
      way.authorization = way.authorization ?? core.composer.proxyAuthorization
      if !proxy.forwards(toSecure: origin.isSecure), !proxy.kind.isSOCKS {
        way.makeAuthorizer = { TunnelTalk(by: challenges) }
      }
      route.proxy = way
    }
    // A connection to the origin itself, without TLS, asks nothing.
    let asksNothing = route.security == nil && route.proxy == nil
    return Way(pool.endpoint(for: route), asksNothing || !key.asksDelegate ? nil : challenges)
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
