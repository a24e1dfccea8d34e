import Foundation
import LarkspurTLS

/// Whom a session's connections trust, and who they say they are. Only Larkspur has it: on Darwin the same takes a delegate
/// for each challenge. What is set here counts before any delegate is asked.
///
/// ```swift
/// var trust = TLSTrustSettings()
/// trust.pins = [PinnedHost("api.example.com", pins: [first, backup])].compactMap(\.self)
/// ```
public struct TLSTrustSettings: Sendable {
  /// Whose signatures lead to trust.
  public enum Roots: Sendable {
    /// The roots that OpenSSL finds: `SSL_CERT_FILE` and `SSL_CERT_DIR` if set, or else the system's. If the file cannot be used,
    /// servers that no other root vouches for fail with `secureConnectionFailed` and the file's name.
    case system
    /// The system's, and these.
    case systemAnd([TLSCertificate])
    /// These and no others: an own authority.
    case only([TLSCertificate])
  }

  /// The roots that count.
  public var roots = Roots.system

  /// Certificate revocation lists, each file's bytes in PEM or DER. Once there is one, every issuer of a chain needs one that is
  /// up to date, or the connection fails.
  public var revocationLists: [Data] = []

  /// Hosts that have to show certain keys or certificates.
  public var pins: [PinnedHost] = []

  /// Told of pins that do not match, whether the connection goes on or not. On a thread of the session's, which must not be
  /// kept waiting.
  public var pinMismatched: (@Sendable (PinningFailure) -> Void)?

  /// Shown to every server that asks for a certificate. Nil: the delegate is asked.
  public var identity: ClientIdentity?

  /// Takes whatever certificate a server has: whoever sits on the way can read and change everything. Pins still count,
  /// and never match, because nothing is verified.
  public var dangerouslyAllowsAnyCertificate = false

  /// Offers key exchanges without elliptic curves as well: DHE, with groups of 2048 to 4096 bits, and static RSA in TLS 1.2.
  /// Static RSA has no forward secrecy: a server's key that is stolen later opens what was recorded before. DHE can hold up the
  /// session's other loads for 60 ms. Apple's transport security and browsers offer neither.
  public var dangerouslyAllowsLegacyKeyExchange = false

  /// The system's roots, no pins, no identity.
  public init() {}
}

/// A key or a certificate that a host is expected to have in its chain.
public enum CertificatePin: Hashable, Sendable {
  /// This very certificate. It ends with the certificate's validity.
  case certificate(TLSCertificate)
  /// Any certificate with the key whose SubjectPublicKeyInfo has this SHA-256, of 32 bytes (RFC 7469 2.4).
  case publicKeySHA256(Data)

  /// Reads `sha256/` and 44 characters of base64, as curl and HTTP public key pinning write it. Nil: it is something else.
  public init?(_ text: String) {
    guard case .publicKeySHA256(let digest)? = Pin(text) else { return nil }
    self = .publicKeySHA256(Data(digest))
  }

  /// The pin of a certificate's key, which survives the certificate's renewal.
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
/// They are looked for in the verified chain only. A host should have a backup pin, of a key that is not in use yet. Of
/// several entries that cover a host, those with the longest name count.
public struct PinnedHost: Hashable, Sendable {
  let inner: PinPolicy.Host

  /// - Parameters:
  ///   - name: As it stands in a URL, without brackets. Nil is returned if it cannot be a host.
  ///   - includesSubdomains: Whether they count for all names below it as well.
  ///   - pins: One of them has to be there. None: nothing ever matches.
  ///   - looksAtLeafOnly: Whether only the server's own certificate is looked at.
  ///   - reportsOnly: Whether a mismatch is only reported, and the connection goes on.
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

  /// In lower case, without a dot at its end; an address in its canonical form.
  public var name: String { inner.name }
}

/// None of a host's pins is in its chain.
public struct PinningFailure: Error, Hashable, Sendable, CustomStringConvertible {
  /// The host that was connected to.
  public let host: String
  /// The pins that it should have shown, as `sha256/...`.
  public let expected: [String]
  /// The pins of the verified chain, from the server's certificate to the root; none: there is no verified chain.
  public let seen: [String]

  init(_ mismatch: PinMismatch) {
    host = mismatch.server.text
    expected = mismatch.expected.map(\.description).sorted()
    seen = mismatch.seen.map(\.description)
  }

  /// For people to read.
  public var description: String {
    "no pin of \(host) matches; seen: " + (seen.isEmpty ? "no verified chain" : seen.joined(separator: ", "))
  }
}

extension TLSTrustSettings {
  /// Whether nothing is set: then sessions can share what is made of it.
  var isStandard: Bool {
    guard case .system = roots else { return false }
    return revocationLists.isEmpty && pins.isEmpty && pinMismatched == nil && identity == nil
      && !dangerouslyAllowsAnyCertificate && !dangerouslyAllowsLegacyKeyExchange
  }

  func apply(to configuration: inout TLSConfiguration) {
    configuration.roots = roots.inner
    configuration.revocationLists = revocationLists.map { Array($0) }
    configuration.pins = PinPolicy(pins.map(\.inner))
    configuration.identity = identity?.inner
    configuration.dangerouslyAllowsAnyCertificate = dangerouslyAllowsAnyCertificate
    configuration.dangerouslyAllowsLegacyKeyExchange = dangerouslyAllowsLegacyKeyExchange
  }

  /// For `TLSContext`'s parameter of the same name.
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
