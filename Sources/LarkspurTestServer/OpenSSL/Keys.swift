import CLarkspurTestServer

/// Operations with private keys. A key is an array of bytes (PKCS#8 in DER), which can be copied and kept anywhere.
enum Keys {
  static func make(_ kind: TestCertificate.KeyKind) throws(TestCA.Failure) -> [UInt8] {
    let curve: String? =
      switch kind {
      case .ecP256: "P-256"
      case .ecP384: "P-384"
      case .ecP521: "P-521"
      case .ed25519: "ED25519"
      case .rsa: nil
      }
    let bits: Int32 = if case .rsa(let bits) = kind { Int32(clamping: bits) } else { 0 }
    return try unsafe collect("make a key \(kind)") { out, count in
      // Safe: the name is lent for the call.
      unsafe larkspur_ca_make_key(curve, bits, out, count)
    }
  }

  /// - Returns: The algorithm of the key, or `nil` if the bytes are no key or the algorithm is not supported.
  static func algorithm(of key: [UInt8]) -> Algorithm? {
    // Safe: the key is lent for the call, with its length.
    switch unsafe Int(larkspur_ca_key_kind(key, key.count)) {
    case LARKSPUR_CA_EC: .ec
    case LARKSPUR_CA_RSA: .rsa
    case LARKSPUR_CA_ED25519: .ed25519
    default: nil
    }
  }

  enum Algorithm {
    case ec, rsa, ed25519
  }

  /// Returns the SubjectPublicKeyInfo in DER.
  static func publicKey(of key: [UInt8]) throws(TestCA.Failure) -> [UInt8] {
    // Safe: the key is lent for the call, with its length.
    try unsafe collect("read a key") { out, count in unsafe larkspur_ca_public_key(key, key.count, out, count) }
  }

  /// Returns the SHA-1 of the public key's bits (RFC 5280, section 4.2.1.2).
  static func identifier(of key: [UInt8]) throws(TestCA.Failure) -> [UInt8] {
    // Safe: the key is lent for the call, with its length.
    try unsafe collect("read a key") { out, count in unsafe larkspur_ca_key_identifier(key, key.count, out, count) }
  }

  static func sign(
    _ bytes: [UInt8], with key: [UInt8], _ digest: TestCertificate.Digest
  ) throws(TestCA.Failure) -> [UInt8] {
    try unsafe collect("sign") { out, count in
      // Safe: key, text and bytes are lent for the call, with their lengths or NUL-terminated.
      unsafe larkspur_ca_sign(key, key.count, digest.opensslName, bytes, bytes.count, out, count)
    }
  }

  static func sha1(_ bytes: [UInt8]) throws(TestCA.Failure) -> [UInt8] {
    // Safe: the bytes are lent for the call, with their length.
    try unsafe collect("digest") { out, count in unsafe larkspur_ca_digest("SHA1", bytes, bytes.count, out, count) }
  }

  static func encryptedPEM(
    _ key: [UInt8], passphrase: String, isTraditional: Bool
  ) throws(TestCA.Failure) -> String {
    let bytes = try unsafe collect("encrypt a key") { out, count in
      // Safe: key and passphrase are lent for the call.
      unsafe larkspur_ca_encrypt_key(key, key.count, passphrase, isTraditional ? 1 : 0, out, count)
    }
    return text(of: bytes)
  }

  static func pkcs12(
    _ key: [UInt8], certificates: [[UInt8]], password: String, name: String, isLegacy: Bool
  ) throws(TestCA.Failure) -> [UInt8] {
    let joined = Array(certificates.joined())
    return try unsafe collect("make PKCS#12") { out, count in
      // Safe: key, certificates and text are lent for the call, with their lengths or NUL-terminated.
      unsafe larkspur_ca_pkcs12(
        key, key.count, joined, joined.count, password, name, isLegacy ? 1 : 0, out, count)
    }
  }

  static var secondsNow: Int { Int(larkspur_ca_seconds_now()) }

  /// Calls a function that allocates bytes, and copies them. `what` names the operation for the error.
  private static func collect(
    _ what: String, _ body: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<Int>) -> Int32
  ) throws(TestCA.Failure) -> [UInt8] {
    var out: UnsafeMutablePointer<UInt8>?
    var count = 0
    // Safe: on success the function has allocated `count` bytes, which the caller frees.
    guard unsafe body(&out, &count) == 1, let bytes = unsafe out else {
      throw TestCA.Failure(description: "cannot \(what): \(errorMessage())")
    }
    defer { unsafe larkspur_ca_free(bytes) }
    return unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
  }

  /// Returns the oldest error in OpenSSL's queue for this thread, in words, and clears the queue.
  static func errorMessage() -> String {
    // Safe: the text is NUL-terminated and fits the buffer.
    unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress else { return "" }
      unsafe larkspur_ca_error(base, buffer.count)
      return unsafe String(cString: base)
    }
  }
}
