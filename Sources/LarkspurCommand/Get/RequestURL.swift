import Foundation
import Larkspur
import LarkspurConsole
import LarkspurHTTP
import LarkspurIO

/// A URL of the command line, split into the parts that a request needs.
///
/// Parsing is lenient where users are (no scheme, spaces and umlauts in the path) and strict where a guess could reach
/// the wrong server. Dot segments and existing percent-encoding stay unchanged, because the command is also a tool to
/// test how a server treats them.
package struct RequestURL: Hashable, Sendable {
  package enum Invalid: Error, Hashable, Sendable, CustomStringConvertible {
    case schemeUnsupported(String, Schemes = .http)
    case malformed(String)

    package var description: String {
      switch self {
      case .schemeUnsupported(let scheme, let supported):
        "\(scheme):// is not supported: only \(supported.plain):// and \(supported.secure):// are"
      case .malformed(let message): message
      }
    }
  }

  /// The scheme of a command's URLs, and its secure variant. A WebSocket opens by HTTP, on its ports (RFC 6455 3).
  package struct Schemes: Hashable, Sendable {
    let plain: String
    let secure: String

    func contains(_ scheme: String) -> Bool { scheme == plain || scheme == secure }

    package static let http = Schemes(plain: "http", secure: "https")
    static let webSocket = Schemes(plain: "ws", secure: "wss")
  }

  /// Whether the scheme is the secure one.
  package private(set) var isSecure = false
  /// A name or an IP address, without brackets. A link-local address may have a zone: `fe80::1%eth0`.
  package private(set) var host = ""
  private var zone = ""
  package private(set) var port: UInt16 = 80
  /// The value of the `Host` field: brackets around an IPv6 address, and the port unless it is the scheme's default.
  package private(set) var authority = ""
  /// Path and query, percent-encoded.
  package private(set) var target = "/"
  /// The last name in the path, as it was given, or `nil` if the path ends with a slash or names a directory.
  package private(set) var fileName: String?
  /// The user and the password of the URL, percent-decoded.
  package private(set) var credentials: Credentials?

  package typealias Credentials = UserInfo

  /// The URL without the parts that are not sent (user, password and fragment), percent-encoded as Foundation's `URL`
  /// requires.
  package var uri: String {
    // RFC 6874, section 2. The zone means nothing to the server, so `authority` does not have it.
    let encodedAuthority =
      zone.isEmpty ? authority : "[\(host.prefix { $0 != "%" })%25\(zone)]\(authority.drop { $0 != "]" }.dropFirst())"
    let text = (isSecure ? "https://" : "http://") + encodedAuthority + target
    return LocationValue.reference(text) ?? text
  }

  package init(_ text: String, as schemes: Schemes = .http) throws(Invalid) {
    let bytes = Array(text.utf8)
    var rest = try readScheme(bytes[...], schemes)
    if let fragment = rest.firstIndex(of: UInt8(ascii: "#")) { rest = rest[..<fragment] }
    let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    try readAuthority(rest[..<end])
    let name = rest[end...].prefix { $0 != UInt8(ascii: "?") }.split(
      separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
    ).last.map(Self.string)
    fileName = ["", ".", ".."].contains(name ?? "") ? nil : name
    let encoded = Self.percentEncoded(rest[end...])
    target = encoded.hasPrefix("/") ? encoded : "/" + encoded
  }

  /// Parses a URL of the command line.
  ///
  /// - Parameter assumed: The scheme of a text that has none, or `nil` for the plain one.
  static func parse(
    _ text: String, as schemes: Schemes = .http, assuming assumed: String? = nil
  ) throws(CommandFailure) -> RequestURL {
    let rest = text.utf8.drop(while: ASCII.isSchemeCharacter)
    let hasOwn = text.firstIndex(of: ":").map { schemes.contains(text[..<$0].lowercased()) } == true
    let isBare = !rest.starts(with: "://".utf8) && !hasOwn
    do throws(RequestURL.Invalid) {
      return try RequestURL(isBare ? "\(assumed ?? schemes.plain)://\(text)" : text, as: schemes)
    } catch {
      switch error {
      case .schemeUnsupported: throw CommandFailure(.unsupportedProtocol, "\(error)")
      case .malformed:
        throw CommandFailure(.malformedURL, "\(redacted(text).debugDescription): \(error)")
      }
    }
  }

  /// Returns the text of a URL for a message, without user and password.
  static func redacted(_ text: String) -> String {
    let whole = text.withoutUserinfo
    let authority = whole.prefix { !"/?#".contains($0) }
    return authority.lastIndex(of: "@").map { String(whole[whole.index(after: $0)...]) } ?? whole
  }

  // MARK: - Scheme

  /// The default port of the scheme (RFC 9110, section 4.2).
  private var ownPort: UInt16 { isSecure ? 443 : 80 }

  /// Reads the scheme, or assumes the plain one if there is none.
  ///
  /// - Returns: The bytes behind the scheme.
  private mutating func readScheme(
    _ bytes: ArraySlice<UInt8>, _ schemes: Schemes
  ) throws(Invalid) -> ArraySlice<UInt8> {
    let beforeColon = bytes.prefix(while: ASCII.isSchemeCharacter)
    let scheme = Self.string(beforeColon).lowercased()
    let rest = bytes[beforeColon.endIndex...]
    if rest.starts(with: "://".utf8) {
      guard schemes.contains(scheme) else {
        throw scheme.isEmpty ? .malformed("the URL has no scheme before ://") : .schemeUnsupported(scheme, schemes)
      }
      isSecure = scheme == schemes.secure
      port = ownPort
      return rest.dropFirst(3)
    }
    // Without this check, `http:/host` would mean a host called "http".
    if rest.first == UInt8(ascii: ":"), schemes.contains(scheme) {
      throw .malformed("two slashes are missing after \(scheme):")
    }
    return bytes
  }

  // MARK: - Authority

  private mutating func readAuthority(_ bytes: ArraySlice<UInt8>) throws(Invalid) {
    var bytes = bytes
    // Browsers read a backslash as a slash, so the host of one reading would be the user name of the other.
    guard !bytes.contains(UInt8(ascii: "\\")) else { throw .malformed("a backslash in the authority") }
    credentials = UserInfo.take(from: &bytes)
    if bytes.first == UInt8(ascii: "[") {
      guard let bracket = bytes.firstIndex(of: UInt8(ascii: "]")) else {
        throw .malformed("the ] of the address is missing")
      }
      try readAddress(bytes[(bytes.startIndex + 1)..<bracket])
      try readPort(bytes[(bracket + 1)...])
      return
    }
    let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
    host = try Self.asciiHost(Self.string(bytes[..<colon]))
    if bytes[colon...].dropFirst().contains(UInt8(ascii: ":")) {
      throw .malformed("an IPv6 address has to stand in brackets: [\(Self.string(bytes))]")
    }
    guard !host.isEmpty else { throw .malformed("the URL has no host") }
    guard host.utf8.allSatisfy(Self.isHostCharacter) else {
      throw .malformed("the host name holds an illegal character: \(host.debugDescription)")
    }
    authority = host
    try readPort(bytes[colon...])
  }

  /// Returns the form in which a session looks a host up. A name in ASCII stays as it was given.
  private static func asciiHost(_ host: String) throws(Invalid) -> String {
    if host.utf8.allSatisfy({ $0 < 0x80 }) { return host }
    guard let ascii = URL(string: "http://\(host)/")?.asciiHost else {
      throw .malformed("the host name \(host) has no form in ASCII")
    }
    return ascii
  }

  /// Reads an IPv6 address, optionally with a zone behind `%25` (RFC 6874) or, as users write it, behind `%`.
  private mutating func readAddress(_ bytes: ArraySlice<UInt8>) throws(Invalid) {
    let percent = bytes.firstIndex(of: UInt8(ascii: "%")) ?? bytes.endIndex
    let address = Self.string(bytes[..<percent])
    guard case .ipv6? = SocketAddress(literal: address, port: 0) else {
      throw .malformed("[\(Self.string(bytes))] is not an IPv6 address")
    }
    host = address
    authority = "[\(address)]"
    guard percent < bytes.endIndex else { return }
    let escape = Array("%25".utf8)
    zone = Self.string(bytes[percent...].dropFirst(bytes[percent...].starts(with: escape) ? escape.count : 1))
    guard !zone.isEmpty, zone.utf8.allSatisfy(Self.isHostCharacter) else {
      throw .malformed("[\(Self.string(bytes))] has no zone that could be one")
    }
    host += "%" + zone
  }

  /// Whether the byte may be in a host name. Proper names have no underscore, but names of containers often do.
  private static func isHostCharacter(_ byte: UInt8) -> Bool {
    ASCII.isLetterOrDigit(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
  }

  /// Reads an optional port: nothing, a colon and a number, or a colon only (RFC 3986, section 3.2.3).
  private mutating func readPort(_ bytes: ArraySlice<UInt8>) throws(Invalid) {
    let text = Self.string(bytes.dropFirst())
    guard bytes.isEmpty || bytes.first == UInt8(ascii: ":") else {
      throw .malformed("only a port may follow the address: \(Self.string(bytes).debugDescription)")
    }
    if text.isEmpty { return }
    // UInt16 would accept a plus sign.
    guard let number = UInt16(text), number > 0, text.utf8.first != UInt8(ascii: "+") else {
      throw .malformed("the port is not a number from 1 to 65535: \(text.debugDescription)")
    }
    port = number
    if port != ownPort { authority += ":\(port)" }
  }

  // MARK: - Percent coding

  /// Encodes the characters that a target may not have: everything but visible ASCII, and those visible characters that
  /// RFC 3986 excludes. `%` stays, so that nothing is encoded twice; `[`, `]`, `^` and `|` stay, because servers and
  /// browsers have always used them in queries.
  private static func percentEncoded(_ bytes: ArraySlice<UInt8>) -> String {
    string(
      bytes.flatMap { !(0x21...0x7e).contains($0) || "\"<>\\`{}".utf8.contains($0) ? PercentCoding.escaped($0) : [$0] }[
        ...])
  }

  /// Returns the URL with data after its query, or as its query.
  func appending(query: [UInt8]) -> RequestURL {
    guard !query.isEmpty else { return self }
    var url = self
    // A number sign would begin a fragment.
    let data = Self.percentEncoded(query[...]).replacing("#", with: "%23")
    url.target += (target.utf8.contains(UInt8(ascii: "?")) ? "&" : "?") + data
    return url
  }

  /// Encodes data of a form as curl does: a blank is a plus sign, and all bytes but letters, digits and `-._~` are
  /// percent-encoded.
  static func formEncoded(_ bytes: [UInt8]) -> [UInt8] {
    bytes.flatMap { byte -> [UInt8] in
      if byte == UInt8(ascii: " ") { return [UInt8(ascii: "+")] }
      return ASCII.isLetterOrDigit(byte) || "-._~".utf8.contains(byte) ? [byte] : PercentCoding.escaped(byte)
    }
  }

  private static func string(_ bytes: ArraySlice<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}

extension URLCredential {
  convenience init(_ own: RequestURL.Credentials) {
    self.init(
      user: String(decoding: own.user, as: UTF8.self), password: String(decoding: own.password, as: UTF8.self),
      persistence: .none)
  }
}
