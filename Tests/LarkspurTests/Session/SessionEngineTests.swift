import Foundation
import LarkspurHTTP
import LarkspurTransport
import Testing

@testable import Larkspur

@Suite struct SessionEngineTests {
  /// Origins behind a forwarding proxy share an endpoint, since facts about the proxy, such as its HTTP version, hold
  /// for all of them.
  @Test func originsBehindAForwardingProxyShareAnEndpoint() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.connectionProxyDictionary = ["HTTPEnable": 1, "HTTPProxy": "proxy.example", "HTTPPort": 3128]
    let session = URLSession(configuration: configuration, delegate: SilentDelegate(), delegateQueue: nil)
    let engine = try SessionEngine(configuration)
    let core = session.core
    let targets = try ["http://a.example/", "http://b.example/", "https://a.example/"].map { text in
      try LoadTarget(#require(URL(string: text)))
    }
    try await engine.loop.run {
      var ways: [SessionEngine.ResolvedRoute] = []
      for target in targets {
        ways.append(try await engine.resolveRoute(to: target, of: core, decider: nil, SessionEngine.RouteNeeds()))
      }
      #expect(ways[0].endpoint === ways[1].endpoint && ways[0].challenges === ways[1].challenges)
      #expect(ways[0].headCache !== ways[1].headCache && ways[0].endpoint !== ways[2].endpoint)
      let marked = try await engine.resolveRoute(
        to: targets[0], of: core, decider: nil, SessionEngine.RouteNeeds(trafficClass: 8))
      let own = try await engine.resolveRoute(
        to: targets[1], of: core, decider: SilentDelegate(), SessionEngine.RouteNeeds())
      #expect(marked.endpoint !== ways[0].endpoint && own.challenges !== ways[0].challenges)
    }
    engine.shutDown()
    session.invalidateAndCancel()
  }

  private final class SilentDelegate: NSObject, URLSessionDataDelegate {}

  /// The cache of resolved routes drops those that have not been used for long, and keeps a route in use: without the
  /// route, its idle connections would not be found any more.
  @Test func waysThatAreGoneAreKept() async throws {
    let session = URLSession(configuration: .ephemeral)
    let engine = try SessionEngine(session.configuration)
    let targets = try (0..<3_000).map { number in
      try LoadTarget(#require(URL(string: "https://\(number).example/")))
    }
    let core = session.core
    try await engine.loop.run {
      func way(to number: Int) -> SessionEngine.ResolvedRoute? {
        engine.cachedRoute(to: targets[number], decider: nil, SessionEngine.RouteNeeds())
      }
      let first = try await engine.resolveRoute(to: targets[0], of: core, decider: nil, SessionEngine.RouteNeeds())
      for number in 1..<targets.count {
        #expect(way(to: number) == nil)
        _ = try await engine.resolveRoute(to: targets[number], of: core, decider: nil, SessionEngine.RouteNeeds())
        if number.isMultiple(of: 400) { #expect(way(to: 0) === first) }
      }
      #expect(way(to: 0) === first && way(to: 1) == nil && way(to: 2_900) != nil)
    }
    engine.shutDown()
  }
}
