/// A certificate authority for tests, made in this process.
///
/// ```swift
/// let ca = try TestCA()
/// let server = try TestServer(tls: .init(certificate: ca.issue()))
/// // The client trusts ca.rootCertificatePEM and requests server.url("/get").
/// ```
///
/// Unless a ``TestCertificate/Request`` asks for something else, an authority makes good certificates: they hold
/// everything that RFC 5280 requires and strict verifiers check. Any certificate can act as an authority, even if it
/// says that it is not one: `TestCA(leaf)` signs with the key of a leaf.
///
/// An authority is a value: use it on any thread. No authority keeps a record of the certificates that it has issued.
public struct TestCA: Hashable, Sendable {
  /// The reason why a certificate could not be made, in words. Mostly the request contradicts itself.
  public struct Failure: Error, Hashable, CustomStringConvertible {
    /// The reason in words.
    public let description: String
  }

  /// The authority's own certificate and key.
  public let certificate: TestCertificate

  /// Makes a root with a new key. This takes less than a millisecond, unless the key is RSA.
  public init(_ key: TestCertificate.KeyKind = .ecP256, name: String = "Larkspur test root") throws(Failure) {
    var request = TestCertificate.Request.authority(name)
    request.key = key
    try self.init(request)
  }

  /// Makes a root from a request.
  public init(_ request: TestCertificate.Request) throws(Failure) {
    certificate = try Self.selfSigned(request)
  }

  /// Makes an authority that signs with the key of any certificate.
  public init(_ certificate: TestCertificate) {
    self.certificate = certificate
  }

  /// The root above this authority, or itself.
  public var rootCertificateDER: [UInt8] { certificate.rootDER }

  /// The root above this authority, or itself.
  public var rootCertificatePEM: String { pem("CERTIFICATE", rootCertificateDER) }

  // MARK: Certificates

  /// Makes a self-signed certificate: a root, or a server's that no authority vouches for.
  public static func selfSigned(_ request: TestCertificate.Request = .init()) throws(Failure) -> TestCertificate {
    try make(request, issuer: nil)
  }

  /// Makes a certificate that this authority signs. The default request is for `localhost`, 127.0.0.1 and ::1.
  public func issue(_ request: TestCertificate.Request = .init()) throws(Failure) -> TestCertificate {
    try Self.make(request, issuer: certificate)
  }

  /// Makes an authority below this one.
  ///
  /// - Parameters:
  ///   - key: The kind of the authority's key.
  ///   - name: The authority's name. If `nil`, the name states how far below the root the authority is. An authority
  ///     with its issuer's own name does not count for path lengths (RFC 5280, section 6.1).
  ///   - pathLength: The number of authorities that may stand below the new one, or `nil` for no limit.
  ///   - change: Changes anything else in the request.
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
