/// Writes certificates (RFC 5280, section 4.1).
struct CertificateWriter {
  let request: TestCertificate.Request
  /// The private key of the certificate's subject.
  let key: [UInt8]
  /// The signer, or `nil` if the certificate is self-signed.
  let issuer: TestCertificate?

  func write() throws(TestCA.Failure) -> TestCertificate {
    let signer = issuer?.privateKeyDER ?? key
    let subject = subject
    let algorithm = try Signing.algorithm(key: signer, request.digest)
    let serialNumber = request.serialNumber ?? Self.randomSerialNumber()
    let now = Keys.secondsNow
    var parts: [[UInt8]] = []
    if request.version > 1 { parts.append(DER.tagged(0, DER.integer(request.version - 1))) }
    parts += [
      DER.integer(bytes: serialNumber), algorithm, issuer?.subject ?? subject,
      DER.sequence(DER.time(now + request.notBefore), DER.time(now + request.notAfter)),
      subject, try publicKey(),
    ]
    if request.version >= 3 {
      let extensions = try extensions()
      if !extensions.isEmpty { parts.append(DER.tagged(3, DER.sequence(of: extensions))) }
    }
    let certificate = try Signing.sign(
      DER.sequence(of: parts), algorithm, key: signer, request.digest, isBroken: request.hasBrokenSignature)
    return TestCertificate(
      certificateDER: certificate, privateKeyDER: key,
      issuersDER: issuer.map { [$0.certificateDER] + $0.issuersDER } ?? [],
      serialNumber: serialNumber, subject: subject)
  }

  private func publicKey() throws(TestCA.Failure) -> [UInt8] {
    if let key = request.publicKeyDER { key } else { try Keys.publicKey(of: key) }
  }

  private static func randomSerialNumber() -> [UInt8] {
    // The first byte makes the number positive and not shorter than 16 bytes.
    [UInt8.random(in: 1...0x7f)] + (0..<15).map { _ in UInt8.random(in: 0...255) }
  }

  private var subject: [UInt8] {
    let parts = [("2.5.4.10", request.organization), ("2.5.4.3", request.commonName)].filter { !$0.1.isEmpty }
    return DER.sequence(
      of: parts.map { object, value in DER.set(DER.sequence(DER.object(object) ?? [], DER.text(value))) })
  }

  // MARK: Extensions

  private func extensions() throws(TestCA.Failure) -> [[UInt8]] {
    var extensions: [[UInt8]] = []
    if let constraints = request.basicConstraints {
      var content: [UInt8] = []
      if constraints.isAuthority { content += DER.boolean(true) }
      if let length = constraints.pathLength { content += DER.integer(length) }
      extensions.append(try encode("2.5.29.19", constraints.isCritical, DER.sequence(content)))
    }
    if let usage = request.keyUsage {
      let bits = DER.namedBits((0..<9).filter { usage.rawValue & 1 << $0 != 0 })
      extensions.append(try encode("2.5.29.15", request.keyUsageIsCritical, bits))
    }
    if let usages = request.extendedKeyUsage {
      var objects: [UInt8] = []
      for usage in usages { objects += try object(usage.object) }
      extensions.append(try encode("2.5.29.37", request.extendedKeyUsageIsCritical, DER.sequence(objects)))
    }
    if !request.alternativeNames.isEmpty {
      let names = DER.sequence(of: request.alternativeNames.map(Self.generalName))
      let isCritical =
        request.alternativeNamesAreCritical ?? (request.commonName.isEmpty && request.organization.isEmpty)
      extensions.append(try encode("2.5.29.17", isCritical, names))
    }
    if let constraints = request.nameConstraints {
      let content =
        Self.subtrees(0, constraints.permitted) + Self.subtrees(1, constraints.excluded)
      extensions.append(try encode("2.5.29.30", constraints.isCritical, DER.sequence(content)))
    }
    extensions += try keyIdentifiers()
    extensions += try pointers()
    // RFC 7633: the feature is the TLS extension status_request, number 5.
    if request.mustStaple {
      extensions.append(try encode("1.3.6.1.5.5.7.1.24", false, DER.sequence(DER.integer(5))))
    }
    for other in request.otherExtensions {
      extensions.append(try encode(other.object, other.isCritical, other.value))
    }
    return extensions
  }

  private func keyIdentifiers() throws(TestCA.Failure) -> [[UInt8]] {
    var extensions: [[UInt8]] = []
    switch request.subjectKeyIdentifier {
    case .right: extensions.append(try encode("2.5.29.14", false, DER.octets(try Keys.identifier(of: key))))
    case .absent: break
    case .other(let bytes): extensions.append(try encode("2.5.29.14", false, DER.octets(bytes)))
    }
    switch request.authorityKeyIdentifier {
    case .right:
      let identifier = try Keys.identifier(of: issuer?.privateKeyDER ?? key)
      extensions.append(try encode("2.5.29.35", false, DER.sequence(DER.implicit(0, identifier))))
    case .absent: break
    case .other(let bytes):
      extensions.append(try encode("2.5.29.35", false, DER.sequence(DER.implicit(0, bytes))))
    }
    return extensions
  }

  /// Makes the extensions that hold addresses: authority information access and CRL distribution points.
  private func pointers() throws(TestCA.Failure) -> [[UInt8]] {
    var extensions: [[UInt8]] = []
    let locations =
      request.ocspURLs.map { ("1.3.6.1.5.5.7.48.1", $0) } + request.issuerURLs.map { ("1.3.6.1.5.5.7.48.2", $0) }
    if !locations.isEmpty {
      var content: [UInt8] = []
      for (kind, url) in locations {
        content += DER.sequence(try object(kind), Self.generalName(.uri(Array(url.utf8))))
      }
      extensions.append(try encode("1.3.6.1.5.5.7.1.1", false, DER.sequence(content)))
    }
    if !request.revocationListURLs.isEmpty {
      let points = request.revocationListURLs.map { url in
        DER.sequence(DER.tagged(0, DER.tagged(0, Self.generalName(.uri(Array(url.utf8))))))
      }
      extensions.append(try encode("2.5.29.31", false, DER.sequence(of: points)))
    }
    return extensions
  }

  private static func subtrees(_ tag: UInt8, _ names: [TestCertificate.Request.AlternativeName]) -> [UInt8] {
    names.isEmpty ? [] : DER.tagged(tag, Array(names.map { DER.sequence(generalName($0)) }.joined()))
  }

  private static func generalName(_ name: TestCertificate.Request.AlternativeName) -> [UInt8] {
    switch name {
    case .email(let bytes): DER.implicit(1, bytes)
    case .dns(let bytes): DER.implicit(2, bytes)
    case .uri(let bytes): DER.implicit(6, bytes)
    case .ipAddress(let bytes): DER.implicit(7, bytes)
    }
  }

  private func encode(_ dotted: String, _ isCritical: Bool, _ value: [UInt8]) throws(TestCA.Failure) -> [UInt8] {
    DER.sequence(try object(dotted), isCritical ? DER.boolean(true) : [], DER.octets(value))
  }

  private func object(_ dotted: String) throws(TestCA.Failure) -> [UInt8] {
    guard let object = DER.object(dotted) else {
      throw TestCA.Failure(description: "\"\(dotted)\" is not an object identifier")
    }
    return object
  }
}
