import CLarkspurOpenSSL
import LarkspurTestServer
import Testing

/// What OpenSSL, at its strictest, thinks of the certificates.
@Suite struct CertificateTests {
  /// Nil: it is good. Otherwise OpenSSL's words.
  static func verify(
    _ certificate: TestCertificate, root: [UInt8]? = nil, chain: [[UInt8]]? = nil, name: String? = nil,
    crl: TestCA.RevocationList? = nil, level: Int32 = -1
  ) throws -> String? {
    let store = try #require(X509_STORE_new())
    defer { X509_STORE_free(store) }
    let trusted = try ClientTLS.parse(root ?? certificate.rootDER)
    X509_STORE_add_cert(store, trusted)
    X509_free(trusted)
    if let crl {
      try crl.der.withUnsafeBufferPointer { bytes in
        var at = bytes.baseAddress
        let list = try #require(d2i_X509_CRL(nil, &at, bytes.count))
        X509_STORE_add_crl(store, list)
        X509_CRL_free(list)
      }
    }
    let context = try #require(X509_STORE_CTX_new())
    defer { X509_STORE_CTX_free(context) }
    let leaf = try ClientTLS.parse(certificate.certificateDER)
    defer { X509_free(leaf) }
    let others = OPENSSL_sk_new_null()
    let intermediates = try (chain ?? Array(certificate.chainDER.dropFirst())).map { try ClientTLS.parse($0) }
    for intermediate in intermediates { OPENSSL_sk_push(others, UnsafeRawPointer(intermediate)) }
    defer {
      for intermediate in intermediates { X509_free(intermediate) }
      OPENSSL_sk_free(others)
    }
    X509_STORE_CTX_init(context, store, leaf, others)
    X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_SERVER)
    let parameters = X509_STORE_CTX_get0_param(context)
    let flags = X509_V_FLAG_X509_STRICT | (crl == nil ? 0 : X509_V_FLAG_CRL_CHECK)
    X509_VERIFY_PARAM_set_flags(parameters, UInt(flags))
    if level >= 0 { X509_VERIFY_PARAM_set_auth_level(parameters, level) }
    if let name { X509_VERIFY_PARAM_set1_host(parameters, name, 0) }
    if X509_verify_cert(context) == 1 { return nil }
    return String(cString: X509_verify_cert_error_string(Int(X509_STORE_CTX_get_error(context))))
  }

  let ca: TestCA

  init() throws {
    ca = try TestCA()
  }

  private func words(_ change: (inout TestCertificate.Request) -> Void) throws -> String? {
    var request = TestCertificate.Request()
    change(&request)
    return try Self.verify(try ca.issue(request), name: "localhost")
  }

  @Test func goodByDefault() throws {
    #expect(try words { _ in } == nil)
    let below = try ca.intermediate(pathLength: 1).intermediate(name: "second", pathLength: 0)
    let leaf = try below.issue()
    #expect(leaf.chainDER.count == 3)
    #expect(leaf.rootDER == ca.rootCertificateDER)
    #expect(below.rootCertificatePEM == ca.certificate.certificatePEM)
    #expect(try Self.verify(leaf, name: "localhost") == nil)
    #expect(try Self.verify(leaf, chain: []) == "unable to get local issuer certificate")
    #expect(try Self.verify(leaf, name: "example.com") == "hostname mismatch")
  }

  @Test(arguments: [
    TestCertificate.KeyKind.ecP256, .ecP384, .ecP521, .ed25519, .rsa(2048),
  ])
  func keys(kind: TestCertificate.KeyKind) throws {
    let ca = try TestCA(kind)
    var request = TestCertificate.Request()
    request.key = kind
    #expect(try Self.verify(try ca.issue(request), name: "localhost") == nil)
  }
}
