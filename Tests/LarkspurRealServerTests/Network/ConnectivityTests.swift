import LarkspurIO
import LarkspurTransport
import Synchronization
import TestKit
import Testing

/// The connectivity monitor on a machine whose network comes and goes.
@Suite(.serialized, .timeLimit(.minutes(1)), .ownThread, .ownProcess) struct ConnectivityTests {
  let hosts: TwoHosts

  init() throws {
    hosts = try TwoHosts()
  }

  /// A monitor on the client's machine, and its changes.
  struct Watch {
    let monitor: ConnectivityMonitor
    private let observation: ConnectivityMonitor.Observation
    private let changes: AsyncStream<Connectivity>

    init(_ namespace: Namespace) throws {
      let (stream, continuation) = AsyncStream.makeStream(of: Connectivity.self)
      (monitor, observation) = try namespace.run {
        let monitor = ConnectivityMonitor()
        return (monitor, monitor.observe { continuation.yield($0) })
      }
      changes = stream
    }

    /// Waits until the condition holds. Reads the monitor's present state at each change, because the reported states
    /// may be outdated by then.
    ///
    /// - Returns: The state, or `nil` if the changes have ended.
    func wait(until isSo: (Connectivity) -> Bool) async -> Connectivity? {
      let current = monitor.current
      if isSo(current) { return current }
      for await _ in changes {
        let current = monitor.current
        if isSo(current) { return current }
      }
      return nil
    }
  }

  let server = SocketAddress.ipv4(0x0a09_0002, port: 80)
  let elsewhere = SocketAddress.ipv4(0xc633_6401, port: 80)

  @Test func aLinkGoesDownAndUp() async throws {
    let watch = try Watch(hosts.client)
    let network = try #require(await watch.wait { $0.isOnline }?.network)
    #expect(Set(network.links.values.map(\.name)) == ["lo", "cable"])
    #expect(network.primaryLink?.name == "cable" && network.primaryLink?.kind == .wired)
    #expect(watch.monitor.canReach(server))
    #expect(watch.monitor.canReach(.ipv6(high: 0xfd09 << 48, low: 2, scope: 0, port: 80)))
    #expect(watch.monitor.canReach(.unix(path: "/run/x")))

    try hosts.client.ip("link set cable down")
    #expect(await watch.wait { !$0.isOnline } != nil)
    #expect(!watch.monitor.canReach(server))
    #expect(watch.monitor.canReach(.loopback(port: 80)))

    try hosts.client.ip("link set cable up")
    #expect(await watch.wait { $0.isOnline } != nil)
    #expect(watch.monitor.canReach(server))
  }

  /// If the other end of the cable is unplugged, the link is up without a carrier.
  @Test func theCableIsPulled() async throws {
    let watch = try Watch(hosts.client)
    #expect(await watch.wait { $0.isOnline } != nil)
    try hosts.server.ip("link set cable down")
    let change = await watch.wait { !$0.isOnline }
    let link = change?.network?.links.values.first { $0.name == "cable" }
    #expect(link?.isUp == true && link?.isRunning == false)
    // The route still exists.
    #expect(!watch.monitor.canReach(server))
    try hosts.server.ip("link set cable up")
    #expect(await watch.wait { $0.isOnline } != nil)
    #expect(watch.monitor.canReach(server))
  }

  @Test func addressesAreTakenAway() async throws {
    let watch = try Watch(hosts.client)
    #expect(await watch.wait { $0.isOnline } != nil)
    try hosts.client.ip("address del 10.9.0.1/24 dev cable")
    let change = await watch.wait { connectivity in
      connectivity.network?.addresses.contains { $0.address == .ipv4(0x0a09_0001, port: 0) } == false
    }
    // The IPv6 address remains.
    #expect(change?.isOnline == true)
    #expect(!watch.monitor.canReach(server))
    try hosts.client.ip("address del fd09::1/64 dev cable")
    #expect(await watch.wait { !$0.isOnline } != nil)
    try hosts.client.ip("address add 10.9.0.1/24 dev cable")
    #expect(await watch.wait { $0.isOnline } != nil)
    #expect(watch.monitor.canReach(server))
  }

  @Test func theDefaultRouteIsTakenAwayAndGivenBack() async throws {
    try hosts.client.ip("route add default via 10.9.0.2 dev cable")
    let watch = try Watch(hosts.client)
    let network = await watch.wait { $0.network?.hasDefaultRoute == true }?.network
    #expect(network?.defaultRoutes.first?.gateway == .ipv4(0x0a09_0002, port: 0))
    #expect(watch.monitor.canReach(elsewhere))

    try hosts.client.ip("route del default")
    let change = await watch.wait { $0.network?.hasDefaultRoute == false }
    // Neighbors are still reachable.
    #expect(change?.isOnline == true)
    #expect(watch.monitor.canReach(server))
    #expect(!watch.monitor.canReach(elsewhere))

    try hosts.client.ip("route add default via 10.9.0.2 dev cable")
    #expect(await watch.wait { $0.network?.hasDefaultRoute == true } != nil)
    #expect(watch.monitor.canReach(elsewhere))
  }

  /// Routes that disappear with their link are noticed, although the kernel sends no message about them.
  @Test func theDefaultRouteGoesWithItsLink() async throws {
    try hosts.client.ip("route add default via 10.9.0.2 dev cable")
    let watch = try Watch(hosts.client)
    #expect(await watch.wait { $0.network?.hasDefaultRoute == true } != nil)
    try hosts.client.ip("link set cable down")
    let change = await watch.wait { $0.network?.hasDefaultRoute == false && !$0.isOnline }
    #expect(change?.network?.defaultRoutes == [])
  }

  @Test(arguments: ["unreachable", "prohibit", "blackhole"]) func routesThatLeadNowhere(kind: String) async throws {
    try hosts.client.ip("route add \(kind) 198.51.100.0/24", "-6 route add \(kind) 2001:db8::/32")
    let watch = try Watch(hosts.client)
    #expect(!watch.monitor.canReach(elsewhere))
    #expect(!watch.monitor.canReach(.ipv6(high: 0x2001_0db8 << 32, low: 1, scope: 0, port: 80)))
  }

  @Test func theLastOfManyChangesCounts() async throws {
    let watch = try Watch(hosts.client)
    #expect(await watch.wait { $0.isOnline } != nil)
    for round in 0..<20 { try hosts.client.ip("link set cable \(round.isMultiple(of: 2) ? "down" : "up")") }
    try hosts.client.ip("link set cable down", "address add 10.8.0.1/24 dev cable")
    let change = await watch.wait { connectivity in
      connectivity.network?.addresses.contains { $0.address == .ipv4(0x0a08_0001, port: 0) } == true
    }
    #expect(change?.isOnline == false)
  }

  @Test func aCancelledObserverIsNotCalled() async throws {
    let watch = try Watch(hosts.client)
    let calls = Calls()
    let cancelled = watch.monitor.observe { _ in calls.add() }
    cancelled.cancel()
    #expect(await watch.wait { $0.isOnline } != nil)
    try hosts.client.ip("link set cable down")
    #expect(await watch.wait { !$0.isOnline } != nil)
    #expect(calls.count == 0)
  }
}

/// A counter that any thread may use.
private final class Calls: Sendable {
  private let number = Mutex(0)

  var count: Int { number.withLock { $0 } }

  func add() { number.withLock { $0 += 1 } }
}
