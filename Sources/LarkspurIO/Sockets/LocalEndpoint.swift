/// The client's own end of a connection: an address or a network interface, for machines with several, and the mark that
/// its packets carry.
public struct LocalEndpoint: Hashable, Sendable {
  /// An address of this machine's. With port 0, as usual, the kernel chooses the port.
  public let address: SocketAddress?
  /// The name of a network interface, as `eth0`. Linux lets everybody choose one (since 5.7; before, `CAP_NET_RAW`).
  public let interface: String?

  /// The traffic class of the packets that are sent: a code point in the upper six bits (RFC 2474). 0: the usual one.
  public let trafficClass: UInt8

  public init(address: SocketAddress? = nil, interface: String? = nil, trafficClass: UInt8 = 0) {
    self.address = address
    self.interface = interface
    self.trafficClass = trafficClass
  }

  /// Whether a connection from here to `peer` can be: addresses of two families never meet, and nobody connects to a
  /// path from somewhere.
  public func reaches(_ peer: SocketAddress) -> Bool {
    guard address != nil || interface != nil else { return true }
    return peer.family != .unix && (address == nil || address?.family == peer.family)
  }
}

extension LocalEndpoint: CustomStringConvertible {
  /// `192.0.2.1:0 on eth0`, or one of the two.
  public var description: String {
    [address?.description, interface].compactMap { $0 }.joined(separator: " on ")
  }
}
