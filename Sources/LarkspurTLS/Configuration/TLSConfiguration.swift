/// What a user decides about TLS. Connections of one configuration share one `TLSContext`: its trust store is parsed
/// once, and its sessions are resumed by its connections only.
///
/// Where the system's configuration of OpenSSL is stricter (`MinProtocol`, `MaxProtocol`, `CipherString`, `Groups`, the security
/// level), it counts.
public struct TLSConfiguration: Sendable {
  public var minimumVersion = TLSVersion.tls12
  public var maximumVersion = TLSVersion.tls13

  public var roots = TrustRoots.system

  /// Certificate revocation lists, each file's bytes in PEM or DER. Once there is one, every issuer of a chain needs
  /// one that is up to date, or the chain fails.
  public var revocationLists: [[UInt8]] = []

  public var pins = PinPolicy()

  /// Shown to every server that asks for a certificate.
  public var identity: ClientIdentity?

  /// Whether sessions are resumed: a new connection then takes one round trip and no verification of signatures.
  public var resumesSessions = true

  /// Takes whatever certificate the server has. Whoever sits on the way can read and change everything. Pins still
  /// count: they never match, because nothing is verified.
  public var dangerouslyAllowsAnyCertificate = false

  /// Offers key exchanges without elliptic curves as well: DHE, with groups of 2048 to 4096 bits, and static RSA in TLS 1.2.
  /// Static RSA has no forward secrecy: a server's key that is stolen later opens what was recorded before. DHE takes up to
  /// 60 ms of the loop's time.
  public var dangerouslyAllowsLegacyKeyExchange = false

  /// Appends the secrets of all connections to the file that `SSLKEYLOGFILE` names, for debuggers: who has the file
  /// can read the traffic. It is created for its owner alone; one that others have access to is refused. Without the
  /// variable nothing is logged.
  public var dangerouslyLogsKeys = false

  public init() {}
}

/// Whom to trust.
public enum TrustRoots: Sendable {
  /// The roots that OpenSSL finds: `SSL_CERT_FILE` and `SSL_CERT_DIR` if set, or else the system's.
  case system
  /// The system's, and these.
  case systemAnd([Certificate])
  /// These and no others.
  case only([Certificate])
}
