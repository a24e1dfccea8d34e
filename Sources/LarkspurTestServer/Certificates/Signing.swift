/// Makes signed structures: the signed content, the algorithm, the signature.
enum Signing {
  /// Returns the AlgorithmIdentifier of signatures with this key and digest.
  static func algorithm(key: [UInt8], _ digest: TestCertificate.Digest) throws(TestCA.Failure) -> [UInt8] {
    let object: String? =
      switch (Keys.algorithm(of: key), digest) {
      // RFC 5758, section 3.2, and RFC 3279, section 2.2.3.
      case (.ec?, .sha1): "1.2.840.10045.4.1"
      case (.ec?, .sha256): "1.2.840.10045.4.3.2"
      case (.ec?, .sha384): "1.2.840.10045.4.3.3"
      case (.ec?, .sha512): "1.2.840.10045.4.3.4"
      // RFC 8017, appendix A.2.4.
      case (.rsa?, .md5): "1.2.840.113549.1.1.4"
      case (.rsa?, .sha1): "1.2.840.113549.1.1.5"
      case (.rsa?, .sha256): "1.2.840.113549.1.1.11"
      case (.rsa?, .sha384): "1.2.840.113549.1.1.12"
      case (.rsa?, .sha512): "1.2.840.113549.1.1.13"
      // RFC 8410, section 3.
      case (.ed25519?, _): "1.3.101.112"
      case (.ec?, .md5), (nil, _): nil
      }
    guard let object, let encoded = DER.object(object) else {
      throw TestCA.Failure(description: "the issuer's key cannot sign with \(digest)")
    }
    // RSA has the parameter NULL (RFC 8017); the other algorithms have no parameters.
    return DER.sequence(encoded, Keys.algorithm(of: key) == .rsa ? DER.null : [])
  }

  static func sign(
    _ content: [UInt8], _ algorithm: [UInt8], key: [UInt8], _ digest: TestCertificate.Digest, isBroken: Bool = false,
    extra: [UInt8] = []
  ) throws(TestCA.Failure) -> [UInt8] {
    var signature = try Keys.sign(content, with: key, digest)
    if isBroken, let last = signature.popLast() { signature.append(last ^ 1) }
    return DER.sequence(content, algorithm, DER.bits(signature), extra)
  }
}
