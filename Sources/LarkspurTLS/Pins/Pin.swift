/// A certificate or key that a host is expected to have in its chain.
public enum Pin: Hashable, Sendable {
  /// This very certificate.
  case certificate(Certificate)
  /// Any certificate with this key: its SubjectPublicKeyInfo, DER.
  case publicKey([UInt8])
  /// Any certificate with the key whose SubjectPublicKeyInfo has this SHA-256, of 32 bytes (RFC 7469 2.4).
  case publicKeySHA256([UInt8])

  /// Reads `sha256/` and 44 characters of base64, as curl and HTTP public key pinning write it. Nil: it is something else.
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
  /// `sha256/...` of the key.
  public var description: String {
    switch self {
    case .certificate(let certificate): certificate.pin.description
    case .publicKey(let key): Pin.publicKeySHA256(SHA256Digest.of(key)).description
    case .publicKeySHA256(let digest): "sha256/" + Base64.encode(digest)
    }
  }
}

extension Certificate {
  /// The pin that goes by the certificate's key, and survives its renewal.
  public var pin: Pin { .publicKeySHA256(publicKeySHA256) }
}
