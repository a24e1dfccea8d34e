import LarkspurIO
import LarkspurTestServer
import LarkspurTransport

/// A client's machine and a server's, with a cable between them: 10.9.0.1 and fd09::1, 10.9.0.2 and fd09::2.
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

  /// A test server on the server's machine, at its IPv4 address or at its IPv6 address.
  func start(ipv6: Bool = false) throws -> TestServer {
    try server.run {
      try TestServer(
        at: ipv6 ? .ipv6(high: 0xfd09 << 48, low: 2, scope: 0, port: 0) : .ipv4(0x0a09_0002, port: 0))
    }
  }

  /// A pool on the client's machine.
  func load(_ change: @escaping @Sendable (inout Pool.Options) -> Void = { _ in }) throws -> PoolLoad {
    try client.run { try PoolLoad(change) }
  }

  /// An outage may be long: the client's machine asks for the server's hardware address again and again, and does not
  /// give up after three seconds, to whoever connects when the cable is plugged in again.
  func neverGiveUp() throws {
    try client.set("ipv4/neigh/cable/retrans_time_ms", to: "50")
    try client.set("ipv4/neigh/cable/mcast_solicit", to: "10000")
  }

  /// Packets from the client to these addresses go to a machine that is not there: nothing answers.
  func swallow(_ addresses: String...) throws {
    for address in addresses {
      try client.ip("neighbour replace \(address) lladdr 02:00:00:00:00:99 nud permanent dev cable")
    }
  }
}
