@_implementationOnly import CLarkspurOpenSSL

/// A hash of bytes that may come in pieces. For one thread at a time.
@safe
public struct MessageDigest: ~Copyable {
  public enum Algorithm: Hashable, Sendable, CaseIterable {
    /// Broken as a signature. Digest authentication and old checksums still ask for it.
    case md5
    case sha256
    /// SHA-512/256 of FIPS 180-4: shorter than SHA-512, and with initial values of its own.
    case sha512_256
  }

  // Safe: the context is this value's own, and is freed with it.
  private let context: OpaquePointer

  /// Nil: OpenSSL has no such hash here (its policy may forbid MD5).
  public init?(_ algorithm: Algorithm) {
    // Safe: the kinds are OpenSSL's own and live for ever; a context is freed on every way out.
    guard let context = unsafe EVP_MD_CTX_new() else { return nil }
    guard unsafe EVP_DigestInit_ex(context, Self.kind(algorithm), nil) == 1 else {
      unsafe EVP_MD_CTX_free(context)
      ErrorQueue.clear()
      return nil
    }
    unsafe self.context = unsafe context
  }

  deinit {
    // Safe: nobody else has it.
    unsafe EVP_MD_CTX_free(context)
  }

  public mutating func update(_ bytes: Span<UInt8>) {
    // Safe: the bytes are lent for the call.
    unsafe bytes.withUnsafeBytes { _ = unsafe EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
  }

  /// The hash. Nil: OpenSSL failed.
  public consuming func finish() -> [UInt8]? {
    // Safe: EVP_DigestFinal_ex writes no more than EVP_MAX_MD_SIZE bytes, and says how many.
    var isDone = false
    let digest = unsafe [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
      var length: UInt32 = 0
      isDone = unsafe EVP_DigestFinal_ex(context, buffer.baseAddress, &length) == 1
      count = isDone ? Int(length) : 0
    }
    if !isDone { ErrorQueue.clear() }
    return isDone ? digest : nil
  }

  /// The hash of bytes that are all there. Nil: OpenSSL has no such hash here.
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
    case .sha256: unsafe EVP_sha256()
    case .sha512_256: unsafe EVP_sha512_256()
    }
  }
}
