/// The client's end of a connection: an address or a network interface, for machines that have several, the traffic
/// class of its packets, and whether it may have several paths.
///
/// ```swift
/// let local = try LocalEndpoint(address: "192.0.2.7")
/// let other = LocalEndpoint(interface: "eth1")
/// ```
public struct LocalEndpoint: Hashable, Sendable, Codable {
  /// The error for a text that is no IP address of this machine's kind.
  public struct InvalidAddress: Error, Hashable, Sendable, CustomStringConvertible {
    /// The text, as it was passed in.
    public let text: String

    /// Creates the error for a text.
    public init(text: String) { self.text = text }

    public var description: String {
      "the option localEndpoint cannot be used: \(text.debugDescription) is no IP address"
    }
  }

  /// An address of this machine. With port 0, the usual value, the kernel chooses the port.
  public let address: SocketAddress?
  /// The name of a network interface, such as `eth0`. Binding to it needs no privilege since Linux 5.7, and
  /// `CAP_NET_RAW` before.
  public let interface: String?

  /// The traffic class of the packets that are sent: a code point in the upper six bits (RFC 2474). 0 is the default
  /// class.
  public let trafficClass: UInt8
  /// Whether to use multipath TCP (RFC 8684) where the kernel and the server have it, and TCP with one path otherwise.
  public let usesMultipath: Bool

  /// Creates an endpoint. All parts have defaults that leave the choice to the kernel.
  public init(
    address: SocketAddress? = nil, interface: String? = nil, trafficClass: UInt8 = 0, usesMultipath: Bool = false
  ) {
    self.address = address
    self.interface = interface
    self.trafficClass = trafficClass
    self.usesMultipath = usesMultipath
  }

  /// Creates an endpoint with an IP address. An IPv6 address may have a zone, `fe80::1%eth0`.
  ///
  /// - Throws: `InvalidAddress` if the text is no IP address, or no interface has the zone's name.
  public init(address text: String, interface: String? = nil) throws(InvalidAddress) {
    guard let address = try? SocketAddress(literal: text, port: 0, kernel: LinuxKernel.shared) else {
      throw InvalidAddress(text: text)
    }
    self.init(address: address, interface: interface)
  }

  /// Returns the endpoint for packets of a traffic class and, if `usesMultipath` is `true`, several paths.
  ///
  /// - Parameter trafficClass: The class; 0 leaves the endpoint's own.
  /// - Returns: The endpoint, or `nil` if it leaves everything to the kernel.
  public static func endpoint(
    _ own: LocalEndpoint?, trafficClass: UInt8, usesMultipath: Bool
  ) -> LocalEndpoint? {
    guard trafficClass != 0 || usesMultipath else { return own }
    return LocalEndpoint(
      address: own?.address, interface: own?.interface,
      trafficClass: trafficClass != 0 ? trafficClass : own?.trafficClass ?? 0,
      usesMultipath: usesMultipath || own?.usesMultipath == true)
  }

  /// Whether the machine has the endpoint's interface, or the endpoint has none.
  public func hasInterface(_ kernel: any Kernel) -> Bool {
    interface.map { NetworkInterface.isName($0) && kernel.interfaceIndex(of: $0) > 0 } ?? true
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
