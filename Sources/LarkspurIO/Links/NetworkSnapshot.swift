/// The machine's links, their addresses and its default routes at one moment.
public struct NetworkSnapshot: Hashable, Sendable {
  /// By index.
  public var links: [UInt32: NetworkLink] = [:]
  public var addresses: Set<LinkAddress> = []
  /// The ways out to where no other route leads.
  public var defaultRoutes: Set<DefaultRoute> = []

  public init() {}

  /// Whether there is a way to some other machine: a link other than loopback is up and has a carrier, and an address that
  /// is not only good on the link itself.
  ///
  /// A default route is not asked for: machines on the same network are reachable without one.
  public var isOnline: Bool {
    addresses.contains { address in
      address.isUsable && !address.isLinkLocal && links[address.link].map { $0.carries && $0.kind != .loopback } == true
    }
  }

  /// Whether a default route leads over a link that is up and has a carrier.
  public var hasDefaultRoute: Bool {
    defaultRoutes.contains { links[$0.link]?.carries == true }
  }

  /// The link that most traffic takes: that of the preferred default route, or else of any usable address.
  public var primaryLink: NetworkLink? {
    let carrying = defaultRoutes.filter { links[$0.link]?.carries == true }
    if let best = carrying.min(by: { ($0.metric, $0.link) < ($1.metric, $1.link) }) { return links[best.link] }
    let usable = addresses.filter { $0.isUsable && !$0.isLinkLocal }.compactMap { links[$0.link] }
    return usable.filter { $0.carries && $0.kind != .loopback }.min { $0.index < $1.index }
  }

  /// Takes in one message of a listing.
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

  /// Whether a change that the kernel tells of can make another snapshot. Routes to single networks come and go by the
  /// thousand on a router; a route that goes because of its link or its address is not always told of.
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
    /// A modem: WWAN.
    case cellular
    /// A tunnel or what else has no hardware of a known sort.
    case other
  }

  public var index: UInt32
  public var name: String
  public var kind: Kind
  /// Somebody has switched it on.
  public var isUp: Bool
  /// It has a carrier: a cable is plugged in, an access point found.
  public var isRunning: Bool

  public var carries: Bool { isUp && isRunning }

  public init(index: UInt32, name: String, kind: Kind, isUp: Bool, isRunning: Bool) {
    self.index = index
    self.name = name
    self.kind = kind
    self.isUp = isUp
    self.isRunning = isRunning
  }

  /// `struct ifinfomsg`, of 16 bytes. The kernel's message cannot tell a radio from a cable: see `refine`.
  public init?(_ message: NetlinkMessage) {
    let body = message.body
    guard let hardware = body.number(at: 2, as: UInt16.self), let index = body.number(at: 4, as: UInt32.self),
      let flags = body.number(at: 8, as: UInt32.self), body.count >= 16, index > 0
    else { return nil }
    // IFLA_IFNAME, with a NUL behind it.
    let name = message.attribute(3, behind: 16).map { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) } ?? ""
    // IFF_UP, IFF_LOOPBACK, IFF_RUNNING.
    self.init(
      index: index, name: name, kind: flags & 8 != 0 ? .loopback : Self.kind(hardware: hardware), isUp: flags & 1 != 0,
      isRunning: flags & 0x40 != 0)
  }

  /// `ARPHRD_...` of linux/if_arp.h.
  private static func kind(hardware: UInt16) -> Kind {
    switch hardware {
    // Ethernet, and what drivers of radios call themselves as well; InfiniBand.
    case 1, 32: .wired
    case 772: .loopback
    // The kinds of IEEE 802.11.
    case 801...803: .wireless
    // Raw IP: modems without a frame. Phonet.
    case 519, 820, 821: .cellular
    default: .other
    }
  }
}

/// An address of a link.
public struct LinkAddress: Hashable, Sendable {
  public var link: UInt32
  /// Port 0, and the link as the scope of a link-local IPv6 address.
  public var address: SocketAddress
  public var prefixBits: UInt8
  /// It is not waiting for the answer whether somebody else has it, and nobody has.
  public var isUsable: Bool

  /// `struct ifaddrmsg`, of 8 bytes.
  public init?(_ message: NetlinkMessage) {
    let body = message.body
    guard let family = body.byte(at: 0), let prefixBits = body.byte(at: 1), let shortFlags = body.byte(at: 2),
      let link = body.number(at: 4, as: UInt32.self),
      // IFA_LOCAL, which differs from IFA_ADDRESS on a link between two points; IPv6 has the latter only.
      let bytes = message.attribute(2, behind: 8) ?? message.attribute(1, behind: 8),
      let address = SocketAddress(netlinkFamily: family, bytes, link: link)
    else { return nil }
    // IFA_FLAGS. IFA_F_TENTATIVE without IFA_F_OPTIMISTIC, or IFA_F_DADFAILED.
    let flags = message.attribute(8, behind: 8)?.number(at: 0, as: UInt32.self) ?? UInt32(shortFlags)
    self.link = link
    self.address = address
    self.prefixBits = prefixBits
    isUsable = flags & 8 == 0 && (flags & 0x40 == 0 || flags & 4 != 0)
  }

  /// 169.254.0.0/16 (RFC 3927), fe80::/10 (RFC 4291 2.5.6).
  public var isLinkLocal: Bool {
    switch address {
    case .ipv4(let number, _): number >> 16 == 0xa9fe
    case .ipv6(let high, _, _, _): high >> 54 == 0xfe80 >> 6
    case .unix: false
    }
  }
}

/// A route to everywhere.
public struct DefaultRoute: Hashable, Sendable {
  public var family: SocketAddress.Family
  public var link: UInt32
  /// The router. Nil: none is needed, or it is of the other family.
  public var gateway: SocketAddress?
  /// Less is better.
  public var metric: UInt32

  /// `struct rtmsg`, of 12 bytes: one route, one for each of its ways (RTA_MULTIPATH), or none of this kind.
  public static func routes(in message: NetlinkMessage) -> [DefaultRoute] {
    let body = message.body
    guard body.count >= 12, let family = SocketAddress.Family(netlink: body.byte(at: 0)),
      // To everywhere, of RTN_UNICAST: an `unreachable default` is none.
      body.byte(at: 1) == 0, body.byte(at: 7) == 1,
      // RT_TABLE_MAIN, in RTA_TABLE or in the structure.
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
    // RTA_MULTIPATH: `struct rtnexthop`, of 8 bytes, again and again.
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
  /// AF_INET and AF_INET6, as Linux has them everywhere.
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
  /// An address in network byte order.
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

  /// In network byte order.
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
