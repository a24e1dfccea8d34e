/// A certificate with its private key and the certificates above it, made by a ``TestCA``.
///
/// A value of bytes: keep it, copy it, use it on any thread. Neither creation nor use writes to the disk.
public struct TestCertificate: Hashable, Sendable {
  /// The certificate.
  public let certificateDER: [UInt8]
  /// The private key, as PKCS#8.
  public let privateKeyDER: [UInt8]
  /// The certificates above this one, its issuer's first, the root last. Empty if this one is self-signed.
  public let issuersDER: [[UInt8]]
  /// The serial number in its encoding: two's complement, highest byte first.
  public let serialNumber: [UInt8]

  /// The subject's encoding in DER.
  let subject: [UInt8]

  /// The certificate in PEM.
  public var certificatePEM: String { pem("CERTIFICATE", certificateDER) }

  /// The private key as unencrypted PKCS#8 in PEM.
  public var privateKeyPEM: String { pem("PRIVATE KEY", privateKeyDER) }

  /// The chain that a good server sends: the certificate and those above it, without the root.
  public var chainDER: [[UInt8]] { [certificateDER] + issuersDER.dropLast() }

  /// ``chainDER`` in PEM.
  public var chainPEM: String { chainDER.map { pem("CERTIFICATE", $0) }.joined() }

  /// The root above this certificate, or this certificate if it is self-signed.
  public var rootDER: [UInt8] { issuersDER.last ?? certificateDER }

  /// Returns the public key as SubjectPublicKeyInfo, from which pins are made.
  public func publicKeyDER() throws(TestCA.Failure) -> [UInt8] { try Keys.publicKey(of: privateKeyDER) }

  /// The format of an encrypted private key.
  public enum KeyEncryption: Hashable, Sendable {
    /// `BEGIN ENCRYPTED PRIVATE KEY`.
    case pkcs8
    /// The older format, with `Proc-Type: 4,ENCRYPTED`.
    case traditional
  }

  /// Returns the private key in PEM, encrypted under a passphrase with AES-256.
  public func encryptedPrivateKeyPEM(
    passphrase: String, _ format: KeyEncryption = .pkcs8
  ) throws(TestCA.Failure) -> String {
    try Keys.encryptedPEM(privateKeyDER, passphrase: passphrase, isTraditional: format == .traditional)
  }

  /// Returns the private key and the chain (without the root) as PKCS#12.
  ///
  /// - Parameters:
  ///   - password: The password, encoded in UTF-8. It may be empty.
  ///   - name: The friendly name.
  ///   - isLegacy: Whether to encrypt with triple DES, which programs from before 2020 expect, instead of AES-256.
  public func pkcs12(
    password: String, name: String = "test", isLegacy: Bool = false
  ) throws(TestCA.Failure) -> [UInt8] {
    try Keys.pkcs12(privateKeyDER, certificates: chainDER, password: password, name: name, isLegacy: isLegacy)
  }
}

extension TestCertificate {
  /// The kind of a certificate's key.
  public enum KeyKind: Hashable, Sendable {
    /// An elliptic curve, NIST's P-256.
    case ecP256
    /// An elliptic curve, NIST's P-384.
    case ecP384
    /// An elliptic curve, NIST's P-521.
    case ecP521
    /// Ed25519 (RFC 8032). Its signatures need no digest.
    case ed25519
    /// RSA with this number of bits, at least 512. 4096 bits take about a second to make, 8192 often half a minute.
    case rsa(Int)
  }

  /// The digest that a signature is made over.
  public enum Digest: String, Hashable, Sendable, CaseIterable {
    /// MD5, for RSA keys only.
    case md5
    /// SHA-1, which clients should refuse.
    case sha1
    /// SHA-256, the default.
    case sha256
    /// SHA-384.
    case sha384
    /// SHA-512.
    case sha512

    var opensslName: String { rawValue.uppercased() }
  }
}
