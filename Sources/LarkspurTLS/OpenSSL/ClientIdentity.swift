/// A certificate and its private key, with which a client authenticates itself.
@safe
public struct ClientIdentity: Sendable {
  /// The client's own certificate.
  public let certificate: Certificate
  /// The intermediate certificates, which are sent along.
  public let chain: [Certificate]
  /// The files that the identity was read from, or `nil` for an identity from memory. New connections read them again
  /// when they change.
  public var files: Files?
  let key: Reference
  let list: Reference

  /// Parses a certificate with its intermediates (PEM, or one in DER) and its key (PEM, optionally encrypted with
  /// `password`, or unencrypted DER).
  public init(certificates: [UInt8], key: [UInt8], password: String? = nil) throws(TLSError) {
    guard let read = Certificate.readAll(certificates), let leaf = read.first else {
      throw TLSError(.identityUnreadable)
    }
    var failure = larkspur_secret_unreadable
    // Safe: the bytes are lent for the call, which transfers a reference.
    let pointer = unsafe key.withUnsafeBytes {
      unsafe larkspur_read_key($0.baseAddress, $0.count, password, &failure)
    }
    guard let key = unsafe Reference(pointer, releasedBy: { unsafe EVP_PKEY_free($0) }) else {
      throw Self.error(failure)
    }
    try self.init(certificate: leaf, chain: Array(read.dropFirst()), key: key)
  }

  /// Parses a PKCS#12 archive.
  public init(pkcs12: [UInt8], password: String) throws(TLSError) {
    var leaf: OpaquePointer?
    var key: OpaquePointer?
    var chain: OpaquePointer?
    var failure = larkspur_secret_unreadable
    // Safe: the bytes are lent for the call, which transfers references even if it fails.
    let read = unsafe pkcs12.withUnsafeBytes {
      unsafe larkspur_read_pkcs12($0.baseAddress, $0.count, password, &leaf, &key, &chain, &failure)
    }
    let behind = unsafe Certificate.list(taking: chain)
    let certificate = unsafe Certificate(taking: leaf)
    let owned = unsafe Reference(key, releasedBy: { unsafe EVP_PKEY_free($0) })
    guard read == 1, let certificate, let owned else { throw Self.error(failure) }
    try self.init(certificate: certificate, chain: behind, key: owned)
  }

  /// The files of an identity.
  public struct Files: Hashable, Sendable {
    /// The path of the certificate, in PEM with its intermediates or in DER, or of a PKCS#12 archive.
    public var certificates: String
    /// The path of the key, or `nil` if the key is in the first file.
    public var key: String?
    /// The password of an encrypted key or of the archive.
    public var password: String?

    /// The paths of the files.
    public var paths: [String] { [certificates] + (key.map { [$0] } ?? []) }

    /// Names the files of an identity. The files are not read yet.
    public init(certificates: String, key: String? = nil, password: String? = nil) {
      self.certificates = certificates
      self.key = key
      self.password = password
    }
  }

  /// Parses the contents of one file, or of the certificate's and the key's. A single file without PEM is a PKCS#12
  /// archive.
  public init(contents: ArraySlice<[UInt8]>, password: String?) throws(TLSError) {
    guard let first = contents.first, let last = contents.last else { throw TLSError(.identityUnreadable) }
    if contents.count == 1, !first.containsPEM {
      try self.init(pkcs12: first, password: password ?? "")
    } else {
      try self.init(certificates: first, key: last, password: password)
    }
  }

  /// The private key in DER, not encrypted. Empty if the key cannot leave its device.
  public var keyDER: [UInt8] {
    // Safe: the key lives as long as its reference.
    let der = unsafe Array(taking: larkspur_key_der(key.pointer))
    ErrorQueue.clear()
    return der
  }

  /// Returns this identity with other intermediate certificates. The result is in memory and has no files.
  public func with(chain: [Certificate]) throws(TLSError) -> ClientIdentity {
    try ClientIdentity(certificate: certificate, chain: chain, key: key)
  }

  private static func error(_ failure: UInt32) -> TLSError {
    switch failure {
    case larkspur_secret_needs_password: TLSError(.passwordWrong)
    case larkspur_secret_unsupported: TLSError(.encryptionUnsupported)
    default: TLSError(.identityUnreadable)
    }
  }

  private init(certificate: Certificate, chain: [Certificate], key: Reference) throws(TLSError) {
    guard let list = Certificate.list(chain) else { throw TLSError(.outOfMemory) }
    // Safe: both objects live as long as their references.
    let isPair = unsafe X509_check_private_key(certificate.reference.pointer, key.pointer) == 1
    ErrorQueue.clear()
    guard isPair else { throw TLSError(.keyMismatch) }
    self.certificate = certificate
    self.chain = chain
    self.key = key
    self.list = list
  }
}

extension [UInt8] {
  /// Whether there is a line that starts a block in PEM (RFC 7468 2).
  fileprivate var containsPEM: Bool {
    let mark = "-----BEGIN ".utf8
    return indices.contains { self[$0...].starts(with: mark) }
  }
}
