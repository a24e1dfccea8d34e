/// The hash algorithms of Digest (RFC 7616 3.3). The caller provides the functions: see ``Function``.
public enum DigestHash: Hashable, Sendable, CaseIterable {
  case md5
  case sha256
  /// SHA-512/256. Its initial values are its own, so it is not the first half of a SHA-512.
  case sha512_256

  /// Returns the hash of bytes, or `nil` if the hash is not available (a policy may forbid MD5).
  public typealias Function = @Sendable (DigestHash, [UInt8]) -> [UInt8]?
}

/// The algorithm of a Digest response (RFC 7616 6.1).
public struct DigestAlgorithm: Hashable, Sendable {
  public let hash: DigestHash
  /// Whether the first nonces of a session are hashed into its key (`-sess`), so that a server can check responses
  /// without the user's secret.
  public let isSession: Bool
  /// The server's text, which the response repeats, or `nil` if the server named no algorithm, which means MD5.
  public let text: String?

  /// Reads the `algorithm` parameter. `nil` as `text` means MD5.
  ///
  /// - Returns: The algorithm, or `nil` if it is unknown.
  public init?(_ text: String?) {
    self.text = text
    var name = text?.lowercased() ?? "md5"
    isSession = name.hasSuffix("-sess")
    if isSession { name.removeLast("-sess".count) }
    switch name {
    case "md5": hash = .md5
    case "sha-256": hash = .sha256
    case "sha-512-256": hash = .sha512_256
    default: return nil
    }
  }

  /// Whether the hash is broken: an ordinary computer finds collisions of MD5.
  public var isWeak: Bool { hash == .md5 }
}
