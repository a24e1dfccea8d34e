/// The client's end of a connection: an address or a network interface, for machines that have several, and the traffic
/// class of its packets.
public struct LocalEndpoint: Hashable, Sendable {
  /// An address of this machine. With port 0, the usual value, the kernel chooses the port.
  public let address: SocketAddress?
  /// The name of a network interface, such as `eth0`. Binding to it needs no privilege since Linux 5.7, and
  /// `CAP_NET_RAW` before.
  public let interface: String?

  /// The traffic class of the packets that are sent: a code point in the upper six bits (RFC 2474). 0 is the default
  /// class.
  public let trafficClass: UInt8

  public init(address: SocketAddress? = nil, interface: String? = nil, trafficClass: UInt8 = 0) {
    self.address = address
    self.interface = interface
    self.trafficClass = trafficClass
  }

  /// Whether a connection from this end to `peer` is possible. An address cannot reach an address of another family,
  /// and neither an address nor an interface reaches a Unix socket.
  public func reaches(_ peer: SocketAddress) -> Bool {
    guard address != nil || interface != nil else { return true }
    return peer.family != .unix && (address == nil || address?.family == peer.family)
  }
}

extension LocalEndpoint: CustomStringConvertible {
  /// The address and the interface, for example `192.0.2.1:0 on eth0`, or the one of them that is set.
  public var description: String {
    [address?.description, interface].compactMap { $0 }.joined(separator: " on ")
  }
}
