import LarkspurBytes

/// A proxy: its address, its protocol, and the credentials for it.
public struct Proxy: Hashable, Sendable {
  /// The protocol between the client and a proxy. The raw value is the scheme of a URL.
  public enum Kind: String, Hashable, Sendable, CaseIterable {
    /// HTTP without TLS to the proxy.
    case http
    /// HTTP over TLS to the proxy.
    case https
    /// SOCKS4: the client looks the name up, and the proxy gets an IPv4 address.
    case socks4
    /// SOCKS4a: the proxy looks the name up.
    case socks4a
    /// SOCKS5: the client looks the name up, and the proxy gets an address.
    case socks5
    /// SOCKS5: the proxy looks the name up.
    case socks5h

    /// Whether the protocol is a version of SOCKS.
    public var isSOCKS: Bool { self != .http && self != .https }
    /// Whether the client looks names up, so that the proxy gets an address and no name.
    public var resolvesHere: Bool { self == .socks4 || self == .socks5 }
    /// The default port of the kind, which is curl's: the port of SOCKS (RFC 1928 3) for `http`, too.
    var ownPort: UInt16 { self == .https ? 443 : 1080 }
  }

  /// The protocol to the proxy.
  public let kind: Kind
  /// The proxy's name or IP address, without brackets. An IPv6 address may have a zone: `fe80::1%eth0`.
  public let host: String
  /// The proxy's TCP port.
  public let port: UInt16
  /// User and password, percent-decoded.
  public let credentials: UserInfo?

  /// Returns whether the proxy is sent the requests to a server and forwards them. Otherwise it makes a tunnel.
  ///
  /// - Parameter isSecure: Whether the requests go to the server over TLS.
  public func forwards(toSecure isSecure: Bool) -> Bool { !kind.isSOCKS && !isSecure }

  /// Why a text does not name a proxy. The error holds no part of the text but the scheme, and never a password.
  public enum Invalid: Error, Hashable, Sendable {
    /// The scheme belongs to no `Kind`.
    case schemeUnsupported(String)
    /// The host is missing, or neither a name nor an IP address.
    case hostInvalid
    /// The port is no number from 1 to 65535.
    case portInvalid
  }

  /// - Parameters:
  ///   - host: A name, or an IP address in a form that ``HostAddress`` reads. An IPv6 address may have brackets.
  ///   - port: From 1 to 65535, or `nil` for the default port of the kind.
  public init(_ kind: Kind, host: String, port: UInt16? = nil, credentials: UserInfo? = nil) throws(Invalid) {
    let isBracketed = host.utf8.first == UInt8(ascii: "[") && host.utf8.last == UInt8(ascii: "]")
    let address = HostAddress(isBracketed ? String(host.dropFirst().dropLast()) : host)
    guard isBracketed ? address?.isIPv6 == true : address != nil || Self.isName(host) else { throw .hostInvalid }
    guard port != 0 else { throw .portInvalid }
    self.kind = kind
    self.host = address?.host ?? host
    self.port = port ?? kind.ownPort
    self.credentials = credentials
  }

  /// Reads `[scheme://][user[:password]@]host[:port][/path]`. Without a scheme the kind is `http`; `socks` means
  /// `socks4`. The path is ignored, as in curl.
  public init(_ text: String) throws(Invalid) {
    let (kind, afterScheme) = try Self.splitKind(Array(text.utf8)[...])
    var rest = afterScheme
    let credentials = UserInfo.take(from: &rest)
    if let slash = rest.firstIndex(of: UInt8(ascii: "/")) { rest = rest[..<slash] }
    guard let (host, port) = splitPort(rest) else { throw .hostInvalid }
    guard port.isEmpty || port.allSatisfy(ASCII.isDigit) else { throw .portInvalid }
    let number = UInt16(String(decoding: port, as: UTF8.self))
    guard number != nil || port.isEmpty else { throw .portInvalid }
    try self.init(kind ?? .http, host: String(decoding: host, as: UTF8.self), port: number, credentials: credentials)
  }

  /// Splits the scheme off the front of a text.
  ///
  /// - Returns: The kind that the scheme names, or `nil` without a scheme; and the rest of the text.
  public static func splitKind(_ text: ArraySlice<UInt8>) throws(Invalid) -> (kind: Kind?, rest: ArraySlice<UInt8>) {
    let end = text.firstIndex { !ASCII.isSchemeCharacter($0) } ?? text.endIndex
    guard text[end...].starts(with: "://".utf8) else { return (nil, text) }
    let scheme = String(decoding: text[..<end], as: UTF8.self).lowercased()
    guard let kind = scheme == "socks" ? .socks4 : Kind(rawValue: scheme) else { throw .schemeUnsupported(scheme) }
    return (kind, text[(end + 3)...])
  }

  /// Returns whether the text can be a proxy's host name: 1 to 253 bytes without a special meaning in a URL, a field or
  /// a log.
  private static func isName(_ host: String) -> Bool {
    1...253 ~= host.utf8.count
      && host.utf8.allSatisfy { byte in
        ASCII.isDigit(byte) || UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte | 0x20 || "-._".utf8.contains(byte)
      }
  }
}

extension Proxy: CustomStringConvertible {
  /// The proxy as a URL without user and password: `socks5h://proxy.example:1080`.
  public var description: String {
    let host = HostAddress(host).map { $0.isIPv6 ? $0.bracketed : $0.literal } ?? host
    return "\(kind.rawValue)://\(host):\(port)"
  }
}

extension Proxy.Invalid: CustomStringConvertible {
  public var description: String {
    switch self {
    case .schemeUnsupported(let scheme):
      "\(scheme.debugDescription) is no kind of proxy: "
        + Proxy.Kind.allCases.map(\.rawValue).joined(separator: ", ") + " are"
    case .hostInvalid: "the proxy has no host, or one that cannot be a name or an address"
    case .portInvalid: "the proxy's port is not a number from 1 to 65535"
    }
  }
}

/// Returns `host:port` for a peer, with brackets around an IPv6 address (RFC 3986 3.2.2), and without its zone, which
/// has a meaning on this machine only (RFC 6874, section 4).
public func authority(_ host: String, _ port: UInt16) -> String {
  let host = HostAddress(host)?.literal ?? host
  return host.utf8.contains(ASCII.colon) ? "[\(host)]:\(port)" : "\(host):\(port)"
}

/// Splits `host`, `host:port`, `[address]` or `[address]:port`.
///
/// - Returns: The host without brackets and the port, which may be empty; or `nil` if the closing bracket is missing,
///   if something else than a port follows it, if the text in brackets has no colon, or if an IPv6 address has no
///   brackets.
func splitPort(_ bytes: ArraySlice<UInt8>) -> (host: ArraySlice<UInt8>, port: ArraySlice<UInt8>)? {
  var host = bytes
  var rest = bytes.suffix(0)
  if bytes.first == UInt8(ascii: "[") {
    guard let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) else { return nil }
    host = bytes[..<bracket].dropFirst()
    rest = bytes[(bracket + 1)...]
    guard host.contains(ASCII.colon) else { return nil }
  } else if let colon = bytes.firstIndex(of: ASCII.colon) {
    host = bytes[..<colon]
    rest = bytes[colon...]
  }
  guard rest.isEmpty || rest.first == ASCII.colon, !rest.dropFirst().contains(ASCII.colon) else { return nil }
  return (host, rest.dropFirst())
}
