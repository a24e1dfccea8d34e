import Foundation

/// A server, a part of it, or a proxy, that wants to know who its clients are. Immutable, and for any thread.
///
/// Two spaces are equal if host (without regard to case), port, protocol or proxy type, realm and method are.
open class URLProtectionSpace: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  private let storedHost: String
  private let storedPort: Int
  private let storedProtocol: String?
  private let storedProxyType: String?
  private let storedRealm: String?
  private let storedMethod: String
  private let isOfProxy: Bool
  private let trust: ServerTrust?
  private let issuers: [Data]?

  /// A space of a server.
  ///
  /// - Parameters:
  ///   - host: A name or an address, without brackets.
  ///   - port: Its number. A session's challenges always give it, also when it is the protocol's own.
  ///   - protocol: A URL's scheme, such as `https`.
  ///   - realm: What the server calls the part of it that the credentials are for.
  ///   - authenticationMethod: Nil: ``NSURLAuthenticationMethodDefault``.
  public init(host: String, port: Int, protocol: String?, realm: String?, authenticationMethod: String?) {
    storedHost = host
    storedPort = port
    storedProtocol = `protocol`
    storedProxyType = nil
    storedRealm = realm
    storedMethod = authenticationMethod ?? NSURLAuthenticationMethodDefault
    isOfProxy = false
    trust = nil
    issuers = nil
  }

  /// The space of a proxy.
  ///
  /// - Parameters:
  ///   - host: The proxy's name or address.
  ///   - port: The proxy's.
  ///   - type: Such as ``NSURLProtectionSpaceHTTPProxy``.
  ///   - realm: What the proxy calls the space. Nil: nothing.
  ///   - authenticationMethod: Nil: ``NSURLAuthenticationMethodDefault``.
  public init(proxyHost host: String, port: Int, type: String?, realm: String?, authenticationMethod: String?) {
    storedHost = host
    storedPort = port
    storedProtocol = nil
    storedProxyType = type
    storedRealm = realm
    storedMethod = authenticationMethod ?? NSURLAuthenticationMethodDefault
    isOfProxy = true
    trust = nil
    issuers = nil
  }

  /// The space of a TLS handshake: with the server's certificates, or with the issuers that it knows.
  init(host: String, port: Int, trust: ServerTrust?, issuers: [Data]?) {
    storedHost = host
    storedPort = port
    storedProtocol = "https"
    storedProxyType = nil
    storedRealm = nil
    storedMethod =
      trust == nil ? NSURLAuthenticationMethodClientCertificate : NSURLAuthenticationMethodServerTrust
    isOfProxy = false
    self.trust = trust
    self.issuers = issuers
  }

  // MARK: - Archives

  private enum Key {
    static let host = "host"
    static let port = "port"
    static let `protocol` = "protocol"
    static let proxyType = "proxyType"
    static let realm = "realm"
    static let method = "authenticationMethod"
    static let isProxy = "isProxy"
    static let issuers = "distinguishedNames"
  }

  public static var supportsSecureCoding: Bool { true }

  /// Writes everything but ``serverTrust``, which is of one connection. Foundation on Linux does not archive this class.
  open func encode(with aCoder: NSCoder) {
    aCoder.encode(storedHost as NSString, forKey: Key.host)
    aCoder.encode(Int64(storedPort), forKey: Key.port)
    aCoder.encode(storedProtocol as NSString?, forKey: Key.protocol)
    aCoder.encode(storedProxyType as NSString?, forKey: Key.proxyType)
    aCoder.encode(storedRealm as NSString?, forKey: Key.realm)
    aCoder.encode(storedMethod as NSString, forKey: Key.method)
    aCoder.encode(isOfProxy, forKey: Key.isProxy)
    if let issuers { aCoder.encode(issuers as NSArray, forKey: Key.issuers) }
  }

  /// - Returns: `nil` if there is no space in the archive, or none that can be: its host has control characters, or its port is
  ///   above 65,535 or below zero.
  public required init?(coder aDecoder: NSCoder) {
    guard let host = aDecoder.line(forKey: Key.host), let port = aDecoder.number(forKey: Key.port), port <= UInt16.max
    else { return nil }
    storedHost = host
    storedPort = Int(port)
    isOfProxy = aDecoder.flag(forKey: Key.isProxy) ?? false
    storedProtocol = isOfProxy ? nil : aDecoder.text(forKey: Key.protocol)
    storedProxyType = isOfProxy ? aDecoder.text(forKey: Key.proxyType) : nil
    storedRealm = aDecoder.text(forKey: Key.realm)
    storedMethod = aDecoder.text(forKey: Key.method) ?? NSURLAuthenticationMethodDefault
    trust = nil
    issuers = aDecoder.blocks(forKey: Key.issuers)
  }

  // MARK: - What it is

  /// The server's or the proxy's name or address.
  open var host: String { storedHost }

  /// Its port.
  open var port: Int { storedPort }

  /// The scheme, such as `https`. Nil for a proxy.
  open var `protocol`: String? { storedProtocol }

  /// What kind of proxy it is. Nil for a server.
  open var proxyType: String? { storedProxyType }

  /// Which part of the server it is. Nil: there is only one, or the challenge does not say.
  open var realm: String? { storedRealm }

  /// How the client has to show who it is: one of `NSURLAuthenticationMethod...`.
  open var authenticationMethod: String { storedMethod }

  /// Whether it is a proxy's.
  open override func isProxy() -> Bool { isOfProxy }

  /// Whether credentials go there over TLS. Digest alone does not make it so: whoever sees its answers can try out
  /// passwords on them.
  open var receivesCredentialSecurely: Bool {
    if isOfProxy { return proxyType == NSURLProtectionSpaceHTTPSProxy }
    return ["https", "ftps"].contains(`protocol`?.lowercased())
  }

  /// The distinguished names (DER) of the issuers whose certificates the server takes. Nil: it is not about a client
  /// certificate. Empty: any.
  open var distinguishedNames: [Data]? { issuers }

  /// The server's certificates. Nil: it is not about them. Foundation on Linux does not have this member.
  open var serverTrust: SecTrust? { trust }

  open override func copy() -> Any { copy(with: nil) }

  /// A space never changes: it is its own copy.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? URLProtectionSpace else { return false }
    return self === other
      || host.lowercased() == other.host.lowercased() && port == other.port && `protocol` == other.protocol
        && proxyType == other.proxyType && realm == other.realm
        && authenticationMethod == other.authenticationMethod && isProxy() == other.isProxy()
  }

  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(host.lowercased())
    hasher.combine(port)
    hasher.combine(realm)
    hasher.combine(authenticationMethod)
    return hasher.finalize()
  }

  private static let knownMethods: Set<String> = [
    NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest,
    NSURLAuthenticationMethodHTMLForm, NSURLAuthenticationMethodNTLM, NSURLAuthenticationMethodNegotiate,
    NSURLAuthenticationMethodClientCertificate, NSURLAuthenticationMethodServerTrust,
  ]

  /// The parts of the space, for people to read, in Foundation's form. A method that is not one of `NSURLAuthenticationMethod...` is
  /// shown as ``NSURLAuthenticationMethodDefault``, as Foundation shows it.
  open override var description: String {
    let address = String(UInt(bitPattern: ObjectIdentifier(self)), radix: 16)
    let padded = String(repeating: "0", count: max(16 - address.utf8.count, 0)) + address
    let scheme =
      Self.knownMethods.contains(authenticationMethod) ? authenticationMethod : NSURLAuthenticationMethodDefault
    let parts = [
      "Host:\(host)", "Server:\(`protocol` ?? "(null)")", "Auth-Scheme:\(scheme)",
      "Realm:\(realm ?? "(null)")", "Port:\(port)", "Proxy:\(isOfProxy ? "YES" : "NO")",
      "Proxy-Type:\(proxyType ?? "(null)")",
    ]
    return "<\(type(of: self)) 0x\(padded)>: " + parts.joined(separator: ", ")
  }

  open override var debugDescription: String { description }
}
