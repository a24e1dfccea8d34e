/// A proxy, the hosts that it is for, and how it is used.
public struct ProxyRule: Hashable, Sendable {
  /// The proxy for the hosts that the rule covers.
  public var proxy: Proxy
  /// The hosts that are reached through the proxy, or `nil` for all.
  public var hosts: ProxyExceptions?
  /// The hosts that are not.
  public var excludedHosts = ProxyExceptions()
  /// Whether an HTTP proxy opens a tunnel also for connections without TLS, in place of forwarding their requests.
  public var alwaysTunnels = false
  /// Whether a host is reached without a proxy if the proxy cannot be reached. Without effect for connections whose
  /// requests the proxy forwards.
  public var allowsFailover = false

  /// Creates a rule for all hosts.
  public init(_ proxy: Proxy) { self.proxy = proxy }

  func covers(host: String, port: UInt16) -> Bool {
    hosts?.contains(host: host, port: port) != false && !excludedHosts.contains(host: host, port: port)
  }
}
