import Foundation
import LarkspurHTTP
import Synchronization

/// A proxy, and the hosts that are reached through it. The name and the members are those of Darwin's framework Network, as
/// far as HTTP/1.1 goes. For ``URLSessionConfiguration/proxyConfigurations``.
public struct ProxyConfiguration: Sendable, CustomDebugStringConvertible {
  /// The values, as they travel to the runner of a background session.
  struct Content: Codable {
    var kind: String
    var host: String
    var port: UInt16
    var user: String?
    var password: String?
    var matchDomains: [String] = []
    var excludedDomains: [String] = []
    var allowsFailover = false
  }

  /// User and password. Copies share them: as on Darwin, `applyCredential` changes a constant, too.
  private final class Credential: Sendable {
    let value = Mutex<(user: String, password: String)?>(nil)
  }

  private let kind: Proxy.Kind
  private let endpoint: NWEndpoint
  private let credential = Credential()

  /// The domains whose hosts are reached through the proxy: each a name, which stands for itself and all names below it, or
  /// an address or a network. Empty, the default, for all hosts.
  public var matchDomains: [String] = []

  /// The domains whose hosts are reached without this proxy, in the form of ``matchDomains``. Empty by default.
  public var excludedDomains: [String] = []

  /// Whether a host is reached without a proxy if the proxy cannot be reached, does not answer in half of the connection's
  /// time, or breaks the connection. `false` by default. A proxy that refuses the host is no reason.
  public var allowFailover = false

  /// Creates a proxy that opens a tunnel for each connection by CONNECT (RFC 9110 9.3.6), also for `http` URLs.
  ///
  /// - Parameters:
  ///   - httpCONNECTProxy: The host and the port of the proxy.
  ///   - tlsOptions: Options to reach the proxy over TLS, or `nil` for plain TCP.
  public init(httpCONNECTProxy: NWEndpoint, tlsOptions: NWProtocolTLS.Options? = nil) {
    kind = tlsOptions == nil ? .http : .https
    endpoint = httpCONNECTProxy
  }

  /// Creates a SOCKS 5 proxy (RFC 1928), which resolves the names of hosts.
  ///
  /// - Parameter socksv5Proxy: The host and the port of the proxy.
  public init(socksv5Proxy: NWEndpoint) {
    kind = .socks5h
    endpoint = socksv5Proxy
  }

  /// Not available: relays speak HTTP/2 or HTTP/3.
  @available(*, unavailable, message: "relays need HTTP/2 or HTTP/3, and Larkspur speaks HTTP/1.1")
  public init(relayHops: [RelayHop]) { self.init(socksv5Proxy: .hostPort(host: .name("", nil), port: .any)) }

  /// Not available: Oblivious HTTP needs a relay.
  @available(*, unavailable, message: "Oblivious HTTP needs HTTP/2 or HTTP/3, and Larkspur speaks HTTP/1.1")
  public init(
    obliviousHTTPRelay: RelayHop, relayResourcePath: String, gatewayKeyConfig: Data, matchDomains: [String]
  ) {
    self.init(socksv5Proxy: .hostPort(host: .name("", nil), port: .any))
  }

  /// A relay. There are no values.
  public enum RelayHop: Sendable {}

  /// Sets the user and the password for the proxy, which gets them without a challenge: as Basic authorization, or by RFC
  /// 1929. SOCKS limits both to 255 bytes.
  public func applyCredential(username: String, password: String) {
    credential.value.withLock { $0 = (username, password) }
  }

  /// The kind and the place of the proxy, without user and password.
  public var debugDescription: String { "\(kind.rawValue)://\(endpoint)" }

  // MARK: - Values

  var content: Content {
    let known = credential.value.withLock { $0 }
    return switch endpoint {
    case .hostPort(let host, let port):
      Content(
        kind: kind.rawValue, host: host.debugDescription, port: port.rawValue, user: known?.user,
        password: known?.password, matchDomains: matchDomains, excludedDomains: excludedDomains,
        allowsFailover: allowFailover)
    }
  }

  /// Creates the configuration of a content, or returns `nil` if its kind is not known.
  init?(_ content: Content) {
    guard let kind = Proxy.Kind(rawValue: content.kind) else { return nil }
    self.kind = kind
    endpoint = .hostPort(host: NWEndpoint.Host(content.host), port: NWEndpoint.Port(integerLiteral: content.port))
    (matchDomains, excludedDomains) = (content.matchDomains, content.excludedDomains)
    allowFailover = content.allowsFailover
    if let user = content.user { applyCredential(username: user, password: content.password ?? "") }
  }

  /// An error of one of the configurations.
  struct Invalid: Error, Hashable, CustomStringConvertible {
    var index: Int
    var reason: String

    var description: String { "proxyConfigurations[\(index)]: \(reason)" }
  }

  /// Returns the rule of the configuration with this index.
  func rule(_ index: Int) throws(Invalid) -> ProxyRule {
    let content = content
    let credentials = content.user.map {
      UserInfo(user: Array($0.utf8), password: Array((content.password ?? "").utf8))
    }
    func hosts(_ domains: [String]) throws(Invalid) -> ProxyExceptions {
      guard let hosts = ProxyExceptions(domains: domains) else {
        throw Invalid(index: index, reason: "one of \(domains) is no domain, address or network")
      }
      return hosts
    }
    let longest = max(credentials?.user.count ?? 0, credentials?.password.count ?? 0)
    guard !kind.isSOCKS || longest <= SOCKSMachine.userBytesMax else {
      throw Invalid(index: index, reason: "user and password may have \(SOCKSMachine.userBytesMax) bytes each")
    }
    let proxy: Proxy
    do throws(Proxy.Invalid) {
      proxy = try Proxy(kind, host: content.host, port: content.port, credentials: credentials)
    } catch {
      throw Invalid(index: index, reason: "\(error)")
    }
    var rule = ProxyRule(proxy)
    rule.alwaysTunnels = true
    rule.allowsFailover = allowFailover
    if !matchDomains.isEmpty { rule.hosts = try hosts(matchDomains) }
    rule.excludedHosts = try hosts(excludedDomains)
    return rule
  }
}

extension URLSessionConfiguration {
  /// The proxies of the session. The first one that covers a host is used; a host without such a proxy is reached
  /// directly. If the array is empty, the default, ``connectionProxyDictionary`` or the environment counts; otherwise
  /// they are ignored. curl's options are `--proxytunnel` with `--proxy`, `--socks5-hostname` and `--noproxy`.
  ///
  /// All tasks of the session fail with `URLError.cannotConnectToHost` and this property's name if a host or a domain cannot
  /// be one, or a port is 0. Background sessions use the proxies, too.
  public var proxyConfigurations: [ProxyConfiguration] {
    get { storage.proxyConfigurations }
    set { storage.proxyConfigurations = newValue }
  }
}
