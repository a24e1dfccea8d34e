import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTransport
import Synchronization

/// A session's part of the transport: its loop, its pool, and the ways to its servers.
final class SessionEngine: @unchecked Sendable {
  let loop: ClientLoop
  let pool: Pool
  private let held: LoopGroup.Held
  private let tls: TLSProvider
  private let proxies: ProxySettings?
  /// Why there is no way to know the proxies: every load fails with it.
  private let proxyFailure: String?
  private let socketPath: String?
  /// The loop's.
  private var endpoints: [LoadTarget.Origin: Endpoint] = [:]
  private var lastOrigin: LoadTarget.Origin?
  private var lastEndpoint: Endpoint?

  /// A session that has met so many servers forgets how it got to them, and looks again: not a limit of its use.
  private static let endpointsMax = 1_000

  init(_ configuration: URLSessionConfiguration) throws(Errno) {
    let storage = configuration.storage
    held = try LoopGroup.shared.take()
    loop = held.loop
    var options = Pool.Options()
    options.limits.perEndpointMax = max(1, storage.maximumConnectionsPerHost)
    options.limits.totalMax = max(options.limits.totalMax, options.limits.perEndpointMax)
    if storage.shouldUsePipelining { options.limits.pipelineDepth = Self.pipelineDepth }
    // The task's own times count.
    options.dialMax = Duration(interval: storage.timeoutIntervalForResource) ?? .seconds(Int64.max)
    pool = Pool(on: loop, options: options)
    tls = TLSProvider(storage)
    socketPath = storage.socketPath
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

  /// The way to a target. On the loop.
  func endpoint(for target: LoadTarget) async throws(URLError) -> Endpoint {
    let origin = target.origin
    if origin == lastOrigin, let lastEndpoint { return lastEndpoint }
    if let endpoint = endpoints[origin] {
      lastOrigin = origin
      lastEndpoint = endpoint
      return endpoint
    }
    if let proxyFailure { throw URLError.make(.cannotConnectToHost, proxyFailure) }
    var route = Route(host: origin.host, port: origin.port)
    if origin.isSecure { route.security = try await tls.security() }
    route.socketPath = socketPath
    if socketPath == nil, let proxy = proxies?.proxy(toHost: origin.host, port: origin.port, isSecure: origin.isSecure)
    {
      var way = ProxyRoute(proxy)
      if proxy.kind == .https { way.security = try await tls.security() }
      way.userAgent = RequestComposer.userAgent
      route.proxy = way
    }
    let endpoint = pool.endpoint(for: route)
    if endpoints.count >= Self.endpointsMax { endpoints = [:] }
    endpoints[origin] = endpoint
    lastOrigin = origin
    lastEndpoint = endpoint
    return endpoint
  }

  /// From any thread. What runs ends by itself.
  func shutDown() {
    loop.post { [self] in
      endpoints = [:]
      lastEndpoint = nil
      lastOrigin = nil
      pool.shutDown()
    }
  }

  func closeIdleConnections(_ completion: @escaping @Sendable () -> Void) {
    loop.post { [self] in
      pool.closeIdleConnections()
      completion()
    }
  }
}
