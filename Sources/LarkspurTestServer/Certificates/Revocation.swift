extension TestCA {
  /// A revocation list (RFC 5280, section 5).
  public struct RevocationList: Hashable, Sendable {
    /// The signed list in DER.
    public let der: [UInt8]
    /// The signed list in PEM.
    public var pem: String { LarkspurTestServer.pem("X509 CRL", der) }
  }

  /// Makes a list of certificates that this authority revokes.
  ///
  /// - Parameters:
  ///   - certificates: Certificates that this authority has issued. The list names their serial numbers.
  ///   - number: The number of the list, higher for a later one.
  ///   - thisUpdate: The time of issue, in seconds from now.
  ///   - nextUpdate: The time of the next list, in seconds from now. If `nil`, the list names no such time.
  ///   - digest: The digest of the signature.
  public func revocationList(
    revoking certificates: [TestCertificate] = [], number: Int = 1, thisUpdate: Int = -3600,
    nextUpdate: Int? = 7 * 86_400, digest: TestCertificate.Digest = .sha256
  ) throws(Failure) -> RevocationList {
    let key = certificate.privateKeyDER
    let algorithm = try Signing.algorithm(key: key, digest)
    let now = Keys.secondsNow
    let entries = certificates.map {
      DER.sequence(DER.integer(bytes: $0.serialNumber), DER.time(now + thisUpdate))
    }
    let keyIdentifier = DER.sequence(DER.implicit(0, try Keys.identifier(of: key)))
    let extensions = DER.sequence(
      DER.sequence(DER.object("2.5.29.35") ?? [], DER.octets(keyIdentifier)),
      DER.sequence(DER.object("2.5.29.20") ?? [], DER.octets(DER.integer(number))))
    let content = DER.sequence(
      DER.integer(1), algorithm, certificate.subject, DER.time(now + thisUpdate),
      nextUpdate.map { DER.time(now + $0) } ?? [],
      // A list without entries leaves the element out (RFC 5280, section 5.1.2.6).
      entries.isEmpty ? [] : DER.sequence(of: entries),
      DER.tagged(0, extensions))
    return RevocationList(der: try Signing.sign(content, algorithm, key: key, digest))
  }

  /// The status of a certificate in an OCSP response.
  public enum OCSPStatus: Hashable, Sendable {
    /// Not revoked.
    case good
    /// The responder has no information about the certificate.
    case unknown
    /// Revoked at this time, in seconds from now, for the reason `keyCompromise`.
    case revoked(at: Int = -3600)
  }

  /// Makes an OCSP response about a certificate of this authority (RFC 6960, section 4.2).
  ///
  /// A server staples the response (``TestServer/TLS/stapledResponse``), or a route serves it.
  ///
  /// - Parameters:
  ///   - subject: The certificate that the response is about.
  ///   - status: The certificate's status.
  ///   - thisUpdate: The time at which the status was known to be right, in seconds from now.
  ///   - nextUpdate: The time of newer information, in seconds from now. If `nil`, newer information is always
  ///     available.
  ///   - digest: The digest of the signature.
  ///   - signer: A responder of the authority that signs; its certificate is in the response. A good one has
  ///     ``TestCertificate/Request/ExtendedKeyUsage/ocspSigning``. If `nil`, the authority itself signs.
  public func ocspResponse(
    for subject: TestCertificate, status: OCSPStatus = .good, thisUpdate: Int = -3600, nextUpdate: Int? = 7 * 86_400,
    digest: TestCertificate.Digest = .sha256, signedBy signer: TestCertificate? = nil
  ) throws(Failure) -> [UInt8] {
    let now = Keys.secondsNow
    let key = signer?.privateKeyDER ?? certificate.privateKeyDER
    let keyHash = try Keys.identifier(of: certificate.privateKeyDER)
    let sha1 = DER.sequence(DER.object("1.3.14.3.2.26") ?? [], DER.null)
    let identifier = DER.sequence(
      sha1, DER.octets(try Keys.sha1(certificate.subject)), DER.octets(keyHash),
      DER.integer(bytes: subject.serialNumber))
    let statusBytes =
      switch status {
      case .good: DER.implicit(0, [])
      case .revoked(let time):
        DER.tagged(1, DER.generalizedTime(now + time) + DER.tagged(0, DER.enumerated(1)))
      case .unknown: DER.implicit(2, [])
      }
    let single = DER.sequence(
      identifier, statusBytes, DER.generalizedTime(now + thisUpdate),
      nextUpdate.map { DER.tagged(0, DER.generalizedTime(now + $0)) } ?? [])
    let content = DER.sequence(
      DER.tagged(2, DER.octets(try Keys.identifier(of: key))), DER.generalizedTime(now + thisUpdate),
      DER.sequence(single))
    let algorithm = try Signing.algorithm(key: key, digest)
    let certificates = signer.map { DER.tagged(0, DER.sequence($0.certificateDER)) } ?? []
    let response = try Signing.sign(content, algorithm, key: key, digest, extra: certificates)
    let basic = DER.sequence(DER.object("1.3.6.1.5.5.7.48.1.1") ?? [], DER.octets(response))
    return DER.sequence(DER.enumerated(0), DER.tagged(0, basic))
  }
}
