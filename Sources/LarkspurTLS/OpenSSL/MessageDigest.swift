/// A digest of bytes that may arrive in pieces. Use it on one thread at a time.
@safe
public struct MessageDigest: ~Copyable {
  public enum Algorithm: Hashable, Sendable, CaseIterable {
    /// Broken for signatures. Digest authentication and old checksums still need it.
    case md5
    /// Broken for signatures. The opening handshake of a WebSocket needs it, for which it is good enough.
    case sha1
    case sha256
    case sha512
    /// SHA-512/256 of FIPS 180-4: a shorter SHA-512 with its own initial values.
    case sha512_256
  }

  // Safe: the context belongs to this value and is freed with it.
  private let context: OpaquePointer

  /// Creates a digest, or returns `nil` if OpenSSL does not provide the algorithm (its policy may forbid MD5).
  public init?(_ algorithm: Algorithm) {
    // Safe: the algorithms are constants of OpenSSL, and every path frees the context.
    guard let context = unsafe EVP_MD_CTX_new() else { return nil }
    guard unsafe EVP_DigestInit_ex(context, Self.kind(algorithm), nil) == 1 else {
      unsafe EVP_MD_CTX_free(context)
      ErrorQueue.clear()
      return nil
    }
    unsafe self.context = unsafe context
  }

  deinit {
    // Safe: this value is the only owner.
    unsafe EVP_MD_CTX_free(context)
  }

  public mutating func update(_ bytes: Span<UInt8>) {
    // Safe: the bytes are lent for the call.
    unsafe bytes.withUnsafeBytes { _ = unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
  }

  /// Returns the digest, or `nil` if OpenSSL failed.
  public consuming func finish() -> [UInt8]? {
    // Safe: EVP_DigestFinal_ex writes at most EVP_MAX_MD_SIZE bytes, and returns their number.
    var isDone = false
    let digest = unsafe [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
      var length: UInt32 = 0
      isDone = unsafe EVP_DigestFinal_ex(context, buffer.baseAddress, &length) == 1
      count = isDone ? Int(length) : 0
    }
    if !isDone { ErrorQueue.clear() }
    return isDone ? digest : nil
  }

  /// Returns the digest of the bytes, or `nil` if OpenSSL does not provide the algorithm.
  public static func of(_ bytes: [UInt8], _ algorithm: Algorithm) -> [UInt8]? {
    guard var digest = MessageDigest(algorithm) else { return nil }
    digest.update(bytes.span)
    return digest.finish()
  }

  @unsafe
  private static func kind(_ algorithm: Algorithm) -> OpaquePointer? {
    // Safe: constants.
    switch algorithm {
    case .md5: unsafe EVP_md5()
    case .sha1: unsafe EVP_sha1()
    case .sha256: unsafe EVP_sha256()
    case .sha512: unsafe EVP_sha512()
    case .sha512_256: unsafe EVP_sha512_256()
    }
  }
}
