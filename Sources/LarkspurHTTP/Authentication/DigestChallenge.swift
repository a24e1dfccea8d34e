/// A challenge of the scheme Digest (RFC 7616 3.3).
public struct DigestChallenge: Hashable, Sendable {
  /// What a response protects.
  public enum Quality: String, Hashable, Sendable {
    case authentication = "auth"
    /// The body as well.
    case integrity = "auth-int"
  }

  public let realm: String
  public var nonce: String
  public let opaque: String?
  public let algorithm: DigestAlgorithm
  /// Those that we know. None: the server is of RFC 2069's time, and wants a response without counts.
  public let qualities: Set<Quality>
  /// The nonce of the request before was too old; its user and password were right.
  public let isStale: Bool
  /// The server wants to see the user's name hashed.
  public let hashesUser: Bool
  /// The server says that it reads UTF-8.
  public let isUTF8: Bool
  /// URIs, absolute or not, of the protection space. None: all of the server.
  public let domain: [String]

  /// URIs of a domain that count. A server could otherwise make every later request compare itself with thousands.
  public static let domainMax = 32

  /// Nil: it is no Digest challenge, or one that cannot be answered.
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

  /// The body's integrity is the server's wish only where it offers nothing else: it costs reading the body twice.
  public var quality: Quality? {
    qualities.contains(.authentication) ? .authentication : qualities.first
  }
}
