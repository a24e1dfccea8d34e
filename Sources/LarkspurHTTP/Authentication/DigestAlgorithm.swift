/// The hashes that Digest knows (RFC 7616 3.3). Who calls brings them along: they are not made here.
public enum DigestHash: Hashable, Sendable, CaseIterable {
  case md5
  case sha256
  /// SHA-512/256, which has initial values of its own: not the first half of a SHA-512.
  case sha512_256

  /// Makes a hash of bytes. Nil: this machine does not have it (a policy may forbid MD5).
  public typealias Function = @Sendable (DigestHash, [UInt8]) -> [UInt8]?
}

/// How a Digest response is made (RFC 7616 6.1).
public struct DigestAlgorithm: Hashable, Sendable {
  public let hash: DigestHash
  /// Hashes the first nonces of a session into its key, so that a server can check responses without the user's secret.
  public let isSession: Bool
  /// As the server wrote it, to be repeated to it. Nil: it named none, which means MD5.
  public let text: String?

  /// Nil: it is another one.
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

  /// Whether a collision can be made on any laptop.
  public var isWeak: Bool { hash == .md5 }
}
