import LarkspurHTTP
import LarkspurTransport

extension Route {
  /// Returns the proxy of the connections to the host, or `nil` if they lead to the host itself. A Unix socket has none.
  package func proxy(of settings: ProxySettings?, isSecure: Bool) -> Proxy? {
    socketPath == nil ? settings?.proxy(toHost: host, port: port, isSecure: isSecure) : nil
  }

  /// Whether requests go to the proxy in place of the host. A host that is overridden by another one is reached by a
  /// tunnel.
  package func isForwarded(by proxy: Proxy, isSecure: Bool) -> Bool {
    place == nil && proxy.forwards(toSecure: isSecure)
  }
}
