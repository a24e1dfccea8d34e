/// An X.509 certificate. The value is immutable, and its fields are parsed on each access.
@safe
public struct Certificate: Sendable {
  let reference: Reference

  /// Takes ownership of a reference. Returns `nil` for a null pointer.
  @unsafe
  init?(taking pointer: OpaquePointer?) {
    // Safe: X509_free releases the one reference that was taken.
    guard let reference = unsafe Reference(pointer, releasedBy: { unsafe X509_free($0) }) else { return nil }
    self.reference = reference
  }

  /// Parses one certificate in DER, for bytes that a peer has sent. `read` would take PEM inside of it for another
  /// certificate.
  public init?(der: [UInt8]) {
    // Safe: the bytes are lent for the call, which transfers a reference.
    let pointer = unsafe der.withUnsafeBytes { unsafe larkspur_read_certificate($0.baseAddress, $0.count) }
    unsafe self.init(taking: pointer)
  }

  // Safe: for all properties below, the certificate lives as long as `reference`, and reading it changes only
  // fields that OpenSSL guards by a lock.

  /// The certificate as it was signed, in DER.
  public var der: [UInt8] { unsafe Array(taking: larkspur_certificate_der(reference.pointer)) }

  /// The key with its algorithm (SubjectPublicKeyInfo), in DER.
  public var publicKeyInfo: [UInt8] { unsafe Array(taking: larkspur_certificate_spki(reference.pointer)) }

  /// The SHA-256 digest of the whole certificate: 32 bytes.
  public var sha256: [UInt8] { SHA256Digest.of(der) }

  /// The SHA-256 digest of the key with its algorithm, as in pins: 32 bytes.
  public var publicKeySHA256: [UInt8] { SHA256Digest.of(publicKeyInfo) }

  // Safe: the certificate lives as long as `reference`.

  /// The subject's distinguished name as text (RFC 2253).
  public var subject: String { unsafe Self.text(larkspur_name_text(X509_get_subject_name(reference.pointer))) }

  // Safe: the certificate lives as long as `reference`.
  /// The issuer's distinguished name as text (RFC 2253).
  public var issuer: String { unsafe Self.text(larkspur_name_text(X509_get_issuer_name(reference.pointer))) }

  /// The serial number, with the most significant byte first.
  public var serial: [UInt8] { unsafe Array(taking: larkspur_certificate_serial(reference.pointer)) }

  /// The start of validity in seconds since 1970, UTC.
  public var notBefore: Int64 { unsafe larkspur_certificate_not_before(reference.pointer) }

  // Safe: the certificate lives as long as `reference`.
  /// The end of validity in seconds since 1970, UTC.
  public var notAfter: Int64 { unsafe larkspur_certificate_not_after(reference.pointer) }

  /// Whether the certificate promises that its server always staples an OCSP response (RFC 7633).
  public var mustStaple: Bool { unsafe larkspur_certificate_must_staple(reference.pointer) }

  /// A name that the certificate is issued for, from its subjectAltName.
  public enum Name: Hashable, Sendable {
    /// A DNS name, which may begin with `*.`.
    case dns(String)
    /// An IP address of four or sixteen bytes.
    case address([UInt8])
  }

  /// The DNS names and IP addresses in their order. Bytes of a name that are not visible ASCII are escaped as `\xNN`.
  public var names: [Name] {
    // Safe: the bytes that `larkspur_names_at` lends live until the list is freed.
    let list = unsafe larkspur_certificate_names(reference.pointer)
    defer { unsafe GENERAL_NAMES_free(list) }
    var names: [Name] = []
    for index in unsafe 0..<larkspur_names_count(list) {
      var bytes: UnsafePointer<UInt8>?
      var count = 0
      let kind = unsafe larkspur_names_at(list, index, &bytes, &count)
      let value = unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
      if kind == GEN_DNS { names.append(.dns(Self.visible(value))) }
      if kind == GEN_IPADD { names.append(.address(value)) }
    }
    return names
  }

  /// Parses any number of certificates in PEM, or one in DER. A damaged PEM block is left out and does not affect the
  /// others.
  ///
  /// - Returns: The certificates in their order, or `nil` if none can be read.
  public static func read(_ bytes: [UInt8]) -> [Certificate]? { readCounting(bytes)?.certificates }

  /// Parses certificates of which none may be damaged, such as a client's certificate and its chain.
  static func readAll(_ bytes: [UInt8]) -> [Certificate]? {
    guard let read = readCounting(bytes), read.damaged == 0 else { return nil }
    return read.certificates
  }

  private static func readCounting(_ bytes: [UInt8]) -> (certificates: [Certificate], damaged: Int32)? {
    var damaged: Int32 = 0
    // Safe: the bytes are lent for the call.
    let chain = unsafe bytes.withUnsafeBytes { unsafe larkspur_read_certificates($0.baseAddress, $0.count, &damaged) }
    guard let chain = unsafe chain else { return nil }
    return (unsafe Certificate.list(taking: chain), damaged)
  }

  // MARK: - Chains

  /// Converts a list of OpenSSL's, and frees it.
  @unsafe
  static func list(taking chain: OpaquePointer?) -> [Certificate] {
    // Safe: each certificate gets its own reference before the list is freed.
    defer { unsafe larkspur_chain_free(chain) }
    var certificates: [Certificate] = []
    for index in unsafe 0..<larkspur_chain_count(chain) {
      let pointer = unsafe larkspur_chain_at(chain, index)
      guard unsafe X509_up_ref(pointer) == 1, let certificate = unsafe Certificate(taking: pointer) else { break }
      certificates.append(certificate)
    }
    return certificates
  }

  /// Creates a list for OpenSSL, which is freed with the returned reference.
  static func list(_ certificates: [Certificate]) -> Reference? {
    // Safe: the list takes its own references.
    guard let list = unsafe Reference(larkspur_chain_new(), releasedBy: { unsafe larkspur_chain_free($0) })
    else { return nil }
    for certificate in certificates {
      guard unsafe larkspur_chain_append(list.pointer, certificate.reference.pointer) == 1 else { return nil }
    }
    return list
  }

  // MARK: - Text

  @unsafe
  static func text(_ bytes: UnsafeMutableRawPointer?) -> String {
    // Safe: `bytes` has the length that it states, and no other owner.
    String(decoding: unsafe Array(taking: bytes), as: UTF8.self)
  }

  private static func visible(_ bytes: [UInt8]) -> String {
    var text = ""
    for byte in bytes {
      if byte > 0x20, byte < 0x7f, byte != UInt8(ascii: "\\") {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return text
  }
}

extension Certificate: Hashable {
  public static func == (left: Certificate, right: Certificate) -> Bool {
    // Safe: both certificates live as long as their references.
    if left.reference === right.reference { return true }
    return unsafe X509_cmp(left.reference.pointer, right.reference.pointer) == 0
  }

  public func hash(into hasher: inout Hasher) { hasher.combine(sha256) }
}

/// The SHA-256 digest.
public enum SHA256Digest {
  public static let byteCount = 32

  public static func of(_ bytes: [UInt8]) -> [UInt8] {
    unsafe [UInt8](unsafeUninitializedCapacity: byteCount) { digest, count in
      // Safe: SHA256 reads `bytes.count` bytes and writes 32.
      unsafe bytes.withUnsafeBufferPointer { _ = unsafe SHA256($0.baseAddress, $0.count, digest.baseAddress) }
      count = byteCount
    }
  }
}
