/// Queries the kernel for its links, addresses and routes. At most one thread may use a value at a time.
public struct NetlinkRequests: ~Copyable {
  /// Maximum number of times a snapshot is taken when the configuration changes meanwhile. If all attempts are
  /// overtaken, the last one is returned; the next change notification leads to a new snapshot.
  private static let attemptsMax = 3

  private let socket: NetlinkSocket
  private var sequence: UInt32 = 0

  public init() throws(Errno) {
    socket = try NetlinkSocket(hearsChanges: false)
  }

  /// Returns the machine's current links, addresses and default routes.
  public mutating func snapshot() throws(Errno) -> NetworkSnapshot {
    var attempts = 1
    while true {
      var snapshot = NetworkSnapshot()
      // The sizes of `struct ifinfomsg`, `ifaddrmsg` and `rtmsg`. The structures are all zeros: of any family.
      var isWhole = try list(NetlinkMessage.Kind.getLink, structureBytes: 16, into: &snapshot)
      isWhole = try list(NetlinkMessage.Kind.getAddress, structureBytes: 8, into: &snapshot) && isWhole
      isWhole = try list(NetlinkMessage.Kind.getRoute, structureBytes: 12, into: &snapshot) && isWhole
      if isWhole || attempts == Self.attemptsMax {
        for index in snapshot.links.keys { snapshot.links[index]?.refine() }
        return snapshot
      }
      attempts += 1
    }
  }

  /// Returns the index of the link over which packets to `address` would leave, or 0 if the kernel names no link.
  ///
  /// - Throws: The error that `connect` would report, most often `networkUnreachable`.
  public mutating func link(to address: SocketAddress) throws(Errno) -> UInt32 {
    guard address.family != .unix else { throw .familyNotSupported }
    let bytes = address.netlinkBytes
    let structure =
      [address.family.netlinkNumber, UInt8(truncatingIfNeeded: bytes.count * 8)] + repeatElement(0, count: 10)
    // RTA_DST, and RTA_OIF for an address that is valid on one link only.
    var attributes: [(type: UInt16, value: [UInt8])] = [(1, bytes)]
    if case .ipv6(_, _, let scope, _) = address, scope != 0 { attributes.append((4, scope.bytes)) }
    sequence &+= 1
    try socket.send(
      NetlinkMessage.request(NetlinkMessage.Kind.getRoute, sequence: sequence, structure, attributes: attributes))
    while true {
      for message in try socket.receive() where message.sequence == sequence {
        switch message.type {
        case NetlinkMessage.Kind.error: throw Self.error(message) ?? .inputOutput
        case NetlinkMessage.Kind.newRoute:
          // Route types RTN_UNICAST (1) to RTN_MULTICAST (5) lead somewhere. For IPv6 the kernel reports a blackhole or
          // unreachable route as a route, not as an error.
          guard let type = message.body.byte(at: 7), 1...5 ~= type else { throw .networkUnreachable }
          return message.attribute(4, behind: 12)?.number(at: 0, as: UInt32.self) ?? 0
        default: throw .inputOutput
        }
      }
    }
  }

  /// Adds the kernel's list of one type to `snapshot`.
  ///
  /// - Returns: Whether the configuration stayed the same while the kernel listed it.
  private mutating func list(
    _ type: UInt16, structureBytes: Int, into snapshot: inout NetworkSnapshot
  ) throws(Errno) -> Bool {
    sequence &+= 1
    let flags = NetlinkMessage.Flag.request | NetlinkMessage.Flag.dump
    let structure = [UInt8](repeating: 0, count: structureBytes)
    try socket.send(NetlinkMessage.request(type, flags: flags, sequence: sequence, structure))
    var isWhole = true
    while true {
      for message in try socket.receive() where message.sequence == sequence {
        if message.flags & NetlinkMessage.Flag.interrupted != 0 { isWhole = false }
        switch message.type {
        case NetlinkMessage.Kind.done: return isWhole
        case NetlinkMessage.Kind.error: throw Self.error(message) ?? .inputOutput
        default: snapshot.add(message)
        }
      }
    }
  }

  /// Returns the error number at the start of `struct nlmsgerr`, where it is negated.
  private static func error(_ message: NetlinkMessage) -> Errno? {
    guard let number = message.body.number(at: 0, as: UInt32.self) else { return nil }
    let error = 0 &- Int32(truncatingIfNeeded: number)
    return error > 0 ? Errno(rawValue: error) : nil
  }
}

extension NetworkLink {
  /// Finds out whether the link is a radio, and of which kind, which the kernel's messages do not contain. Reads a
  /// small file in `/sys`.
  mutating func refine() {
    guard kind == .wired || kind == .other, NetworkInterface.isName(name), name != ".", name != ".." else { return }
    guard let file = try? OpenFile(reading: "/sys/class/net/\(name)/uevent"), let bytes = try? file.read(atMost: 4096)
    else { return }
    for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
      if line == "DEVTYPE=wlan" { kind = .wireless }
      if line == "DEVTYPE=wwan" { kind = .cellular }
    }
  }
}
