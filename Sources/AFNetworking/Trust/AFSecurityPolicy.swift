import Foundation
import Larkspur
import Synchronization

/// The part of a server's certificates that is compared with pins.
public enum AFSSLPinningMode: UInt, Hashable, Sendable {
  /// No pins: the chain must be valid.
  case none = 0
  /// Public keys: those of the pinned certificates, and the key pins.
  case publicKey = 1
  /// Whole certificates, byte by byte.
  case certificate = 2
}

/// Decides whether a server is trusted.
///
/// By default a chain must lead to a root that the session trusts, and its certificate must be valid for the host. Pins
/// are an additional condition: they never make an invalid chain valid, unless ``allowInvalidCertificates`` is set.
///
/// ```swift
/// let policy = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: [certificate])
/// manager.securityPolicy = policy
/// ```
///
/// Pins are compared with the verified chain. A certificate that a server merely sends along does not count: this was a
/// vulnerability of early versions of AFNetworking, as was the missing check of the host's name.
///
/// Have a backup for each pin, for a key that is not in use yet. Properties may be set on any thread; an evaluation
/// uses the settings that it finds at its beginning.
open class AFSecurityPolicy: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  struct Settings: Sendable {
    var mode = AFSSLPinningMode.none
    var certificates: Set<Data>?
    var keyPins: Set<CertificatePin> = []
    var allowsInvalid = false
    var validatesName = true
    var validatesChain = false
  }

  private let settings = Mutex(Settings())

  /// Creates a policy without pins, which refuses invalid certificates and checks the host's name.
  public override init() { super.init() }

  /// Creates a policy that pins the certificates of the main bundle: see ``certificates(in:)``.
  public convenience init(pinningMode: AFSSLPinningMode) {
    self.init(pinningMode: pinningMode, withPinnedCertificates: Self.certificates(in: .main))
  }

  /// Creates a policy with pinned certificates.
  ///
  /// - Parameters:
  ///   - pinningMode: The part of the certificates that is compared.
  ///   - pinnedCertificates: Certificates as DER, as in `.cer` files.
  public convenience init(pinningMode: AFSSLPinningMode, withPinnedCertificates pinnedCertificates: Set<Data>) {
    self.init()
    settings.withLock { settings in
      settings.mode = pinningMode
      settings.certificates = pinnedCertificates
    }
  }

  /// Creates a policy that pins keys by their hashes, in the notation of HTTP public key pinning and curl. Only
  /// AFNetworking on Linux has this initializer.
  ///
  /// ```swift
  /// let pins = ["sha256/AAAA...=", "sha256/BBBB...="].compactMap { CertificatePin($0) }
  /// let policy = AFSecurityPolicy(publicKeyPins: Set(pins))
  /// ```
  ///
  /// - Parameter publicKeyPins: The pins, one of which must be in the chain. Use at least two, one of them for
  ///   a key that is not in use yet.
  public convenience init(publicKeyPins: Set<CertificatePin>) {
    self.init()
    settings.withLock { settings in
      settings.mode = .publicKey
      settings.keyPins = publicKeyPins
    }
  }

  /// Creates a policy with the settings of `init()`.
  public class func `default`() -> AFSecurityPolicy { AFSecurityPolicy() }

  /// Returns the certificates in a bundle: from its files whose names end in `.cer`, DER or PEM. Files that cannot be
  /// read are skipped.
  public class func certificates(in bundle: Bundle) -> Set<Data> {
    let files = bundle.paths(forResourcesOfType: "cer", inDirectory: nil).map { URL(filePath: $0) }
    return Set(files.flatMap(CertificateFiles.certificates(of:)))
  }

  /// Returns the certificates in a directory: from its files whose names end in `.cer`, `.crt`, `.der` or `.pem`.
  /// Programs on Linux seldom have a bundle: only AFNetworking on Linux has this method.
  ///
  /// - Throws: An error if the directory cannot be listed. Files that are not certificates are skipped.
  public class func certificates(inDirectory directory: URL) throws -> Set<Data> {
    try CertificateFiles.certificates(inDirectory: directory)
  }

  /// The part of the certificates that is compared. Fixed when the policy is created.
  open var sslPinningMode: AFSSLPinningMode { settings.withLock { $0.mode } }

  /// The pinned certificates as DER. If this is `nil` or empty, a policy with mode ``AFSSLPinningMode/certificate``
  /// trusts no server.
  open var pinnedCertificates: Set<Data>? {
    get { settings.withLock { $0.certificates } }
    set { settings.withLock { $0.certificates = newValue } }
  }

  /// Key pins, for ``AFSSLPinningMode/publicKey``. They count in addition to ``pinnedCertificates``. Empty by default.
  open var publicKeyPins: Set<CertificatePin> {
    get { settings.withLock { $0.keyPins } }
    set { settings.withLock { $0.keyPins = newValue } }
  }

  /// Whether certificates are accepted that are expired, or whose issuer is not trusted. `false` by default.
  ///
  /// Without pins and without ``validatesDomainName``, this accepts every certificate: an attacker on the network path
  /// can read and change all traffic. With pins, only servers are trusted that have a pinned key, or a certificate that
  /// leads to one. In mode ``AFSSLPinningMode/publicKey``, a certificate whose own key is pinned needs nothing else. In
  /// mode ``AFSSLPinningMode/certificate``, the chain must still be valid up to a pinned certificate.
  open var allowInvalidCertificates: Bool {
    get { settings.withLock { $0.allowsInvalid } }
    set { settings.withLock { $0.allowsInvalid = newValue } }
  }

  /// Whether the certificate must be valid for the host. `true` by default.
  open var validatesDomainName: Bool {
    get { settings.withLock { $0.validatesName } }
    set { settings.withLock { $0.validatesName = newValue } }
  }

  /// Whether every certificate of the chain must be pinned, and not just one of them. `false` by default.
  ///
  /// AFNetworking has this property up to version 2.5, with `true` as the default, and then dropped it: it makes
  /// nothing safer, and a server that changes an intermediate certificate is no longer trusted.
  open var validatesCertificateChain: Bool {
    get { settings.withLock { $0.validatesChain } }
    set { settings.withLock { $0.validatesChain = newValue } }
  }

  /// Returns whether a server is trusted. The evaluation takes about 1 ms, runs on the calling thread, and does not
  /// change `serverTrust`.
  ///
  /// Anchors, policies and a date that the caller has set on `serverTrust` count. AFNetworking replaces the policies by
  /// one for `domain`; here both apply.
  ///
  /// - Parameters:
  ///   - serverTrust: The server's trust object, from a session's challenge.
  ///   - domain: The requested host, or `nil` to accept a certificate for any host.
  open func evaluateServerTrust(_ serverTrust: SecTrust, forDomain domain: String?) -> Bool {
    TrustEvaluation(settings: settings.withLock { $0 }, trust: serverTrust, domain: domain).isTrusted
  }

  /// Returns whether a server is trusted, for any host. AFNetworking 2 has this method.
  @available(*, deprecated, message: "It does not look at the host's name: use evaluateServerTrust(_:forDomain:).")
  open func evaluateServerTrust(_ serverTrust: SecTrust) -> Bool {
    evaluateServerTrust(serverTrust, forDomain: nil)
  }

  // MARK: - Archives and copies

  private enum Key {
    static let mode = "SSLPinningMode"
    static let certificates = "pinnedCertificates"
    static let keyPins = "publicKeyPins"
    static let certificatePins = "certificatePins"
    static let allowsInvalid = "allowInvalidCertificates"
    static let validatesName = "validatesDomainName"
    static let validatesChain = "validatesCertificateChain"
  }

  /// `true`: an archive holds only objects of the classes that are passed to the decoder.
  open class var supportsSecureCoding: Bool { true }

  /// Creates a policy from an archive that this module wrote. A pinning mode that cannot be read becomes
  /// ``AFSSLPinningMode/certificate``, and pins that cannot be read are left out, so that the policy trusts fewer
  /// servers and not more. Missing settings have the defaults of `init()`.
  public required init?(coder: NSCoder) {
    super.init()
    settings.withLock { settings in
      if coder.containsValue(forKey: Key.mode) {
        settings.mode = coder.number(forKey: Key.mode).flatMap { AFSSLPinningMode(rawValue: $0) } ?? .certificate
      }
      settings.certificates = coder.blocks(forKey: Key.certificates).map { Set($0) }
      settings.keyPins = Set((coder.texts(forKey: Key.keyPins) ?? []).compactMap { CertificatePin($0) })
      let certificates = (coder.blocks(forKey: Key.certificatePins) ?? []).compactMap { TLSCertificate($0) }
      settings.keyPins.formUnion(certificates.map { .certificate($0) })
      settings.allowsInvalid = coder.flag(forKey: Key.allowsInvalid) ?? false
      settings.validatesName = coder.flag(forKey: Key.validatesName) ?? true
      settings.validatesChain = coder.flag(forKey: Key.validatesChain) ?? false
    }
  }

  /// Writes the settings to a keyed archive.
  open func encode(with coder: NSCoder) {
    let settings = settings.withLock { $0 }
    coder.encode(number: settings.mode.rawValue, forKey: Key.mode)
    if let certificates = settings.certificates { coder.encode(blocks: Array(certificates), forKey: Key.certificates) }
    var (keys, pinned): ([String], [Data]) = ([], [])
    for pin in settings.keyPins {
      if case .certificate(let certificate) = pin {
        pinned.append(certificate.der)
      } else {
        keys.append(pin.description)
      }
    }
    coder.encode(texts: keys, forKey: Key.keyPins)
    coder.encode(blocks: pinned, forKey: Key.certificatePins)
    coder.encode(settings.allowsInvalid, forKey: Key.allowsInvalid)
    coder.encode(settings.validatesName, forKey: Key.validatesName)
    coder.encode(settings.validatesChain, forKey: Key.validatesChain)
  }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns a policy of the same class with the same settings.
  open func copy(with zone: NSZone? = nil) -> Any {
    guard let coder = EmptyArchive.decoder(), let copy = type(of: self).init(coder: coder) else { return self }
    let settings = settings.withLock { $0 }
    copy.settings.withLock { $0 = settings }
    return copy
  }
}
