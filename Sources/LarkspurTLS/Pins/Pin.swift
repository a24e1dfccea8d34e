import LarkspurBytes

/// A certificate or key that a host's chain must contain.
public enum Pin: Hashable, Sendable {
  /// Exactly this certificate.
  case certificate(Certificate)
  /// Any certificate with this key, given as its SubjectPublicKeyInfo (DER).
  case publicKey([UInt8])
  /// Any certificate whose SubjectPublicKeyInfo has this SHA-256 digest of 32 bytes (RFC 7469 2.4).
  case publicKeySHA256([UInt8])

  /// Parses `sha256/` and 44 characters of base64, the format of curl and HTTP public key pinning.
  ///
  /// - Returns: The pin, or `nil` if the text has another format.
  public init?(_ text: String) {
    let prefix = "sha256/"
    guard text.hasPrefix(prefix), let digest = Base64.decode(text.utf8.dropFirst(prefix.utf8.count)),
      digest.count == SHA256Digest.byteCount
    else { return nil }
    self = .publicKeySHA256(digest)
  }

  func matches(_ certificate: Certificate) -> Bool {
    switch self {
    case .certificate(let pinned): pinned == certificate
    case .publicKey(let key): key == certificate.publicKeyInfo
    case .publicKeySHA256(let digest): digest == certificate.publicKeySHA256
    }
  }
}

extension Pin: CustomStringConvertible {
  /// The key's digest as `sha256/...`.
  public var description: String {
    switch self {
    case .certificate(let certificate): certificate.pin.description
    case .publicKey(let key): Pin.publicKeySHA256(SHA256Digest.of(key)).description
    case .publicKeySHA256(let digest): "sha256/" + Base64.encode(digest)
    }
  }
}

extension Certificate {
  /// The pin of the certificate's key. A renewed certificate with the same key still matches.
  public var pin: Pin { .publicKeySHA256(publicKeySHA256) }
}
