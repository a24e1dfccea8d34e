import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// The properties that make two routes unequal, so that they do not share connections.
@Suite struct RouteTests {
  static func route(_ change: (inout Route) throws -> Void = { _ in }) rethrows -> Route {
    var route = Route(host: "a.example", port: 80)
    try change(&route)
    return route
  }

  @Test func namesAreEqualWithoutRegardToCase() {
    #expect(Route(host: "A.Example", port: 80) == Route(host: "a.example", port: 80))
  }

  /// The zone of an address is an interface name, which is case-sensitive.
  @Test func zonesKeepTheirCase() {
    #expect(Route(host: "fe80::1%Eth0", port: 80).host == "fe80::1%Eth0")
  }

  /// Every property of a route counts, so that a connection does not serve a request with:
  /// CVE-2024-35195: other rules for the verification of the server.
  /// CVE-2026-3784: other credentials for the proxy of a tunnel. CVE-2021-22924: other roots for TLS.
  /// CVE-2026-8932, CVE-2016-5420: another client identity. CVE-2022-27775: another zone of the address.
  /// CVE-2026-4873: a demand for TLS, if the connection has none.
  @Test func everythingCounts() throws {
    let context = try TLSContext()
    var asking = Security(context)
    asking.decideTrust = { _ in .verified }
    var askingAnother = Security(context)
    askingAnother.decideTrust = { _ in .verified }
    var presenting = Security(context)
    presenting.provideIdentity = { _ in nil }
    var presentingAnother = Security(context)
    presentingAnother.provideIdentity = { _ in nil }
    let proxy = try Proxy("http://proxy.example")
    var authorizing = ProxyRoute(proxy)
    authorizing.makeAuthorizer = { AskingAuthorizer { _ in nil } }
    let routes = try [
      Self.route(),
      Self.route { $0.host = "b.example" },
      Self.route { $0.port = 81 },
      Self.route { $0.security = Security(context) },
      Self.route { $0.security = Security(try TLSContext()) },
      Self.route { $0.security = asking },
      Self.route { $0.security = askingAnother },
      Self.route { $0.proxy = ProxyRoute(proxy) },
      Self.route { $0.proxy = ProxyRoute(try Proxy("http://user:word@proxy.example")) },
      Self.route { $0.proxy = authorizing },
      Self.route { $0.local = LocalEndpoint(address: .loopback(port: 0)) },
      Self.route { $0.socketPath = "/run/a" }, Self.route { $0.place = Route.Place(host: "b.example", port: 80) },
      Self.route { $0.security = presenting },
      Self.route { $0.security = presentingAnother },
      Self.route { $0.host = "fe80::1%eth0" },
      Self.route { $0.host = "fe80::1%eth1" },
    ]
    #expect(Set(routes).count == routes.count)
    // Equal copies have equal routes.
    let copies = [Self.route { $0.security = asking }, Self.route { $0.security = Security(context) }]
    #expect(copies == [routes[5], routes[3]])
  }

  /// RFC 9112 3.2.2: each request to a forwarding proxy names its host, so that one connection serves all hosts.
  @Test func aConnectionToAProxyThatForwardsServesAllHosts() throws {
    let context = try TLSContext()
    for kind in Proxy.Kind.allCases {
      var way = ProxyRoute(try Proxy(kind, host: "proxy.example"))
      if kind == .https { way.security = Security(context) }
      let route = Self.route { $0.proxy = way }
      let others = [
        Self.route {
          $0.proxy = way
          $0.host = "b.example"
        },
        Self.route {
          $0.proxy = way
          $0.port = 8080
        },
      ]
      for other in others {
        #expect((route == other) == (kind == .http || kind == .https), "\(kind)")
        #expect(Set([route, other]).count == (route == other ? 1 : 2), "\(kind)")
        // Tunnels to different hosts are different routes.
        var (one, two) = (route, other)
        one.security = Security(context)
        two.security = Security(context)
        #expect(one != two, "\(kind)")
      }
      var local = route
      local.local = LocalEndpoint(address: .loopback(port: 0))
      #expect(local != route)
      // A Unix socket needs no proxy.
      var (one, two) = (route, others[0])
      one.socketPath = "/run/a"
      two.socketPath = "/run/a"
      #expect(one != two)
    }
  }

  @Test func requestsForTwoHostsGoOverOneConnectionToTheirProxy() throws {
    let tests = try PoolTests()
    let pool = tests.pool()
    let proxy = ProxyRoute(try Proxy("http://192.0.2.9:3128"))
    for host in ["a.example", "b.example", "a.example"] {
      let head = try RequestWriter(method: "GET", target: "http://\(host)/", host: host, to: .proxy).finish()
      let running = tests.fetch(head, through: pool, route: Route(host: host, port: 80, proxy: proxy))
      tests.world.settle()
      tests.kernel.peer().send(PoolTests.response)
      tests.world.settle()
      #expect(running.value?.body == "hello")
    }
    #expect(tests.kernel.socketCount == 1)
    #expect(tests.leftovers(of: pool) == [])
  }

  private func overridden(_ host: String, _ overrides: HostOverrides) throws(TransportError) -> Route {
    var route = Route(host: host, port: 80)
    try route.apply(overrides)
    return route
  }

  @Test func overrides() throws {
    var overrides = HostOverrides()
    #expect(overrides.isEmpty)
    overrides.set("a.example", to: .host("replaced.example"))
    overrides.set("*", to: .socket(path: "/run/all"))
    overrides.set("a.example", to: .host("b.example", port: 8080))
    overrides.set("A.example.", port: 81, to: .host("c.example"))
    overrides.set("addresses.example", to: .addresses(["192.0.2.1"]))
    #expect(try overridden("a.example", overrides).place == Route.Place(host: "b.example", port: 8080))
    #expect(try overridden("x.example", overrides).socketPath == "/run/all")
    var other = Route(host: "a.example", port: 81)
    try other.apply(overrides)
    #expect(other.place == Route.Place(host: "c.example", port: 81))
    overrides.set("port.example", to: .host("*", port: 8443))
    #expect(try overridden("port.example", overrides).place == Route.Place(host: "port.example", port: 8443))
    // The host's own place changes nothing, and a proxy makes the requests as without an override.
    overrides.set("own.example", to: .host("*", port: 80))
    #expect(try overridden("own.example", overrides) == Route(host: "own.example", port: 80))
    #expect(try overridden("addresses.example", overrides) == Route(host: "addresses.example", port: 80))
    #expect(try overridden("a.example", overrides) != Route(host: "a.example", port: 80))
  }

  @Test(
    arguments: [
      .socket(path: ""), .socket(path: "/" + String(repeating: "s", count: 199)), .socket(path: "/a\0b"),
      .socket(path: "\0" + String(repeating: "s", count: 108)), .host(""), .host("b.example", port: 0),
    ] as [HostOverrides.Place])
  func uselessOverrides(place: HostOverrides.Place) throws {
    var overrides = HostOverrides()
    overrides.set("a.example", to: place)
    let error = #expect(throws: TransportError.self) { try overridden("a.example", overrides) }
    #expect("\(String(describing: error))".contains("hostOverrides"))
    #expect(try overridden("b.example", overrides).socketPath == nil)
  }

  @Test func throughAUnixSocket() throws {
    let tests = try PoolTests()
    let pool = tests.pool()
    var route = Route(host: "a.example", port: 80)
    route.socketPath = "/run/server"
    let running = tests.fetch(through: pool, route: route)
    tests.world.settle()
    tests.kernel.peer().send(PoolTests.response)
    tests.world.settle()
    #expect(running.value?.body == "hello")
    #expect(tests.leftovers(of: pool) == [])
  }
}
