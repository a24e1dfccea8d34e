import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The path to a server, with everything that can make two connections different. Requests share connections if their
/// routes are equal.
public struct Route: Sendable {
  /// A name or an IP address, without brackets.
  public var host: String
  public var port: UInt16
  /// How to use TLS, or `nil` for plain HTTP.
  public var security: Security?
  /// The proxy, or `nil` to connect to the host itself.
  public var proxy: ProxyRoute?
  /// The local address or interface to connect from, or `nil` to let the kernel choose.
  public var local: LocalEndpoint?
  /// A host and a port to connect to.
  public struct Place: Hashable, Sendable {
    /// A name or an IP address, without brackets.
    public var host: String
    public var port: UInt16

    public init(host: String, port: UInt16) {
      self.host = host
      self.port = port
    }
  }

  /// The host and port to connect to instead of the URL's, or `nil`. TLS and requests keep the host and port. A proxy
  /// then opens a tunnel.
  public var place: Place?
  /// The path of a Unix-domain socket to connect to in place of the host's addresses, or `nil`. The proxy is then
  /// ignored.
  public var socketPath: String?

  public init(host: String, port: UInt16, security: Security? = nil, proxy: ProxyRoute? = nil) {
    // RFC 9110 4.2.3: host names are compared without regard to case. The name of an interface, in the zone of an
    // address, is case-sensitive.
    self.host = host.utf8.contains(UInt8(ascii: "%")) ? host : host.lowercased()
    self.port = port
    self.security = security
    self.proxy = proxy
  }

  /// Whether requests go to a proxy that makes them itself, in absolute form (RFC 9112 3.2.2).
  private var isForwarded: Bool {
    socketPath == nil && place == nil && proxy?.forwards(toSecure: security != nil) == true
  }

  /// The host whose rates the requests count for: the proxy, if it makes the requests itself.
  var ratedPlace: Place {
    if isForwarded, let proxy = proxy?.proxy { return Place(host: proxy.host, port: proxy.port) }
    return Place(host: host, port: port)
  }

  /// Opens a connection over this route.
  func connect(
    by resolver: Resolver, on loop: ClientLoop, deadline: Deadline, timeouts: Timeouts, limits: Limits,
    observer: Connection.Observer?
  ) async throws(TransportError) -> Connection {
    guard let socketPath else {
      // Before the look-up of a name, which would leave by another interface.
      if let local, !local.hasInterface(loop.kernel) { throw .localEndpointUnusable(local, .noSuchDevice) }
      var proxy = proxy
      if place != nil { proxy?.alwaysTunnels = true }
      return try await Connection.open(
        host: host, port: port, at: place, security: security, via: proxy, resolver: resolver, from: local, on: loop,
        deadline: deadline, timeouts: timeouts, limits: limits, observer: observer)
    }
    return try await Connection.open(
      to: [.unix(path: socketPath)], as: host, port: port, security: security, on: loop, deadline: deadline,
      timeouts: timeouts, limits: limits, observer: observer)
  }
}

extension Route: Hashable {
  /// Whether the two routes can share connections. A connection to a proxy that makes the requests itself serves all
  /// hosts.
  public static func == (one: Route, other: Route) -> Bool {
    one.security == other.security && one.proxy == other.proxy && one.local == other.local
      && one.socketPath == other.socketPath && one.place == other.place
      && (one.isForwarded || one.host == other.host && one.port == other.port)
  }

  public func hash(into hasher: inout Hasher) {
    if !isForwarded {
      hasher.combine(host)
      hasher.combine(port)
    }
    hasher.combine(security)
    hasher.combine(proxy)
    hasher.combine(local)
    hasher.combine(socketPath)
    hasher.combine(place)
  }
}
