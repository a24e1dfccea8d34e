/// The TLS settings of a session. All connections of one configuration share one `TLSContext`, which parses the trust
/// store once. Only these connections resume its TLS sessions.
///
/// A stricter setting in the system's configuration of OpenSSL (`MinProtocol`, `MaxProtocol`, `CipherString`, `Groups`,
/// the security level) takes precedence.
public struct TLSConfiguration: Sendable {
  /// The oldest version that is accepted.
  public var minimumVersion = TLSVersion.tls12
  /// The newest version that is offered.
  public var maximumVersion = TLSVersion.tls13

  /// The certificates at which the chain of a server may end.
  public var roots = TrustRoots.system

  /// Paths of files with further roots, in PEM or DER. New connections read them again when they change. `Security` reads
  /// them, and `TLSContext` does not.
  public var rootFiles: [String] = []

  /// The places of the system's roots, or `nil` for those that the environment names when the context is created.
  public var rootPlaces: RootPlaces?

  /// Certificate revocation lists, the bytes of one PEM or DER file each. With at least one list, every issuer of a
  /// chain needs an up-to-date list, or verification fails.
  public var revocationLists: [[UInt8]] = []

  /// The certificates or keys that chains must contain. Without hosts by default.
  public var pins = PinPolicy()

  /// The client certificate that is sent to every server that asks for one.
  public var identity: ClientIdentity?

  /// Whether sessions are resumed. A resumed handshake takes one round trip and verifies no signatures.
  public var resumesSessions = true

  /// Accepts any server certificate. Anyone on the network path can then read and change everything. Pins still count,
  /// and never match, because nothing is verified.
  public var dangerouslyAllowsAnyCertificate = false

  /// Also offers key exchanges without elliptic curves: DHE with groups of 2048 to 4096 bits, and static RSA in TLS
  /// 1.2. Static RSA has no forward secrecy: with a server's key that is stolen later, recorded traffic can be
  /// decrypted. DHE takes up to 60 ms of the loop's time.
  public var dangerouslyAllowsLegacyKeyExchange = false

  /// The path of a file to which the secrets of all connections are appended, for debuggers, or `nil`. With the file, the
  /// traffic can be decrypted. The file is created with access for its owner only, and a file to which others have
  /// access is refused.
  public var dangerousKeyLogFile: String?

  /// Creates the default settings: TLS 1.2 and 1.3, and the system's roots.
  public init() {}
}

/// The root certificates at which a chain may end.
public enum TrustRoots: Sendable {
  /// OpenSSL's default roots: those in `SSL_CERT_FILE` and `SSL_CERT_DIR` if set, or else the system's. See `RootPlaces`.
  case system
  /// The system's roots and the given certificates.
  case systemAnd([Certificate])
  /// Only the given certificates.
  case only([Certificate])

  /// Adds certificates to the trusted ones.
  public mutating func add(_ further: [Certificate]) {
    switch self {
    case .system: self = .systemAnd(further)
    case .systemAnd(let certificates): self = .systemAnd(certificates + further)
    case .only(let certificates): self = .only(certificates + further)
    }
  }
}
