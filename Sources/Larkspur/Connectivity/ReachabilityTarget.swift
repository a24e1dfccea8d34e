import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// The destination of a route.
enum ReachabilityTarget: Hashable, Sendable {
  case anywhere
  case address(SocketAddress)
  case name(HostName)
  /// Text that cannot be a host.
  case nowhere

  init(host: String) {
    if let address = try? SocketAddress(literal: host, port: 0, kernel: LinuxKernel.shared) {
      self = .address(address)
    } else if let name = try? HostName(host) {
      self = .name(name)
    } else {
      self = .nowhere
    }
  }

  /// Reads a `sockaddr_in` or a `sockaddr_in6`. The family and the scope are in the machine's byte order, the other
  /// numbers in network order.
  init?(socketAddress: Data) {
    let bytes = Array(socketAddress)
    guard bytes.count >= 16 else { return nil }
    let number = { (range: Range<Int>) in bytes[range].reduce(0 as UInt64) { $0 << 8 | UInt64($1) } }
    let own = { (range: Range<Int>) -> UInt32 in
      let value = UInt32(truncatingIfNeeded: bytes[range].reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
      return range.count == 2 ? UInt32(UInt16(littleEndian: UInt16(value))) : UInt32(littleEndian: value)
    }
    let port = UInt16(truncatingIfNeeded: number(2..<4))
    switch own(0..<2) {
    // AF_INET.
    case 2:
      let address = UInt32(truncatingIfNeeded: number(4..<8))
      self = address == 0 ? .anywhere : .address(.ipv4(address, port: port))
    // AF_INET6.
    case 10 where bytes.count >= 28:
      let (high, low) = (number(8..<16), number(16..<24))
      let scope = own(24..<28)
      self = high == 0 && low == 0 ? .anywhere : .address(.ipv6(high: high, low: low, scope: scope, port: port))
    default: return nil
    }
  }

  /// Returns the state of the route now. A name is looked up, which blocks.
  func path(_ monitor: ConnectivityMonitor) -> NetworkReachability.Path {
    switch self {
    case .anywhere:
      guard let network = monitor.current.network else { return .unknown }
      guard network.hasDefaultRoute, let link = network.primaryLink else { return .unreachable }
      return .reachable(NetworkReachability.LinkKind(link.kind))
    case .address(let address): return NetworkReachability.Path(monitor.path(to: address))
    case .name(let name):
      // RFC 6761 6.3: `localhost` names are not looked up.
      if name.isLocalhost { return NetworkReachability.Path(monitor.path(to: .loopback(port: 0))) }
      switch SystemNames.ask(name) {
      case .found(let addresses):
        let paths = addresses.map { NetworkReachability.Path(monitor.path(to: $0)) }
        return paths.first(where: \.isReachable) ?? (paths.contains(.unknown) ? .unknown : .unreachable)
      case .noSuchName, .failed: return .unreachable
      case .unavailable: return .unknown
      }
    case .nowhere: return .unreachable
    }
  }

  /// Whether the state can change while the network does not, because a name has to be looked up.
  var isName: Bool { if case .name = self { true } else { false } }
}

extension NetworkReachability.Path {
  init(_ path: ConnectivityMonitor.Path) {
    self =
      switch path {
      case .unknown: .unknown
      case .none: .unreachable
      case .over(let kind): .reachable(NetworkReachability.LinkKind(kind))
      }
  }
}

extension NetworkReachability.LinkKind {
  init(_ kind: NetworkLink.Kind) {
    self =
      switch kind {
      case .loopback: .loopback
      case .wired: .wired
      case .wireless: .wireless
      case .cellular: .cellular
      case .other: .other
      }
  }
}
