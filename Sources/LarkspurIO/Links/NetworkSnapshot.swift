/// The machine's links, their addresses and its default routes at one moment.
public struct NetworkSnapshot: Hashable, Sendable {
  /// The links by their index.
  public var links: [UInt32: NetworkLink] = [:]
  public var addresses: Set<LinkAddress> = []
  /// The routes for destinations that no other route covers.
  public var defaultRoutes: Set<DefaultRoute> = []

  public init() {}

  /// Whether another machine is reachable: a link other than loopback is up and has a carrier, and has an address that
  /// is valid beyond the link.
  ///
  /// A default route is not required: machines on the same network are reachable without one.
  public var isOnline: Bool {
    addresses.contains { address in
      address.isUsable && !address.isLinkLocal && links[address.link].map { $0.carries && $0.kind != .loopback } == true
    }
  }

  /// Whether a default route leads over a link that is up and has a carrier.
  public var hasDefaultRoute: Bool {
    defaultRoutes.contains { links[$0.link]?.carries == true }
  }

  /// The link of the preferred default route. Without a default route, the link with the lowest index that has a
  /// carrier and a usable address and is not loopback.
  public var primaryLink: NetworkLink? {
    let carrying = defaultRoutes.filter { links[$0.link]?.carries == true }
    if let best = carrying.min(by: { ($0.metric, $0.link) < ($1.metric, $1.link) }) { return links[best.link] }
    let usable = addresses.filter { $0.isUsable && !$0.isLinkLocal }.compactMap { links[$0.link] }
    return usable.filter { $0.carries && $0.kind != .loopback }.min { $0.index < $1.index }
  }

  /// Adds one message of a listing to the snapshot.
  public mutating func add(_ message: NetlinkMessage) {
    switch message.type {
    case NetlinkMessage.Kind.newLink:
      if let link = NetworkLink(message) { links[link.index] = link }
    case NetlinkMessage.Kind.newAddress:
      if let address = LinkAddress(message) { addresses.insert(address) }
    case NetlinkMessage.Kind.newRoute:
      defaultRoutes.formUnion(DefaultRoute.routes(in: message))
    default: break
    }
  }

  /// Whether a change notification can change the snapshot. On a router, routes to single networks change by the
  /// thousand and do not count. Changes of links and addresses count, because the kernel does not always report a
  /// route that disappears with its link or address.
  public static func isRelevant(_ message: NetlinkMessage) -> Bool {
    switch message.type {
    case NetlinkMessage.Kind.newLink, NetlinkMessage.Kind.deletedLink, NetlinkMessage.Kind.newAddress,
      NetlinkMessage.Kind.deletedAddress:
      true
    case NetlinkMessage.Kind.newRoute, NetlinkMessage.Kind.deletedRoute: message.body.byte(at: 1) == 0
    default: false
    }
  }
}

/// A network interface.
public struct NetworkLink: Hashable, Sendable {
  public enum Kind: Hashable, Sendable {
    case loopback
    case wired
    case wireless
    /// A modem (WWAN).
    case cellular
    /// A tunnel, or a link whose hardware type is unknown.
    case other
  }

  public var index: UInt32
  public var name: String
  public var kind: Kind
  /// Whether the link is switched on (`IFF_UP`).
  public var isUp: Bool
  /// Whether the link has a carrier (`IFF_RUNNING`), such as a plugged-in cable or an access point.
  public var isRunning: Bool

  public var carries: Bool { isUp && isRunning }

  public init(index: UInt32, name: String, kind: Kind, isUp: Bool, isRunning: Bool) {
    self.index = index
    self.name = name
    self.kind = kind
    self.isUp = isUp
    self.isRunning = isRunning
  }

  /// Parses `struct ifinfomsg` (16 bytes). The message does not distinguish a radio from a cable; `refine` does.
  public init?(_ message: NetlinkMessage) {
    let body = message.body
    guard let hardware = body.number(at: 2, as: UInt16.self), let index = body.number(at: 4, as: UInt32.self),
      let flags = body.number(at: 8, as: UInt32.self), body.count >= 16, index > 0
    else { return nil }
    // IFLA_IFNAME, which ends with a NUL.
    let name = message.attribute(3, behind: 16).map { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } ?? ""
    // IFF_UP, IFF_LOOPBACK, IFF_RUNNING.
    self.init(
      index: index, name: name, kind: flags & 8 != 0 ? .loopback : Self.kind(hardware: hardware), isUp: flags & 1 != 0,
      isRunning: flags & 0x40 != 0)
  }

  /// Returns the kind for a hardware type, `ARPHRD_...` in linux/if_arp.h.
  private static func kind(hardware: UInt16) -> Kind {
    switch hardware {
    // Ethernet, which many radio drivers report as well, and InfiniBand.
    case 1, 32: .wired
    case 772: .loopback
    // The IEEE 802.11 types.
    case 801...803: .wireless
    // Raw IP (modems without framing) and Phonet.
    case 519, 820, 821: .cellular
    default: .other
    }
  }
}

/// An address of a link.
public struct LinkAddress: Hashable, Sendable {
  public var link: UInt32
  /// The address with port 0. The scope of a link-local IPv6 address is its link.
  public var address: SocketAddress
  public var prefixBits: UInt8
  /// Whether duplicate address detection has not failed, and has either ended or lets the address be used meanwhile.
  public var isUsable: Bool

  /// Parses `struct ifaddrmsg` (8 bytes).
  public init?(_ message: NetlinkMessage) {
    let body = message.body
    guard let family = body.byte(at: 0), let prefixBits = body.byte(at: 1), let shortFlags = body.byte(at: 2),
      let link = body.number(at: 4, as: UInt32.self),
      // IFA_LOCAL is the machine's own address. On a point-to-point link IFA_ADDRESS is the peer's. IPv6 usually has
      // IFA_ADDRESS only.
      let bytes = message.attribute(2, behind: 8) ?? message.attribute(1, behind: 8),
      let address = SocketAddress(netlinkFamily: family, bytes, link: link)
    else { return nil }
    // IFA_FLAGS. The address is unusable with IFA_F_DADFAILED, or with IFA_F_TENTATIVE and without IFA_F_OPTIMISTIC.
    let flags = message.attribute(8, behind: 8)?.number(at: 0, as: UInt32.self) ?? UInt32(shortFlags)
    self.link = link
    self.address = address
    self.prefixBits = prefixBits
    isUsable = flags & 8 == 0 && (flags & 0x40 == 0 || flags & 4 != 0)
  }

  /// Whether the address is in 169.254.0.0/16 (RFC 3927) or fe80::/10 (RFC 4291 2.5.6).
  public var isLinkLocal: Bool {
    switch address {
    case .ipv4(let number, _): number >> 16 == 0xa9fe
    case .ipv6(let high, _, _, _): high >> 54 == 0xfe80 >> 6
    case .unix: false
    }
  }
}

/// A route for destinations that no other route covers.
public struct DefaultRoute: Hashable, Sendable {
  public var family: SocketAddress.Family
  public var link: UInt32
  /// The router's address, or `nil` if the route needs no router or the router has an address of the other family.
  public var gateway: SocketAddress?
  /// The route's priority: the route with the lowest metric is preferred.
  public var metric: UInt32

  /// Parses `struct rtmsg` (12 bytes).
  ///
  /// - Returns: The default route, one route for each hop of a multipath route (RTA_MULTIPATH), or nothing if the
  ///   message describes another kind of route.
  public static func routes(in message: NetlinkMessage) -> [DefaultRoute] {
    let body = message.body
    guard body.count >= 12, let family = SocketAddress.Family(netlink: body.byte(at: 0)),
      // A destination prefix of 0 bits and type RTN_UNICAST. An `unreachable default` has another type.
      body.byte(at: 1) == 0, body.byte(at: 7) == 1,
      // The table must be RT_TABLE_MAIN (254). RTA_TABLE replaces the structure's field.
      message.attribute(15, behind: 12)?.number(at: 0, as: UInt32.self) ?? UInt32(body.byte(at: 4) ?? 0) == 254
    else { return [] }
    let metric = message.attribute(6, behind: 12)?.number(at: 0, as: UInt32.self) ?? 0
    var routes: [DefaultRoute] = []
    let append = { (link: UInt32, gateway: ArraySlice<UInt8>?) in
      let router = gateway.flatMap { SocketAddress(netlinkFamily: family.netlinkNumber, $0, link: link) }
      routes.append(DefaultRoute(family: family, link: link, gateway: router, metric: metric))
    }
    // RTA_OIF, RTA_GATEWAY.
    if let link = message.attribute(4, behind: 12)?.number(at: 0, as: UInt32.self) {
      append(link, message.attribute(5, behind: 12))
    }
    // RTA_MULTIPATH: a list of `struct rtnexthop` (8 bytes), each with its attributes.
    var hops = message.attribute(9, behind: 12) ?? []
    while let length = hops.number(at: 0, as: UInt16.self), let link = hops.number(at: 4, as: UInt32.self),
      length >= 8, Int(length) <= hops.count
    {
      append(link, NetlinkMessage.attribute(5, in: hops.prefix(Int(length)).dropFirst(8)))
      hops = hops.dropFirst(Int(length).padded)
    }
    return routes
  }
}

extension SocketAddress.Family {
  /// Creates a family from AF_INET (2) or AF_INET6 (10), which have these values on every Linux platform.
  init?(netlink number: UInt8?) {
    switch number {
    case 2: self = .ipv4
    case 10: self = .ipv6
    default: return nil
    }
  }

  var netlinkNumber: UInt8 { self == .ipv6 ? 10 : 2 }
}

extension SocketAddress {
  /// Creates an address from bytes in network byte order.
  init?(netlinkFamily: UInt8, _ bytes: ArraySlice<UInt8>, link: UInt32) {
    let number = { (part: ArraySlice<UInt8>) in part.reduce(0 as UInt64) { $0 << 8 | UInt64($1) } }
    switch (Family(netlink: netlinkFamily), bytes.count) {
    case (.ipv4, 4): self = .ipv4(UInt32(truncatingIfNeeded: number(bytes)), port: 0)
    case (.ipv6, 16):
      let high = number(bytes.prefix(8))
      self = .ipv6(
        high: high, low: number(bytes.dropFirst(8)), scope: high >> 54 == 0xfe80 >> 6 ? link : 0, port: 0)
    default: return nil
    }
  }

  /// The address's bytes in network byte order.
  var netlinkBytes: [UInt8] {
    let bytes = { (number: UInt64, count: Int) in
      (0..<count).reversed().map { UInt8(truncatingIfNeeded: number >> UInt64($0 * 8)) }
    }
    return switch self {
    case .ipv4(let number, _): bytes(UInt64(number), 4)
    case .ipv6(let high, let low, _, _): bytes(high, 8) + bytes(low, 8)
    case .unix: []
    }
  }
}
