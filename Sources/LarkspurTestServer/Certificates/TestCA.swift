/// A certificate authority for tests, made in this process.
///
/// ```swift
/// let ca = try TestCA()
/// let server = try TestServer(tls: .init(certificate: ca.issue()))
/// // Clients are to trust ca.rootCertificatePEM, and ask for server.url("/get").
/// ```
///
/// It makes good certificates unless it is told otherwise: with what RFC 5280 asks of them, and strict verifiers check.
/// ``TestCertificate/Request`` tells otherwise. Any certificate can be an authority, even if it says that it is none:
/// `TestCA(leaf)` signs with a leaf.
///
/// A value: it can be used on any thread, and remembers nothing of what it has issued.
public struct TestCA: Hashable, Sendable {
  /// A certificate could not be made: why, in words. Mostly because the request contradicts itself.
  public struct Failure: Error, Hashable, CustomStringConvertible {
    public let description: String
  }

  /// The authority's own certificate and key.
  public let certificate: TestCertificate

  /// A root with a key of its own. It takes less than a millisecond, unless the key is RSA.
  public init(_ key: TestCertificate.KeyKind = .ecP256, name: String = "Larkspur test root") throws(Failure) {
    var request = TestCertificate.Request.authority(name)
    request.key = key
    try self.init(request)
  }

  /// A root with whatever is asked for.
  public init(_ request: TestCertificate.Request) throws(Failure) {
    certificate = try Self.selfSigned(request)
  }

  /// An authority that signs with any certificate's key.
  public init(_ certificate: TestCertificate) {
    self.certificate = certificate
  }

  /// The root above this authority, or itself.
  public var rootCertificateDER: [UInt8] { certificate.rootDER }

  /// The root above this authority, or itself.
  public var rootCertificatePEM: String { pem("CERTIFICATE", rootCertificateDER) }

  // MARK: Certificates

  /// A certificate that signs itself: a root, or a server's that nobody vouches for.
  public static func selfSigned(_ request: TestCertificate.Request = .init()) throws(Failure) -> TestCertificate {
    try make(request, issuer: nil)
  }

  /// A certificate that this authority signs. As it is: for `localhost`, 127.0.0.1 and ::1.
  public func issue(_ request: TestCertificate.Request = .init()) throws(Failure) -> TestCertificate {
    try Self.make(request, issuer: certificate)
  }

  /// An authority below this one.
  ///
  /// - Parameters:
  ///   - name: Nil: one that tells how far below the root it is. (With its issuer's own name it would not count for path
  ///     lengths: RFC 5280, section 6.1.)
  ///   - pathLength: How many authorities may stand below it. Nil: no limit.
  ///   - change: Whatever else is to be different.
  public func intermediate(
    _ key: TestCertificate.KeyKind = .ecP256, name: String? = nil, pathLength: Int? = nil,
    _ change: (inout TestCertificate.Request) -> Void = { _ in }
  ) throws(Failure) -> TestCA {
    let name = name ?? "Larkspur test intermediate \(certificate.issuersDER.count + 1)"
    var request = TestCertificate.Request.authority(name, pathLength: pathLength)
    request.key = key
    change(&request)
    return TestCA(try issue(request))
  }

  private static func make(
    _ request: TestCertificate.Request, issuer: TestCertificate?
  ) throws(Failure) -> TestCertificate {
    let key = if let key = request.privateKeyDER { key } else { try Keys.make(request.key) }
    return try CertificateWriter(request: request, key: key, issuer: issuer).write()
  }
}
