import LarkspurIO
import LarkspurTransport
import TestKit
import Testing

/// Parsing of the kernel's netlink messages, from bytes that the tests make.
@Suite struct NetlinkTests {
  typealias Kind = NetlinkMessage.Kind

  /// Returns a number in the machine's byte order.
  func native<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
    var bytes = (0..<Number.bitWidth / 8).map { UInt8(truncatingIfNeeded: number >> Number($0 * 8)) }
    if number.littleEndian != number { bytes.reverse() }
    return bytes
  }

  func link(
    _ index: UInt32, _ name: String, flags: UInt32, hardware: UInt16 = 1, type: UInt16 = Kind.newLink
  ) -> [UInt8] {
    let structure = [0, 0] + native(hardware) + native(index) + native(flags) + native(UInt32(0))
    return NetlinkMessage.request(type, sequence: 1, structure, attributes: [(3, Array(name.utf8) + [0])])
  }

  func address(_ link: UInt32, _ bytes: [UInt8], flags: UInt8 = 0x80, attribute: UInt16 = 1) -> [UInt8] {
    let structure = [bytes.count == 4 ? 2 : 10, 24, flags, 0] + native(link)
    return NetlinkMessage.request(Kind.newAddress, sequence: 1, structure, attributes: [(attribute, bytes)])
  }

  func route(
    destinationBits: UInt8 = 0, table: UInt8 = 254, type: UInt8 = 1, _ attributes: [(type: UInt16, value: [UInt8])]
  ) -> [UInt8] {
    let structure = [2, destinationBits, 0, 0, table, 0, 0, type] + native(UInt32(0))
    return NetlinkMessage.request(Kind.newRoute, sequence: 1, structure, attributes: attributes)
  }

  func snapshot(_ messages: [UInt8]...) -> NetworkSnapshot {
    var snapshot = NetworkSnapshot()
    for message in NetlinkMessage.messages(in: messages.flatMap { $0 }) { snapshot.add(message) }
    return snapshot
  }

  static let up: UInt32 = 1 | 0x40

  @Test func reads() throws {
    let snapshot = snapshot(
      link(1, "lo", flags: Self.up | 8, hardware: 772), link(2, "eth0", flags: Self.up),
      link(3, "wlan0", flags: 1, hardware: 801), address(1, [127, 0, 0, 1]), address(2, [192, 0, 2, 7]),
      address(2, [0xfe, 0x80] + [UInt8](repeating: 0, count: 13) + [1]),
      route([(4, native(UInt32(2))), (5, [192, 0, 2, 1]), (6, native(UInt32(100)))]))
    #expect(snapshot.links[1]?.kind == .loopback)
    #expect(
      snapshot.links[2] == NetworkLink(index: 2, name: "eth0", kind: .wired, isUp: true, isRunning: true))
    #expect(snapshot.links[3]?.kind == .wireless && snapshot.links[3]?.carries == false)
    #expect(
      Set(snapshot.addresses.map(\.address)) == [
        .ipv4(0x7f00_0001, port: 0), .ipv4(0xc000_0207, port: 0),
        .ipv6(high: 0xfe80 << 48, low: 1, scope: 2, port: 0),
      ])
    let route = try #require(snapshot.defaultRoutes.first)
    #expect(route.link == 2 && route.gateway == .ipv4(0xc000_0201, port: 0) && route.metric == 100)
    #expect(snapshot.isOnline && snapshot.hasDefaultRoute && snapshot.primaryLink?.name == "eth0")
  }

  @Test func whatIsOnline() {
    let ethernet = link(2, "eth0", flags: Self.up)
    #expect(!snapshot().isOnline)
    #expect(!snapshot(ethernet).isOnline)
    #expect(snapshot(ethernet, address(2, [10, 0, 0, 1])).isOnline)
    // The address belongs to another link; the link has no carrier; the link is switched off.
    #expect(!snapshot(ethernet, address(3, [10, 0, 0, 1])).isOnline)
    #expect(!snapshot(link(2, "eth0", flags: 1), address(2, [10, 0, 0, 1])).isOnline)
    #expect(!snapshot(link(2, "eth0", flags: 0x40), address(2, [10, 0, 0, 1])).isOnline)
    // Addresses that are not usable beyond the link.
    #expect(!snapshot(ethernet, address(2, [169, 254, 0, 1])).isOnline)
    #expect(!snapshot(link(1, "lo", flags: Self.up | 8), address(1, [10, 0, 0, 1])).isOnline)
    // The address is tentative or a duplicate; an optimistic one may be used meanwhile.
    #expect(!snapshot(ethernet, address(2, [10, 0, 0, 1], flags: 0x40)).isOnline)
    #expect(snapshot(ethernet, address(2, [10, 0, 0, 1], flags: 0x44)).isOnline)
    #expect(!snapshot(ethernet, address(2, [10, 0, 0, 1], flags: 8)).isOnline)
  }

  @Test func routes() {
    let way = (type: UInt16(4), value: native(UInt32(2)))
    #expect(snapshot(route([way])).defaultRoutes.count == 1)
    // A route to one network only, in another table, unreachable, without a link.
    #expect(snapshot(route(destinationBits: 8, [way])).defaultRoutes == [])
    #expect(snapshot(route(table: 255, [way])).defaultRoutes == [])
    #expect(snapshot(route(table: 0, [way, (15, native(UInt32(254)))])).defaultRoutes.count == 1)
    #expect(snapshot(route(type: 7, [way])).defaultRoutes == [])
    #expect(snapshot(route([])).defaultRoutes == [])
    // A route with two next hops.
    let hops = native(UInt16(8)) + [0, 0] + native(UInt32(5)) + native(UInt16(8)) + [0, 0] + native(UInt32(6))
    #expect(Set(snapshot(route([(9, hops)])).defaultRoutes.map(\.link)) == [5, 6])
  }

  @Test func relevance() {
    func isRelevant(_ message: [UInt8]) -> [Bool] {
      NetlinkMessage.messages(in: message).map(NetworkSnapshot.isRelevant)
    }
    #expect(isRelevant(link(2, "eth0", flags: 0, type: Kind.deletedLink)) == [true])
    #expect(isRelevant(address(2, [10, 0, 0, 1])) == [true])
    #expect(isRelevant(route([])) == [true])
    #expect(isRelevant(route(destinationBits: 24, [])) == [false])
    #expect(isRelevant(NetlinkMessage.request(Kind.done, sequence: 1, [])) == [false])
  }

  @Test func lengthsThatLie() {
    let good = link(2, "eth0", flags: Self.up)
    for length in [0, 15, good.count + 1, Int(UInt32.max)] {
      let bytes = native(UInt32(length)) + good[4...]
      #expect(NetlinkMessage.messages(in: bytes) == [])
    }
    for count in 0..<good.count { #expect(NetlinkMessage.messages(in: Array(good[..<count])) == []) }
    // An attribute that is longer than its message, and lengths below that of the attribute's header.
    for length in [UInt16.max, 3, 0] {
      var bytes = good
      bytes.replaceSubrange(32..<34, with: native(length))
      #expect(snapshot(bytes).links[2]?.name == "")
    }
    // A truncated structure.
    #expect(snapshot(NetlinkMessage.request(Kind.newLink, sequence: 1, [0, 0, 1, 0])).links == [:])
  }

  /// Whatever the bytes are, they are read to their end and no further.
  @Test func anyBytes() {
    var generator = SeededGenerator(for: "netlink messages")
    let seeds = [
      link(2, "eth0", flags: Self.up), address(2, [10, 0, 0, 1]),
      route([(4, native(UInt32(2))), (9, native(UInt16(8)) + [0, 0] + native(UInt32(5)))]),
    ]
    for _ in 0..<20_000 {
      var bytes = seeds.flatMap { $0 }
      for _ in 0..<Int.random(in: 1...12, using: &generator) {
        let index = bytes.indices.randomElement(using: &generator) ?? 0
        bytes[index] = UInt8.random(in: 0...255, using: &generator)
      }
      bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))
      var snapshot = NetworkSnapshot()
      let messages = NetlinkMessage.messages(in: bytes)
      for message in messages { snapshot.add(message) }
      #expect(messages.count * NetlinkMessage.headerBytes <= bytes.count)
      #expect(snapshot.links.count + snapshot.addresses.count <= messages.count)
    }
  }

  /// The machine that runs the tests has at least a loopback link, and a route lookup finds it.
  @Test func theMachineItself() throws {
    var questions = try NetlinkRequests()
    let snapshot = try questions.snapshot()
    #expect(snapshot.links.values.contains { $0.kind == .loopback && $0.name == "lo" })
    let loopback = try questions.link(to: .loopback(port: 80))
    #expect(snapshot.links[loopback]?.kind == .loopback)
    #expect(throws: Errno.familyNotSupported) { try questions.link(to: .unix(path: "/x")) }
  }
}
