extension TestCertificate {
  /// The contents of a certificate to be made.
  ///
  /// The defaults describe a good certificate for a server on this machine; every property is a way to make a bad one.
  public struct Request: Hashable, Sendable {
    // MARK: Subject

    /// The subject's common name. If this and ``organization`` are empty, the subject is empty.
    public var commonName = "Larkspur test"
    /// The subject's organisation, or an empty string for none.
    public var organization = ""
    /// The names and addresses that the certificate is for. If empty, the certificate has no such extension.
    public var alternativeNames: [AlternativeName]
    /// Whether the extension of alternative names is critical. If `nil`, the extension is critical if the subject is
    /// empty, as RFC 5280 requires.
    public var alternativeNamesAreCritical: Bool?

    // MARK: Validity

    /// The beginning of validity, in seconds from now.
    public var notBefore = -3600
    /// The end of validity, in seconds from now.
    public var notAfter = 30 * 86_400

    // MARK: Purpose

    /// The basic constraints. If `nil`, the certificate has no such extension.
    public var basicConstraints: BasicConstraints? = BasicConstraints()
    /// The purposes of the key. If `nil`, the certificate has no such extension.
    public var keyUsage: KeyUsage? = [.digitalSignature]
    /// Whether the extension of the key usage is critical.
    public var keyUsageIsCritical = true
    /// The extended purposes of the key. If `nil`, the certificate has no such extension.
    public var extendedKeyUsage: [ExtendedKeyUsage]? = [.serverAuth, .clientAuth]
    /// Whether the extension of the extended key usage is critical.
    public var extendedKeyUsageIsCritical = false
    /// The name constraints. If `nil`, the certificate has no such extension.
    public var nameConstraints: NameConstraints?
    /// Whether the certificate requires the server to staple an OCSP response (RFC 7633).
    public var mustStaple = false

    // MARK: Key and signature

    /// The kind of the new private key. Ignored if ``privateKeyDER`` is set.
    public var key = KeyKind.ecP256
    /// A private key (PKCS#8 in DER) to use in place of a new one, for a renewed certificate whose pin stays.
    public var privateKeyDER: [UInt8]?
    /// A public key (SubjectPublicKeyInfo in DER) of any size and kind to write in place of the private key's own.
    public var publicKeyDER: [UInt8]?
    /// The digest of the issuer's signature. Ed25519 signatures ignore the digest.
    public var digest = Digest.sha256
    /// Whether the signature is wrong in one bit.
    public var hasBrokenSignature = false

    // MARK: Formal fields

    /// The serial number in two's complement, highest byte first. If `nil`, 16 random bytes.
    public var serialNumber: [UInt8]?
    /// The version of the format, 1 to 3. Only version 3 has extensions.
    public var version = 3
    /// The extension that identifies the certificate's own key.
    public var subjectKeyIdentifier = KeyIdentifier.right
    /// The extension that identifies the issuer's key.
    public var authorityKeyIdentifier = KeyIdentifier.right
    /// The addresses of the issuer's OCSP responder.
    public var ocspURLs: [String] = []
    /// The addresses of the issuer's certificate.
    public var issuerURLs: [String] = []
    /// The addresses of the issuer's revocation list.
    public var revocationListURLs: [String] = []
    /// Extensions to append, each in its encoding.
    public var otherExtensions: [Extension] = []

    /// Describes a certificate for a server (and a client) with these names and IP addresses.
    ///
    /// - Parameters:
    ///   - names: DNS names in the form that the certificate has: `*.example.com`, `xn--bcher-kva.example`.
    ///   - ipAddresses: IP addresses such as `127.0.0.1` and `::1`. Text that is no IP address is left out.
    public init(names: [String] = ["localhost"], ipAddresses: [String] = ["127.0.0.1", "::1"]) {
      alternativeNames =
        names.map { .dns(Array($0.utf8)) } + ipAddresses.compactMap { AlternativeName.address($0) }
    }

    /// Describes a certificate for an authority.
    ///
    /// - Parameters:
    ///   - commonName: The subject's common name.
    ///   - pathLength: The number of authorities that may stand below this one, or `nil` for no limit.
    public static func authority(_ commonName: String, pathLength: Int? = nil) -> Self {
      var request = Self(names: [], ipAddresses: [])
      request.commonName = commonName
      request.basicConstraints = BasicConstraints(isAuthority: true, pathLength: pathLength)
      request.keyUsage = [.keyCertSign, .crlSign, .digitalSignature]
      request.extendedKeyUsage = nil
      request.notBefore = -86_400
      request.notAfter = 3650 * 86_400
      return request
    }
  }
}

extension TestCertificate.Request {
  /// A name in the subject alternative name extension, or a subtree in the name constraints.
  public enum AlternativeName: Hashable, Sendable {
    /// A DNS name. The bytes are written unchanged, whether they are a name or not.
    case dns([UInt8])
    /// An IP address: 4 or 16 bytes in a good certificate; twice as many (address and mask) in name constraints.
    case ipAddress([UInt8])
    /// An email address. The bytes are written unchanged.
    case email([UInt8])
    /// A URI. The bytes are written unchanged.
    case uri([UInt8])

    /// Returns a DNS name with the bytes of the text.
    public static func dns(_ name: String) -> Self { .dns(Array(name.utf8)) }

    /// - Returns: The name for an IP address such as `127.0.0.1` or `::1`, or `nil` if the text is no IP address.
    public static func address(_ text: String) -> Self? { IPAddressText.bytes(of: text).map { .ipAddress($0) } }
  }

  /// The extension that says whether the certificate is that of an authority (RFC 5280, section 4.2.1.9).
  public struct BasicConstraints: Hashable, Sendable {
    /// Whether the certificate may issue others.
    public var isAuthority: Bool
    /// The number of authorities that may stand below this one, or `nil` for no limit.
    public var pathLength: Int?
    /// Whether the extension is critical.
    public var isCritical: Bool

    /// Creates the constraints of a certificate that issues no others, by default.
    public init(isAuthority: Bool = false, pathLength: Int? = nil, isCritical: Bool = true) {
      self.isAuthority = isAuthority
      self.pathLength = pathLength
      self.isCritical = isCritical
    }
  }

  /// The purposes of a key (RFC 5280, section 4.2.1.3).
  public struct KeyUsage: OptionSet, Hashable, Sendable {
    /// The bits of the purposes: bit N of RFC 5280 has the value 1 << N.
    public let rawValue: Int

    /// Creates the purposes of these bits.
    public init(rawValue: Int) {
      self.rawValue = rawValue
    }

    /// Signatures of handshakes and messages.
    public static let digitalSignature = Self(rawValue: 1 << 0)
    /// Signatures that cannot be denied later, also called `contentCommitment`.
    public static let nonRepudiation = Self(rawValue: 1 << 1)
    /// Encryption of keys, such as those of static RSA in TLS 1.2.
    public static let keyEncipherment = Self(rawValue: 1 << 2)
    /// Encryption of data by the certificate's key itself.
    public static let dataEncipherment = Self(rawValue: 1 << 3)
    /// Agreement on keys, such as Diffie-Hellman.
    public static let keyAgreement = Self(rawValue: 1 << 4)
    /// Signatures of certificates.
    public static let keyCertSign = Self(rawValue: 1 << 5)
    /// Signatures of revocation lists.
    public static let crlSign = Self(rawValue: 1 << 6)
    /// With `keyAgreement`: for encryption only.
    public static let encipherOnly = Self(rawValue: 1 << 7)
    /// With `keyAgreement`: for decryption only.
    public static let decipherOnly = Self(rawValue: 1 << 8)
  }

  /// An extended purpose of a key (RFC 5280, section 4.2.1.12).
  public enum ExtendedKeyUsage: Hashable, Sendable {
    /// TLS servers.
    case serverAuth
    /// TLS clients.
    case clientAuth
    /// Signatures of programs.
    case codeSigning
    /// Signatures and encryption of email.
    case emailProtection
    /// Signatures of OCSP responses.
    case ocspSigning
    /// All purposes: `anyExtendedKeyUsage`.
    case any
    /// The purpose with this object identifier, such as `1.3.6.1.5.5.7.3.8`.
    case other(String)

    var object: String {
      switch self {
      case .serverAuth: "1.3.6.1.5.5.7.3.1"
      case .clientAuth: "1.3.6.1.5.5.7.3.2"
      case .codeSigning: "1.3.6.1.5.5.7.3.3"
      case .emailProtection: "1.3.6.1.5.5.7.3.4"
      case .ocspSigning: "1.3.6.1.5.5.7.3.9"
      case .any: "2.5.29.37.0"
      case .other(let object): object
      }
    }
  }

  /// The names that an authority may and may not certify (RFC 5280, section 4.2.1.10).
  public struct NameConstraints: Hashable, Sendable {
    /// The subtrees of which a name must be in one. If empty, any name is permitted.
    public var permitted: [AlternativeName]
    /// The subtrees in which no name may be.
    public var excluded: [AlternativeName]
    /// Whether the extension is critical.
    public var isCritical = true

    /// Creates constraints, which are critical.
    public init(permitted: [AlternativeName] = [], excluded: [AlternativeName] = []) {
      self.permitted = permitted
      self.excluded = excluded
    }
  }

  /// The contents of an extension that identifies a key.
  public enum KeyIdentifier: Hashable, Sendable {
    /// The identifier of the key.
    case right
    /// No extension.
    case absent
    /// The identifier of another key.
    case other([UInt8])
  }

  /// An extension in its encoding.
  public struct Extension: Hashable, Sendable {
    /// The object identifier, such as `2.5.29.32`.
    public var object: String
    /// Whether a program that does not support the extension must refuse the certificate.
    public var isCritical: Bool
    /// The value's bytes: DER in a good certificate.
    public var value: [UInt8]

    /// Creates an extension. A good one has an object identifier that no other extension of the certificate has.
    public init(object: String, isCritical: Bool = false, value: [UInt8]) {
      self.object = object
      self.isCritical = isCritical
      self.value = value
    }
  }
}
