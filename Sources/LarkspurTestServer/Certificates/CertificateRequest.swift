extension TestCertificate {
  /// What is to stand in a certificate. As it is, the certificate is a good one for a server on this machine; every
  /// property is a way to make a bad one.
  public struct Request: Hashable, Sendable {
    // MARK: Who

    /// The subject's common name. Empty: an empty subject.
    public var commonName = "Larkspur test"
    /// The subject's organisation. Empty: none.
    public var organization = ""
    /// The names and addresses that it is for. Empty: no such extension.
    public var alternativeNames: [AlternativeName]
    /// Nil: if the subject is empty, as RFC 5280 asks.
    public var alternativeNamesAreCritical: Bool?

    // MARK: When

    /// In seconds from now.
    public var notBefore = -3600
    /// In seconds from now.
    public var notAfter = 30 * 86_400

    // MARK: What for

    /// Nil: no such extension.
    public var basicConstraints: BasicConstraints? = BasicConstraints()
    /// Nil: no such extension.
    public var keyUsage: KeyUsage? = [.digitalSignature]
    public var keyUsageIsCritical = true
    /// Nil: no such extension.
    public var extendedKeyUsage: [ExtendedKeyUsage]? = [.serverAuth, .clientAuth]
    public var extendedKeyUsageIsCritical = false
    /// Nil: no such extension.
    public var nameConstraints: NameConstraints?
    /// The server is to staple an OCSP response (RFC 7633).
    public var mustStaple = false

    // MARK: Key and signature

    public var key = KeyKind.ecP256
    /// A key to be used again (PKCS#8 in DER), in place of a new one: for a renewed certificate whose pin stays.
    public var privateKeyDER: [UInt8]?
    /// A public key (SubjectPublicKeyInfo in DER) of any size and kind, in place of the private key's own.
    public var publicKeyDER: [UInt8]?
    /// Of the issuer's signature. (Ed25519 has none.)
    public var digest = Digest.sha256
    /// A signature that is wrong in one bit.
    public var hasBrokenSignature = false

    // MARK: Formalities

    /// Two's complement, the highest byte first. Nil: 16 random bytes.
    public var serialNumber: [UInt8]?
    /// 3; version 1 has no extensions at all.
    public var version = 3
    public var subjectKeyIdentifier = KeyIdentifier.right
    public var authorityKeyIdentifier = KeyIdentifier.right
    /// Where the issuer's OCSP responder is, and its certificate.
    public var ocspURLs: [String] = []
    public var issuerURLs: [String] = []
    /// Where the issuer's revocation list is.
    public var revocationListURLs: [String] = []
    /// Whatever else is to stand in it.
    public var otherExtensions: [Extension] = []

    /// A certificate for a server (and a client) with these names and IP addresses.
    ///
    /// - Parameters:
    ///   - names: As they are: `*.example.com`, `xn--bcher-kva.example`.
    ///   - ipAddresses: `127.0.0.1`, `::1`. Text that is no IP address is left out.
    public init(names: [String] = ["localhost"], ipAddresses: [String] = ["127.0.0.1", "::1"]) {
      alternativeNames =
        names.map { .dns(Array($0.utf8)) } + ipAddresses.compactMap { AlternativeName.address($0) }
    }

    /// A certificate for an authority.
    ///
    /// - Parameter pathLength: How many authorities may stand below it. Nil: no limit.
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
    /// The bytes as they are, be they a name or not.
    case dns([UInt8])
    /// 4 or 16 bytes in a good certificate; twice as many (address, mask) in name constraints.
    case ipAddress([UInt8])
    case email([UInt8])
    case uri([UInt8])

    public static func dns(_ name: String) -> Self { .dns(Array(name.utf8)) }

    /// `127.0.0.1` or `::1`. Nil: the text is no IP address.
    public static func address(_ text: String) -> Self? { IPAddressText.bytes(of: text).map { .ipAddress($0) } }
  }

  public struct BasicConstraints: Hashable, Sendable {
    public var isAuthority: Bool
    /// How many authorities may stand below this one. Nil: no limit.
    public var pathLength: Int?
    public var isCritical: Bool

    public init(isAuthority: Bool = false, pathLength: Int? = nil, isCritical: Bool = true) {
      self.isAuthority = isAuthority
      self.pathLength = pathLength
      self.isCritical = isCritical
    }
  }

  /// RFC 5280, section 4.2.1.3.
  public struct KeyUsage: OptionSet, Hashable, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) {
      self.rawValue = rawValue
    }

    public static let digitalSignature = Self(rawValue: 1 << 0)
    public static let nonRepudiation = Self(rawValue: 1 << 1)
    public static let keyEncipherment = Self(rawValue: 1 << 2)
    public static let dataEncipherment = Self(rawValue: 1 << 3)
    public static let keyAgreement = Self(rawValue: 1 << 4)
    public static let keyCertSign = Self(rawValue: 1 << 5)
    public static let crlSign = Self(rawValue: 1 << 6)
    public static let encipherOnly = Self(rawValue: 1 << 7)
    public static let decipherOnly = Self(rawValue: 1 << 8)
  }

  /// RFC 5280, section 4.2.1.12.
  public enum ExtendedKeyUsage: Hashable, Sendable {
    case serverAuth, clientAuth, codeSigning, emailProtection, ocspSigning, any
    /// An object identifier, such as `1.3.6.1.5.5.7.3.8`.
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

  /// RFC 5280, section 4.2.1.10.
  public struct NameConstraints: Hashable, Sendable {
    public var permitted: [AlternativeName]
    public var excluded: [AlternativeName]
    public var isCritical = true

    public init(permitted: [AlternativeName] = [], excluded: [AlternativeName] = []) {
      self.permitted = permitted
      self.excluded = excluded
    }
  }

  /// What stands in an extension that names a key.
  public enum KeyIdentifier: Hashable, Sendable {
    /// The identifier of the key.
    case right
    /// No such extension.
    case absent
    /// The identifier of another key.
    case other([UInt8])
  }

  /// An extension in its encoding.
  public struct Extension: Hashable, Sendable {
    /// The object identifier, such as `2.5.29.32`.
    public var object: String
    public var isCritical: Bool
    /// DER in a good certificate.
    public var value: [UInt8]

    public init(object: String, isCritical: Bool = false, value: [UInt8]) {
      self.object = object
      self.isCritical = isCritical
      self.value = value
    }
  }
}
