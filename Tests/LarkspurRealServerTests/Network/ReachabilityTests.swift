import Foundation
import Glibc
import TestKit
import Testing

/// AFNetworking's reachability manager on a machine whose network comes and goes. The manager is in a process of its
/// own on that machine.
@Suite(.serialized, .timeLimit(.minutes(2))) struct ReachabilityTests {
  let hosts: TwoHosts

  init() throws { hosts = try TwoHosts() }

  /// A manager's process and its output. Ends with its last reference.
  private final class Probe {
    private let identifier: pid_t
    private let output: Int32
    private var text = ""

    init(_ hosts: TwoHosts, _ arguments: [String]) throws {
      let program = try SiblingProcess.program("TestHelper").path
      (identifier, output) = try hosts.client.run { try ServerProcess.start(program, ["reachability"] + arguments) }
    }

    deinit {
      kill(identifier, SIGKILL)
      _ = ServerProcess.reap(identifier)
      close(output)
    }

    /// Returns the next line, or `nil` if the process has ended.
    private func line() -> String? {
      while true {
        if let end = text.firstIndex(of: "\n") {
          defer { text = String(text[text.index(after: end)...]) }
          return String(text[..<end])
        }
        guard let more = ServerProcess.read(output) else { return nil }
        text += more
      }
    }

    /// Returns the next status, which the block reports first and then the notification.
    func next() -> String? {
      guard let block = line(), let notification = line(), block.hasPrefix("block: ") else { return nil }
      let status = String(block.dropFirst("block: ".count))
      return notification == "notification: \(status)" ? status : "\(block), but \(notification)"
    }
  }

  private let reachable = "Reachable via WiFi"
  private let unreachable = "Not Reachable"

  @Test func theDefaultRouteIsTakenAwayAndGivenBack() throws {
    let probe = try Probe(hosts, ["anywhere"])
    // Neighbors are reachable, and nothing beyond them.
    #expect(probe.next() == unreachable)
    try hosts.client.ip("route add default via 10.9.0.2 dev cable")
    #expect(probe.next() == reachable)
    try hosts.client.ip("route del default")
    #expect(probe.next() == unreachable)
    try hosts.client.ip("-6 route add default via fd09::2 dev cable")
    #expect(probe.next() == reachable)
  }

  @Test func theLinkGoesDownAndUp() throws {
    try hosts.client.ip("route add default via 10.9.0.2 dev cable")
    let probe = try Probe(hosts, ["anywhere"])
    #expect(probe.next() == reachable)
    try hosts.client.ip("link set cable down")
    #expect(probe.next() == unreachable)
    try hosts.client.ip("link set cable up", "route add default via 10.9.0.2 dev cable")
    #expect(probe.next() == reachable)
  }

  /// If the other end of the cable is unplugged, the route exists, but its link has no carrier.
  @Test func theCableIsPulled() throws {
    let probe = try Probe(hosts, ["address", "10.9.0.2"])
    #expect(probe.next() == reachable)
    try hosts.server.ip("link set cable down")
    #expect(probe.next() == unreachable)
    try hosts.server.ip("link set cable up")
    #expect(probe.next() == reachable)
  }

  @Test func theAddressIsTakenAway() throws {
    let probe = try Probe(hosts, ["address", "10.9.0.2"])
    #expect(probe.next() == reachable)
    try hosts.client.ip("address del 10.9.0.1/24 dev cable")
    #expect(probe.next() == unreachable)
    try hosts.client.ip("address add 10.9.0.1/24 dev cable")
    #expect(probe.next() == reachable)
  }

  /// An address behind the default route becomes unreachable with that route; a neighbor does not.
  @Test func theRouteToAnAddress() throws {
    let far = try Probe(hosts, ["address", "198.51.100.1"])
    let near = try Probe(hosts, ["address", "10.9.0.2"])
    #expect(far.next() == unreachable)
    #expect(near.next() == reachable)
    try hosts.client.ip("route add default via 10.9.0.2 dev cable")
    #expect(far.next() == reachable)
    try hosts.client.ip("route del default", "link set cable down")
    #expect(far.next() == unreachable)
    #expect(near.next() == unreachable)
  }

  /// Loopback is reachable without a network, and an address of zeros means anywhere.
  @Test func addressesOfAnotherKind() throws {
    try hosts.client.ip("link set cable down")
    #expect(try Probe(hosts, ["address", "127.0.0.1"]).next() == reachable)
    #expect(try Probe(hosts, ["host", "localhost"]).next() == reachable)
    let anywhere = try Probe(hosts, ["address", "0.0.0.0"])
    #expect(anywhere.next() == unreachable)
    try hosts.client.ip("link set cable up", "route add default via 10.9.0.2 dev cable")
    #expect(anywhere.next() == reachable)
  }

  /// A host is reachable if one of its addresses is.
  @Test func aHostWithTwoAddresses() throws {
    let probe = try Probe(hosts, ["host", "both"])
    #expect(probe.next() == reachable)
    try hosts.client.ip("address del 10.9.0.1/24 dev cable", "address del fd09::1/64 dev cable")
    #expect(probe.next() == unreachable)
    try hosts.client.ip("address add fd09::1/64 dev cable nodad")
    #expect(probe.next() == reachable)
  }

  /// A name that cannot be resolved at first is looked up again: name servers may become reachable later than the
  /// network.
  @Test func aNameThatIsFoundLater() throws {
    let probe = try Probe(hosts, ["host", "later"])
    #expect(probe.next() == unreachable)
    try hosts.client.addHosts("10.9.0.2 later\n")
    #expect(probe.next() == reachable)
  }
}
