import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The way to a server: whatever may make two connections unequal. Requests share connections if their routes are equal.
public struct Route: Sendable {
  /// A name or an IP address, without brackets.
  public var host: String
  public var port: UInt16
  /// Nil: plain HTTP.
  public var security: Security?
  /// Nil: straight to the host.
  public var proxy: ProxyRoute?
  /// This end of the connection: an address or an interface. Nil: the kernel chooses.
  public var local: LocalEndpoint?
  /// A Unix-domain socket to connect to in place of the host's addresses. Then there is no proxy.
  public var socketPath: String?

  public init(host: String, port: UInt16, security: Security? = nil, proxy: ProxyRoute? = nil) {
    // RFC 9110 4.2.3: names are equal without regard to case.
    // An interface's name, in the zone of an address, has a case that counts.
    self.host = host.utf8.contains(UInt8(ascii: "%")) ? host : host.lowercased()
    self.port = port
    self.security = security
    self.proxy = proxy
  }

  /// Whether requests go to a proxy that makes them itself, in absolute form (RFC 9112 3.2.2).
  private var isForwarded: Bool { socketPath == nil && proxy?.proxy.forwards(toSecure: security != nil) == true }

  /// Opens a connection.
  func connect(
    by resolver: Resolver, on loop: ClientLoop, deadline: Deadline, limits: Limits, observer: Connection.Observer?
  ) async throws(TransportError) -> Connection {
    guard let socketPath else {
      return try await Connection.open(
        host: host, port: port, security: security, via: proxy, resolver: resolver, from: local, on: loop,
        deadline: deadline, limits: limits, observer: observer)
    }
    return try await Connection.open(
      to: [.unix(path: socketPath)], as: host, port: port, security: security, on: loop, deadline: deadline,
      limits: limits, observer: observer)
  }
}

extension Route: Hashable {
  /// Whether connections by the one are as good as connections by the other. A connection to a proxy that makes the requests
  /// itself serves all hosts.
  public static func == (one: Route, other: Route) -> Bool {
    one.security == other.security && one.proxy == other.proxy && one.local == other.local
      && one.socketPath == other.socketPath && (one.isForwarded || one.host == other.host && one.port == other.port)
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
  }
}
