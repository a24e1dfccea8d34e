import Foundation
import LarkspurHTTP

// The names of Darwin's framework Network that `ProxyConfiguration` needs, so that programs compile unchanged.

/// The place of a proxy: its host and port.
public enum NWEndpoint: Hashable, Sendable, CustomDebugStringConvertible {
  /// A host by name or address, and a port.
  case hostPort(host: Host, port: Port)

  /// Not available: proxies are reached over TCP.
  @available(*, unavailable, message: "Larkspur reaches proxies by hostPort(host:port:) only")
  public static func unix(path: String) -> NWEndpoint { .hostPort(host: .name("", nil), port: .any) }

  /// Not available: the program names the host and the port.
  @available(*, unavailable, message: "Larkspur reaches proxies by hostPort(host:port:) only")
  public static func url(_ url: URL) -> NWEndpoint { .hostPort(host: .name("", nil), port: .any) }

  /// Not available: Bonjour's services are not looked up.
  @available(*, unavailable, message: "Larkspur reaches proxies by hostPort(host:port:) only")
  public static func service(name: String, type: String, domain: String, interface: NWInterface?) -> NWEndpoint {
    .hostPort(host: .name("", nil), port: .any)
  }

  /// A name or an address of a host.
  public enum Host: Hashable, Sendable, ExpressibleByStringLiteral, CustomDebugStringConvertible {
    /// A name. There are no values for the interface: an IPv6 address names it by its zone, `fe80::1%eth0`.
    case name(String, NWInterface?)
    /// An IPv4 address.
    case ipv4(IPv4Address)
    /// An IPv6 address.
    case ipv6(IPv6Address)

    /// Creates an address if the text is one, and otherwise a name.
    public init(_ text: String) {
      if let address = IPv4Address(text) {
        self = .ipv4(address)
      } else if let address = IPv6Address(text) {
        self = .ipv6(address)
      } else {
        self = .name(text, nil)
      }
    }

    /// Creates an address if the literal is one, and otherwise a name.
    public init(stringLiteral text: String) { self.init(text) }

    /// The name or the address.
    public var debugDescription: String {
      switch self {
      case .name(let name, _): name
      case .ipv4(let address): address.debugDescription
      case .ipv6(let address): address.debugDescription
      }
    }
  }

  /// The number of a port.
  public struct Port: Hashable, Sendable, RawRepresentable, ExpressibleByIntegerLiteral, CustomDebugStringConvertible {
    /// The number, from 0 to 65535.
    public let rawValue: UInt16

    /// Creates a port. Never returns `nil`.
    public init?(rawValue: UInt16) { self.rawValue = rawValue }

    /// Reads a decimal number, or returns `nil` for another text.
    public init?(_ text: String) {
      guard let number = UInt16(text) else { return nil }
      rawValue = number
    }

    /// Creates a port from a literal.
    public init(integerLiteral number: UInt16) { rawValue = number }

    /// The port 0, which no proxy has.
    public static let any: Port = 0
    /// The port 80.
    public static let http: Port = 80
    /// The port 443.
    public static let https: Port = 443
    /// The port 1080.
    public static let socks: Port = 1080

    /// The number in decimal.
    public var debugDescription: String { "\(rawValue)" }
  }

  /// The host and the port.
  public var debugDescription: String {
    switch self {
    case .hostPort(let host, let port): authority(host.debugDescription, port.rawValue)
    }
  }
}

/// An interface of the machine. There are no values.
public enum NWInterface: Hashable, Sendable {}

/// An IPv4 address.
public struct IPv4Address: Hashable, Sendable, CustomDebugStringConvertible {
  /// The address in decimal numbers with dots.
  public let debugDescription: String

  /// Reads an address such as `192.0.2.1`, or returns `nil` for another text.
  public init?(_ text: String) {
    guard let address = HostAddress(text), !address.isIPv6 else { return nil }
    debugDescription = address.host
  }

  private init(known text: String) { debugDescription = text }

  /// The address of this machine itself, 127.0.0.1.
  public static let loopback = IPv4Address(known: "127.0.0.1")
}

/// An IPv6 address, which may have a zone.
public struct IPv6Address: Hashable, Sendable, CustomDebugStringConvertible {
  /// The address with its zone: `fe80::1%eth0`.
  public let debugDescription: String

  /// Reads an address such as `2001:db8::1` or `fe80::1%eth0`, or returns `nil` for another text.
  public init?(_ text: String) {
    guard let address = HostAddress(text), address.isIPv6 else { return nil }
    debugDescription = address.host
  }

  private init(known text: String) { debugDescription = text }

  /// The address of this machine itself, `::1`.
  public static let loopback = IPv6Address(known: "::1")
}

/// The part of Darwin's TLS protocol that has options.
public enum NWProtocolTLS {
  /// The wish to reach a proxy over TLS. Roots, pins and the identity are those of the session
  /// (``URLSessionConfiguration/tlsTrustSettings``).
  public final class Options: Sendable {
    /// Creates the options.
    public init() {}
  }
}
