import Foundation

/// A server, a part of a server, or a proxy that requires authentication. Immutable, and safe to use from any thread.
///
/// Two spaces are equal if their host (ignoring case), port, protocol or proxy type, realm and method are equal.
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

  /// Creates the space of a server.
  ///
  /// - Parameters:
  ///   - host: A name or an address, without brackets.
  ///   - port: The port number. A session's challenges always give it, even if it is the protocol's default.
  ///   - protocol: A URL scheme, such as `https`.
  ///   - realm: The server's name for the part of it that the credentials are for.
  ///   - authenticationMethod: One of `NSURLAuthenticationMethod...`. `nil` means ``NSURLAuthenticationMethodDefault``.
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

  /// Creates the space of a proxy.
  ///
  /// - Parameters:
  ///   - host: The proxy's name or address.
  ///   - port: The proxy's port.
  ///   - type: The proxy's type, such as ``NSURLProtectionSpaceHTTPProxy``.
  ///   - realm: The proxy's name for the space, or `nil` if it has none.
  ///   - authenticationMethod: One of `NSURLAuthenticationMethod...`. `nil` means ``NSURLAuthenticationMethodDefault``.
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

  /// Creates the space of a TLS handshake. With `trust` it asks about the server's certificates; otherwise it asks for
  /// a client certificate of one of `issuers`.
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

  /// Writes everything except ``serverTrust``, which belongs to one connection. Foundation on Linux does not archive
  /// this class.
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

  /// Reads a space.
  ///
  /// - Returns: `nil` if the archive holds no space, or one whose host has control characters or whose port is not in
  ///   0...65,535.
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

  // MARK: - Properties

  /// The name or address of the server or proxy.
  open var host: String { storedHost }

  /// The port of the server or proxy.
  open var port: Int { storedPort }

  /// The scheme, such as `https`, or `nil` for a proxy.
  open var `protocol`: String? { storedProtocol }

  /// The type of the proxy, or `nil` for a server.
  open var proxyType: String? { storedProxyType }

  /// The part of the server or proxy, or `nil` if the challenge names no realm.
  open var realm: String? { storedRealm }

  /// The method by which the client has to authenticate: one of `NSURLAuthenticationMethod...`.
  open var authenticationMethod: String { storedMethod }

  /// Whether the space is that of a proxy.
  open override func isProxy() -> Bool { isOfProxy }

  /// Whether credentials are sent over TLS. Digest without TLS does not count as secure: an observer of its answers can
  /// try passwords on them.
  open var receivesCredentialSecurely: Bool {
    if isOfProxy { return proxyType == NSURLProtectionSpaceHTTPSProxy }
    return ["https", "ftps"].contains(`protocol`?.lowercased())
  }

  /// The distinguished names (DER) of the issuers whose client certificates the server accepts. Empty if it accepts any
  /// issuer; `nil` if the space is not about a client certificate.
  open var distinguishedNames: [Data]? { issuers }

  /// The server's certificates, or `nil` if the space is not about them. Foundation on Linux does not have this member.
  open var serverTrust: SecTrust? { trust }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns the space itself, which is immutable.
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

  /// A human-readable description of the space, in Foundation's form. A method that is not one of
  /// `NSURLAuthenticationMethod...` is shown as ``NSURLAuthenticationMethodDefault``, as in Foundation.
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
