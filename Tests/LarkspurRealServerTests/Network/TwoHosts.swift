import LarkspurIO
import LarkspurTestServer
import LarkspurTransport

/// A client's machine (10.9.0.1 and fd09::1) and a server's (10.9.0.2 and fd09::2), with a cable between them.
struct TwoHosts {
  let client: Namespace
  let server: Namespace

  init() throws {
    client = try Namespace()
    server = try Namespace()
    try client.connect(to: server)
    for (host, number) in [(client, 1), (server, 2)] {
      try host.ip(
        "address add 10.9.0.\(number)/24 dev cable", "address add fd09::\(number)/64 dev cable nodad",
        "link set cable up")
    }
    try client.setHosts("10.9.0.2 both\nfd09::2 both\n::1 localhost\n127.0.0.1 localhost\n")
  }

  /// Starts a test server on the server's machine, at its IPv4 address or at its IPv6 address.
  func start(ipv6: Bool = false) throws -> TestServer {
    try server.run {
      try TestServer(
        at: ipv6 ? .ipv6(high: 0xfd09 << 48, low: 2, scope: 0, port: 0) : .ipv4(0x0a09_0002, port: 0))
    }
  }

  /// Creates a pool on the client's machine.
  func load(_ change: @escaping @Sendable (inout Pool.Options) -> Void = { _ in }) throws -> PoolLoad {
    try client.run { try PoolLoad(change) }
  }

  /// Makes the client's machine ask for the server's hardware address again and again during an outage. By default it
  /// gives up after three seconds, and connections fail even when the cable is plugged in again.
  func keepResolvingAddresses() throws {
    try client.set("ipv4/neigh/cable/retrans_time_ms", to: "50")
    try client.set("ipv4/neigh/cable/mcast_solicit", to: "10000")
  }

  /// Sends packets from the client to these addresses to a machine that does not exist, so that nothing answers.
  func swallow(_ addresses: String...) throws {
    for address in addresses {
      try client.ip("neighbour replace \(address) lladdr 02:00:00:00:00:99 nud permanent dev cable")
    }
  }
}
