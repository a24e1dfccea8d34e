import LarkspurHTTP
import LarkspurTransport

extension Route {
  /// Returns the rule for the proxy of the connections to the host, or `nil` if they lead to the host itself. A Unix
  /// socket has none.
  package func proxyRule(of settings: ProxySettings?, isSecure: Bool) -> ProxyRule? {
    socketPath == nil ? settings?.rule(toHost: host, port: port, isSecure: isSecure) : nil
  }

  /// Whether requests go to the proxy in place of the host. A host that is overridden by another host is reached
  /// through a tunnel.
  package func isForwarded(by rule: ProxyRule, isSecure: Bool) -> Bool {
    place == nil && !rule.alwaysTunnels && rule.proxy.forwards(toSecure: isSecure)
  }
}
