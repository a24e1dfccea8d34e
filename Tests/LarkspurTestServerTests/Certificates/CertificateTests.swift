import CLarkspurOpenSSL
import LarkspurTestServer
import Testing

/// Tests the certificates of `TestCA` with OpenSSL's strictest verification.
@Suite struct CertificateTests {
  /// Verifies a certificate with OpenSSL.
  ///
  /// - Returns: OpenSSL's error message, or `nil` if the certificate is valid.
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

  private func failure(_ change: (inout TestCertificate.Request) -> Void) throws -> String? {
    var request = TestCertificate.Request()
    change(&request)
    return try Self.verify(try ca.issue(request), name: "localhost")
  }

  @Test func goodByDefault() throws {
    #expect(try failure { _ in } == nil)
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

// MARK: Certificates with one fault each

extension CertificateTests {
  static let faults: [(String, @Sendable (inout TestCertificate.Request) -> Void, String)] = [
    ("expired", { ($0.notBefore, $0.notAfter) = (-200, -100) }, "certificate has expired"),
    ("early", { $0.notBefore = 100 }, "certificate is not yet valid"),
    ("broken signature", { $0.hasBrokenSignature = true }, "certificate signature failure"),
    ("another's name", { $0.alternativeNames = [.dns("example.com")] }, "hostname mismatch"),
    ("NUL in the name", { $0.alternativeNames = [.dns("localhost\0.example.com")] }, "hostname mismatch"),
    ("wildcard", { $0.alternativeNames = [.dns("*host")] }, "hostname mismatch"),
    ("address only", { $0.alternativeNames = [.ipAddress([127, 0, 0, 1])] }, "hostname mismatch"),
    ("for clients", { $0.extendedKeyUsage = [.clientAuth] }, "unsuitable certificate purpose"),
    ("no usage at all", { $0.extendedKeyUsage = [] }, "unsuitable certificate purpose"),
    ("key usage", { $0.keyUsage = [.dataEncipherment] }, "unsuitable certificate purpose"),
    ("no AKI", { $0.authorityKeyIdentifier = .absent }, "Missing Authority Key Identifier"),
    ("wrong AKI", { $0.authorityKeyIdentifier = .other([1, 2]) }, "unable to get local issuer certificate"),
    (
      "unknown critical extension",
      { $0.otherExtensions = [.init(object: "1.2.3.4", isCritical: true, value: [5, 0])] },
      "unhandled critical extension"
    ),
    ("path length without CA", { $0.basicConstraints?.pathLength = 1 }, "Path length invalid for non-CA cert"),
    (
      "empty subject", { ($0.commonName, $0.alternativeNamesAreCritical) = ("", false) },
      "Subject empty and Subject Alt Name extension not critical"
    ),
  ]

  @Test(arguments: faults.indices) func faults(index: Int) throws {
    let (name, change, message) = Self.faults[index]
    #expect(try failure(change) == message, "\(name)")
  }

  static let oddities: [(String, @Sendable (inout TestCertificate.Request) -> Void)] = [
    ("empty subject", { $0.commonName = "" }), ("critical names", { $0.alternativeNamesAreCritical = true }),
    ("no names, but a common name", { ($0.alternativeNames, $0.commonName) = ([], "localhost") }),
    ("no constraints", { $0.basicConstraints = nil }),
    ("no usages", { ($0.extendedKeyUsage, $0.keyUsage) = (nil, nil) }),
    ("must staple", { $0.mustStaple = true }), ("organisation", { $0.organization = "Us" }),
    ("any usage", { $0.extendedKeyUsage = [.any, .serverAuth, .other("1.3.6.1.5.5.7.3.8")] }),
    ("wide key usage", { $0.keyUsage = [.digitalSignature, .keyAgreement, .decipherOnly] }),
    (
      "pointers",
      {
        $0.ocspURLs = ["http://x/"]; $0.issuerURLs = ["http://y/"]; $0.revocationListURLs = ["http://z/"]
      }
    ),
    ("far away", { ($0.notBefore, $0.notAfter) = (-40 * 365 * 86_400, 100 * 365 * 86_400) }),
    ("serial number", { $0.serialNumber = [1] }), ("digest", { $0.digest = .sha512 }),
    ("wildcard", { $0.alternativeNames = [.dns("*.example.com"), .dns("localhost"), .email([97, 64, 98])] }),
  ]

  @Test(arguments: oddities.indices) func oddities(index: Int) throws {
    let (name, change) = Self.oddities[index]
    #expect(try failure(change) == nil, "\(name)")
  }

  @Test(arguments: [1000, 10_000]) func manyNames(count: Int) throws {
    let names = (0..<count).map { "host-\($0).example.com" }
    let leaf = try ca.issue(.init(names: names))
    #expect(try Self.verify(leaf, name: "host-\(count - 1).example.com") == nil)
    #expect(try Self.verify(leaf, name: "host-\(count).example.com") == "hostname mismatch")
  }

  @Test func weakKeysAndDigests() throws {
    let ca = try TestCA(.rsa(2048))
    for (digest, level) in [(TestCertificate.Digest.md5, Int32(1)), (.sha1, 1), (.sha256, 3)] {
      var request = TestCertificate.Request()
      request.digest = digest
      let leaf = try ca.issue(request)
      #expect(try Self.verify(leaf, level: 0) == nil)
      #expect(try Self.verify(leaf, level: level) != nil, "\(digest)")
    }
    var request = TestCertificate.Request()
    request.key = .rsa(1024)
    #expect(try Self.verify(try ca.issue(request), level: 2) == "EE certificate key too weak")
    request.digest = .md5
    let error = #expect(throws: TestCA.Failure.self) { try self.ca.issue(request) }
    #expect(error?.description == "the issuer's key cannot sign with md5")
  }

  // MARK: Authorities

  @Test func pathLength() throws {
    let leaf = try ca.intermediate(pathLength: 0).intermediate().issue()
    #expect(try Self.verify(leaf) == "path length constraint exceeded")
  }

  @Test func nameConstraints() throws {
    let permitting = try ca.intermediate { $0.nameConstraints = .init(permitted: [.dns("example.com")]) }
    let excluding = try ca.intermediate { $0.nameConstraints = .init(excluded: [.dns("example.com")]) }
    let inside = TestCertificate.Request(names: ["www.example.com"], ipAddresses: [])
    let outside = TestCertificate.Request(names: ["www.example.org"], ipAddresses: [])
    #expect(try Self.verify(try permitting.issue(inside)) == nil)
    #expect(try Self.verify(try permitting.issue(outside)) == "permitted subtree violation")
    #expect(try Self.verify(try excluding.issue(inside)) == "excluded subtree violation")
    #expect(try Self.verify(try excluding.issue(outside)) == nil)
  }

  @Test func leafThatSigns() throws {
    let leaf = try TestCA(try ca.issue()).issue()
    #expect(leaf.chainDER.count == 2)
    #expect(try Self.verify(leaf) == "invalid CA certificate")
  }

  @Test func leafThatSignsItself() throws {
    let leaf = try TestCA.selfSigned()
    #expect(leaf.chainDER == [leaf.certificateDER])
    #expect(try Self.verify(leaf, root: ca.rootCertificateDER) == "self-signed certificate")
    #expect(try Self.verify(leaf) == nil)
  }

  @Test func versionOne() throws {
    var request = TestCertificate.Request()
    request.version = 1
    request.commonName = "localhost"
    let leaf = try ca.issue(request)
    #expect(leaf.certificateDER.count < (try ca.issue()).certificateDER.count)
    #expect(try Self.verify(leaf) == nil)
  }

  @Test func renewalWithTheSameKey() throws {
    let first = try ca.issue()
    var request = TestCertificate.Request()
    request.privateKeyDER = first.privateKeyDER
    let second = try ca.issue(request)
    #expect(first.certificateDER != second.certificateDER)
    #expect(try first.publicKeyDER() == second.publicKeyDER())
    request.privateKeyDER = [1, 2, 3]
    #expect(throws: TestCA.Failure.self) { try ca.issue(request) }
  }

  // MARK: Revocation

  @Test func revocationList() throws {
    let (good, bad) = (try ca.issue(), try ca.issue())
    let list = try ca.revocationList(revoking: [bad])
    #expect(list.pem.hasPrefix("-----BEGIN X509 CRL-----\nMI"))
    #expect(try Self.verify(good, crl: list) == nil)
    #expect(try Self.verify(bad, crl: list) == "certificate revoked")
    #expect(try Self.verify(good, crl: try ca.revocationList()) == nil)
    #expect(try Self.verify(good, crl: try ca.revocationList(nextUpdate: nil)) == nil)
    #expect(try Self.verify(good, crl: try ca.revocationList(nextUpdate: -60)) == "CRL has expired")
    #expect(try Self.verify(good, crl: try ca.revocationList(thisUpdate: 60)) == "CRL is not yet valid")
    #expect(try Self.verify(good, crl: try TestCA().revocationList()) == "unable to get certificate CRL")
  }

  @Test func ocspResponse() throws {
    let leaf = try ca.issue()
    for (status, number) in [(TestCA.OCSPStatus.good, V_OCSP_CERTSTATUS_GOOD), (.unknown, V_OCSP_CERTSTATUS_UNKNOWN)] {
      #expect(try Self.status(try ca.ocspResponse(for: leaf, status: status), of: leaf, ca) == number)
    }
    let revoked = try ca.ocspResponse(for: leaf, status: .revoked(), nextUpdate: nil)
    #expect(try Self.status(revoked, of: leaf, ca) == V_OCSP_CERTSTATUS_REVOKED)
    // A response about another certificate, and a response signed by another authority.
    #expect(try Self.status(try ca.ocspResponse(for: try ca.issue()), of: leaf, ca) == -2)
    #expect(try Self.status(try TestCA().ocspResponse(for: leaf), of: leaf, ca) == -1)
    var request = TestCertificate.Request()
    request.extendedKeyUsage = [.ocspSigning]
    let delegated = try ca.ocspResponse(for: leaf, signedBy: try ca.issue(request))
    #expect(try Self.status(delegated, of: leaf, ca) == V_OCSP_CERTSTATUS_GOOD)
  }

  /// The status of the certificate in the response: -1 if the authority did not sign the response, -2 if the response
  /// is not about the certificate.
  private static func status(_ response: [UInt8], of leaf: TestCertificate, _ ca: TestCA) throws -> Int32 {
    let parsed = try response.withUnsafeBufferPointer { bytes in
      var at = bytes.baseAddress
      return try #require(d2i_OCSP_RESPONSE(nil, &at, bytes.count))
    }
    defer { OCSP_RESPONSE_free(parsed) }
    let basic = try #require(OCSP_response_get1_basic(parsed))
    defer { OCSP_BASICRESP_free(basic) }
    let (issuer, subject) = (
      try ClientTLS.parse(ca.certificate.certificateDER), try ClientTLS.parse(leaf.certificateDER)
    )
    let store = X509_STORE_new()
    let chain = OPENSSL_sk_new_null()
    OPENSSL_sk_push(chain, UnsafeRawPointer(issuer))
    let identifier = OCSP_cert_to_id(nil, subject, issuer)
    defer {
      OCSP_CERTID_free(identifier)
      OPENSSL_sk_free(chain)
      X509_STORE_free(store)
      X509_free(issuer)
      X509_free(subject)
    }
    X509_STORE_add_cert(store, issuer)
    guard OCSP_basic_verify(basic, chain, store, 0) == 1 else { return -1 }
    var status: Int32 = -2
    OCSP_resp_find_status(basic, identifier, &status, nil, nil, nil, nil)
    return status
  }

  // MARK: Files

  @Test func pem() throws {
    let leaf = try ca.intermediate().issue()
    #expect(leaf.certificatePEM.hasPrefix("-----BEGIN CERTIFICATE-----\nMII"))
    #expect(leaf.privateKeyPEM.hasPrefix("-----BEGIN PRIVATE KEY-----\nM"))
    #expect(leaf.chainPEM.split(separator: "\n").filter { $0 == "-----BEGIN CERTIFICATE-----" }.count == 2)
    #expect(leaf.chainPEM.split(separator: "\n").allSatisfy { $0.utf8.count <= 64 })
    for (format, start) in [(TestCertificate.KeyEncryption.pkcs8, "ENCRYPTED PRIVATE"), (.traditional, "EC PRIVATE")] {
      let text = try leaf.encryptedPrivateKeyPEM(passphrase: "geheim", format)
      #expect(text.hasPrefix("-----BEGIN \(start) KEY-----\n"))
      for (passphrase, isRight) in [("geheim", true), ("wrong", false)] {
        let bio = BIO_new_mem_buf(Array(text.utf8), Int32(text.utf8.count))
        var password = passphrase.utf8CString
        let key = password.withUnsafeMutableBytes { PEM_read_bio_PrivateKey(bio, nil, nil, $0.baseAddress) }
        #expect((key != nil) == isRight)
        EVP_PKEY_free(key)
        BIO_free(bio)
      }
    }
  }

  @Test(arguments: [false, true]) func pkcs12(isLegacy: Bool) throws {
    let leaf = try ca.intermediate().issue()
    let bytes = try leaf.pkcs12(password: "geheim", isLegacy: isLegacy)
    let parsed = try bytes.withUnsafeBufferPointer { bytes in
      var at = bytes.baseAddress
      return try #require(d2i_PKCS12(nil, &at, bytes.count))
    }
    defer { PKCS12_free(parsed) }
    #expect(PKCS12_verify_mac(parsed, "wrong", -1) == 0)
    var (key, certificate, others) = (OpaquePointer?.none, OpaquePointer?.none, OpaquePointer?.none)
    #expect(PKCS12_parse(parsed, "geheim", &key, &certificate, &others) == 1)
    #expect(X509_check_private_key(certificate, key) == 1)
    #expect(OPENSSL_sk_num(others) == 1)
    X509_free(OpaquePointer(OPENSSL_sk_pop(others)))
    OPENSSL_sk_free(others)
    X509_free(certificate)
    EVP_PKEY_free(key)
  }
}
