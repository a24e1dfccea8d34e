/// A certificate with its private key and the certificates above it, made by a ``TestCA``.
///
/// A value of bytes: keep it, copy it, use it on any thread. Nothing is written to disk.
public struct TestCertificate: Hashable, Sendable {
  /// The certificate.
  public let certificateDER: [UInt8]
  /// The private key, as PKCS#8.
  public let privateKeyDER: [UInt8]
  /// The certificates above it, its issuer's first, the root last. Empty if it is self-signed.
  public let issuersDER: [[UInt8]]
  /// Its serial number as it is encoded: two's complement, the highest byte first.
  public let serialNumber: [UInt8]

  /// The subject in DER.
  let subject: [UInt8]

  /// The certificate in PEM.
  public var certificatePEM: String { pem("CERTIFICATE", certificateDER) }

  /// The private key as unencrypted PKCS#8 in PEM.
  public var privateKeyPEM: String { pem("PRIVATE KEY", privateKeyDER) }

  /// What a good server sends: the certificate and those above it, without the root.
  public var chainDER: [[UInt8]] { [certificateDER] + issuersDER.dropLast() }

  /// ``chainDER`` in PEM.
  public var chainPEM: String { chainDER.map { pem("CERTIFICATE", $0) }.joined() }

  /// The root that it leads to: itself, if it is self-signed.
  public var rootDER: [UInt8] { issuersDER.last ?? certificateDER }

  /// The public key as SubjectPublicKeyInfo, of which pins are made.
  public func publicKeyDER() throws(TestCA.Failure) -> [UInt8] { try Keys.publicKey(of: privateKeyDER) }

  /// How a private key is encrypted.
  public enum KeyEncryption: Hashable, Sendable {
    /// `BEGIN ENCRYPTED PRIVATE KEY`.
    case pkcs8
    /// The older format, with `Proc-Type: 4,ENCRYPTED`.
    case traditional
  }

  /// The private key in PEM, under a passphrase, with AES-256.
  public func encryptedPrivateKeyPEM(
    passphrase: String, _ format: KeyEncryption = .pkcs8
  ) throws(TestCA.Failure) -> String {
    try Keys.encryptedPEM(privateKeyDER, passphrase: passphrase, isTraditional: format == .traditional)
  }

  /// The private key and the chain (without the root) as PKCS#12.
  ///
  /// - Parameters:
  ///   - password: In UTF-8. It may be empty.
  ///   - name: The friendly name.
  ///   - isLegacy: With triple DES, as programs before 2020 want it, in place of AES-256.
  public func pkcs12(
    password: String, name: String = "test", isLegacy: Bool = false
  ) throws(TestCA.Failure) -> [UInt8] {
    try Keys.pkcs12(privateKeyDER, certificates: chainDER, password: password, name: name, isLegacy: isLegacy)
  }
}

extension TestCertificate {
  /// The key of a certificate.
  public enum KeyKind: Hashable, Sendable {
    case ecP256, ecP384, ecP521, ed25519
    /// Of so many bits, from 512. 4096 take about a second, 8192 often half a minute.
    case rsa(Int)
  }

  /// What a signature is made over.
  public enum Digest: String, Hashable, Sendable, CaseIterable {
    /// With RSA keys only.
    case md5
    case sha1, sha256, sha384, sha512

    var opensslName: String { rawValue.uppercased() }
  }
}
