import Foundation
import LarkspurTLS

/// The trust settings of a session's connections: which servers they trust, and their client certificate. This type is
/// Larkspur's own: on Darwin the same result takes a delegate that answers each challenge. The settings apply before
/// any delegate is asked.
///
/// ```swift
/// var trust = TLSTrustSettings()
/// trust.pins = [PinnedHost("api.example.com", pins: [first, backup])].compactMap(\.self)
/// ```
public struct TLSTrustSettings: Sendable {
  /// The roots of trusted chains.
  public enum Roots: Sendable {
    /// The roots that OpenSSL finds: those of `SSL_CERT_FILE` and `SSL_CERT_DIR` if set, and the system's otherwise. If
    /// OpenSSL's own places are empty, the usual ones of other systems are searched (<doc:TLSPolicy>). If the file cannot be
    /// used, connections to servers without another trusted root fail with `secureConnectionFailed`
    /// and the file's name.
    case system
    /// The system's roots, and these.
    case systemAnd([TLSCertificate])
    /// Only these roots, for instance those of a private authority.
    case only([TLSCertificate])
  }

  /// The trusted roots.
  public var roots = Roots.system

  /// The paths of files with further trusted roots, in PEM or DER, of at most 4 MiB each. New connections read them again
  /// when they change, as an identity's files (``ClientIdentity/init(certificateFile:keyFile:password:)``); `.only([])` in
  /// ``roots`` trusts the files alone. If a file cannot be read at first, connections fail with
  /// `secureConnectionFailed` and the file's name. Empty by default. curl's option is `--cacert`.
  public var rootFiles: [String] = []

  /// Called with the path of a changed file of ``identity`` or ``rootFiles`` that cannot be used, and the reason, once
  /// for each new reason. Connections continue with the earlier content. The call is made on any thread, and must not
  /// block.
  public var fileFailed: (@Sendable (_ path: String, _ reason: String) -> Void)?

  /// Certificate revocation lists, each element the bytes of one file in PEM or DER. If there is at least one, each
  /// issuer of a chain needs one that is up to date, or the connection fails.
  public var revocationLists: [Data] = []

  /// The hosts that have to show certain keys or certificates.
  public var pins: [PinnedHost] = []

  /// Called when pins do not match, whether or not the connection continues. The call is made on a thread of the
  /// session, and must not block.
  public var pinMismatched: (@Sendable (PinningFailure) -> Void)?

  /// The identity that is shown to each server that asks for a certificate. If it is `nil`, the delegate is asked.
  public var identity: ClientIdentity?

  /// Returns the identity to show to a server that asks for a certificate, or `nil` to ask the delegate. Called for each
  /// new connection to such a server, if ``identity`` is `nil`: an agent or a device can give out a new identity each time.
  /// The connection's time limit includes the call. Such connections resume no TLS session. Not called for the tasks
  /// of a background session.
  public var provideIdentity: (@Sendable (_ host: String, _ port: Int) async -> ClientIdentity?)?

  /// Whether any certificate of a server is accepted. Anyone on the network path can then read and change everything.
  /// Pins still apply, and never match, because nothing is verified.
  public var dangerouslyAllowsAnyCertificate = false

  /// Whether key exchanges without elliptic curves are offered as well: DHE, with groups of 2048 to 4096 bits, and
  /// static RSA in TLS 1.2. Static RSA has no forward secrecy: with a server's key that is stolen later, recorded
  /// traffic can be decrypted. DHE can delay the session's other loads by 60 ms. Apple's transport security and
  /// browsers offer neither.
  public var dangerouslyAllowsLegacyKeyExchange = false

  /// The places of the system's roots, or `nil` for those that the environment names.
  var rootPlaces: RootPlaces?

  /// The path of a file to which the secrets of all connections are appended, in the format that Wireshark and other
  /// debuggers read (`NSS Key Log Format`). `nil`, the default, writes nothing: no environment variable is read. curl and
  /// `larkspur get --dangerously-log-keys` name the file by `SSLKEYLOGFILE`.
  ///
  /// With the file, recorded traffic can be decrypted. The file is created for its owner only. Connections fail with
  /// `secureConnectionFailed` and the file's name if it cannot be written, if it is a link, a pipe or another user's
  /// file, or if others have access to it.
  public var dangerousKeyLogFile: String?

  /// Creates settings with the system's roots, no pins and no identity.
  public init() {}
}

/// A key or a certificate that a host is expected to have in its chain.
public enum CertificatePin: Hashable, Sendable {
  /// Exactly this certificate. The pin is useless once the certificate has expired.
  case certificate(TLSCertificate)
  /// Any certificate whose SubjectPublicKeyInfo has this SHA-256 hash, of 32 bytes (RFC 7469 2.4).
  case publicKeySHA256(Data)

  /// Creates a pin from `sha256/` and 44 characters of base64, the form that curl and HTTP public key pinning use, or
  /// returns `nil` for other text.
  public init?(_ text: String) {
    guard case .publicKeySHA256(let digest)? = Pin(text) else { return nil }
    self = .publicKeySHA256(Data(digest))
  }

  /// Returns the pin of a certificate's key. If a renewed certificate keeps its key, the pin still matches.
  public static func publicKey(of certificate: TLSCertificate) -> CertificatePin {
    .publicKeySHA256(certificate.publicKeySHA256)
  }
}

extension CertificatePin: CustomStringConvertible {
  /// `sha256/` and the base64 of the key's hash.
  public var description: String { inner.description }

  var inner: Pin {
    switch self {
    case .certificate(let certificate): .certificate(certificate.inner)
    case .publicKeySHA256(let digest): .publicKeySHA256(Array(digest))
    }
  }
}

/// A host, or a domain, that has to show certain keys or certificates.
///
/// They are searched in the verified chain only. A host should have a backup pin, of a key that is not in use yet. If
/// several entries cover a host, those with the longest name apply.
public struct PinnedHost: Hashable, Sendable {
  let inner: PinPolicy.Host

  /// Creates an entry, or returns `nil` if the name cannot be a host.
  ///
  /// - Parameters:
  ///   - name: The host as in a URL, without brackets.
  ///   - includesSubdomains: Whether the pins apply to all names below `name` as well.
  ///   - pins: The pins, one of which has to match. If the set is empty, no chain ever matches.
  ///   - looksAtLeafOnly: Whether only the server's own certificate is compared.
  ///   - reportsOnly: Whether a mismatch is only reported, and the connection continues.
  public init?(
    _ name: String, includesSubdomains: Bool = false, pins: Set<CertificatePin>, looksAtLeafOnly: Bool = false,
    reportsOnly: Bool = false
  ) {
    guard
      let host = PinPolicy.Host(
        name, includesSubdomains: includesSubdomains, pins: Set(pins.map(\.inner)), looksAtLeafOnly: looksAtLeafOnly,
        reportsOnly: reportsOnly)
    else { return nil }
    inner = host
  }

  /// The host in lower case, without a trailing dot; an address in its canonical form.
  public var name: String { inner.name }
}

/// The error that none of a host's pins is in its chain.
public struct PinningFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The connected host.
  public let host: String
  /// The host's pins, as `sha256/...`.
  public let expected: [String]
  /// The pins of the verified chain, from the server's certificate to the root. Empty if there is no verified chain.
  public let seen: [String]

  init(_ mismatch: PinMismatch) {
    host = mismatch.server.text
    expected = mismatch.expected.map(\.description).sorted()
    seen = mismatch.seen.map(\.description)
  }

  /// A human-readable description.
  public var description: String {
    "no pin of \(host) matches; seen: " + (seen.isEmpty ? "no verified chain" : seen.joined(separator: ", "))
  }
}

extension TLSTrustSettings {
  /// Whether all settings but the places of the system's roots have their defaults, so that sessions can share the TLS
  /// context made from them.
  var isStandard: Bool {
    guard case .system = roots else { return false }
    return revocationLists.isEmpty && pins.isEmpty && pinMismatched == nil && identity == nil
      && rootFiles.isEmpty && fileFailed == nil
      && !dangerouslyAllowsAnyCertificate && !dangerouslyAllowsLegacyKeyExchange && dangerousKeyLogFile == nil
  }

  package func apply(to configuration: inout TLSConfiguration) {
    configuration.roots = roots.inner
    configuration.rootFiles = rootFiles
    configuration.rootPlaces = rootPlaces
    configuration.revocationLists = revocationLists.map { Array($0) }
    configuration.pins = PinPolicy(pins.map(\.inner))
    configuration.identity = identity?.inner
    configuration.dangerouslyAllowsAnyCertificate = dangerouslyAllowsAnyCertificate
    configuration.dangerouslyAllowsLegacyKeyExchange = dangerouslyAllowsLegacyKeyExchange
    configuration.dangerousKeyLogFile = dangerousKeyLogFile
  }

  /// The callback for `TLSContext`'s parameter `pinMismatched`, or `nil` if no function is set.
  var mismatchReport: (@Sendable (PinMismatch) -> Void)? {
    guard let pinMismatched else { return nil }
    return { pinMismatched(PinningFailure($0)) }
  }
}

extension TLSTrustSettings.Roots {
  var inner: TrustRoots {
    switch self {
    case .system: .system
    case .systemAnd(let certificates): .systemAnd(certificates.map(\.inner))
    case .only(let certificates): .only(certificates.map(\.inner))
    }
  }
}
