/// A challenge of the scheme Digest (RFC 7616 3.3).
public struct DigestChallenge: Hashable, Sendable {
  /// The quality of protection: the parts of a request that a response covers.
  public enum Quality: String, Hashable, Sendable {
    case authentication = "auth"
    /// The method, the target and the body.
    case integrity = "auth-int"
  }

  public let realm: String
  public var nonce: String
  public let opaque: String?
  public let algorithm: DigestAlgorithm
  /// The supported qualities that the server offers. Empty if the server follows RFC 2069, which has responses without
  /// counts.
  public let qualities: Set<Quality>
  /// Whether the previous request's nonce was too old, while its user and password were right.
  public let isStale: Bool
  /// Whether the server asks for a hash of the user's name.
  public let hashesUser: Bool
  /// Whether the server declares that it reads UTF-8.
  public let isUTF8: Bool
  /// URIs, absolute or relative, of the protection space. Empty if the space is the whole server.
  public let domain: [String]

  /// Maximum number of URIs of a domain; later ones are ignored. Without a limit, a server could make each later
  /// request compare its path with thousands of URIs.
  public static let domainMax = 32

  /// Reads a challenge.
  ///
  /// - Returns: The Digest challenge, or `nil` if the challenge is of another scheme or cannot be answered.
  public init?(_ challenge: Challenge) {
    guard challenge.scheme == "digest", let realm = challenge["realm"], let nonce = challenge["nonce"],
      let algorithm = DigestAlgorithm(challenge["algorithm"])
    else { return nil }
    let offered = (challenge["qop"] ?? "").lowercased().split { $0 == "," || $0.isWhitespace }
    qualities = Set(offered.compactMap { Quality(rawValue: String($0)) })
    if !offered.isEmpty, qualities.isEmpty { return nil }
    self.realm = realm
    self.nonce = nonce
    self.algorithm = algorithm
    opaque = challenge["opaque"]
    isStale = challenge["stale"]?.lowercased() == "true"
    hashesUser = challenge["userhash"]?.lowercased() == "true"
    isUTF8 = challenge["charset"]?.lowercased() == "utf-8"
    domain = (challenge["domain"] ?? "").split(separator: " ").prefix(Self.domainMax).map(String.init)
  }

  /// The quality that a response uses, or `nil` if the server offers none. `auth-int` is used only if the server offers
  /// nothing else, because it reads the body twice.
  public var quality: Quality? {
    qualities.contains(.authentication) ? .authentication : qualities.first
  }
}
