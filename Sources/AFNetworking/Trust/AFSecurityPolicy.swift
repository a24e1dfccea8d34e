import Foundation
import Larkspur
import Synchronization

/// What a server's chain is compared with.
public enum AFSSLPinningMode: UInt, Hashable, Sendable {
  /// Nothing: the chain has to be good, and that is all.
  case none = 0
  /// Keys: those of the pinned certificates, and the pins of keys.
  case publicKey = 1
  /// Certificates, bit by bit.
  case certificate = 2
}

/// Decides whether a server is to be trusted.
///
/// At first a chain has to lead to a root that the session trusts, and its certificate has to be for the host. Pins come on top
/// of that: they never make a chain good that is not, unless ``allowInvalidCertificates`` says so.
///
/// ```swift
/// let policy = AFSecurityPolicy(pinningMode: .publicKey, withPinnedCertificates: [certificate])
/// manager.securityPolicy = policy
/// ```
///
/// Pins are looked for in the chain that was verified. A certificate that a server merely sends along counts for nothing: that
/// was a hole of early versions, as was a host's name that nobody compared.
///
/// A pin should have a backup, of a key that is not in use yet. Properties may be set on any thread; an evaluation goes by what
/// it finds when it begins.
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

  /// No pins, no invalid certificates, and the host's name counts.
  public override init() { super.init() }

  /// Pins the certificates of the main bundle: see ``certificates(in:)``.
  public convenience init(pinningMode: AFSSLPinningMode) {
    self.init(pinningMode: pinningMode, withPinnedCertificates: Self.certificates(in: .main))
  }

  /// - Parameters:
  ///   - pinningMode: What is compared.
  ///   - pinnedCertificates: DER, as `.cer` files have it.
  public convenience init(pinningMode: AFSSLPinningMode, withPinnedCertificates pinnedCertificates: Set<Data>) {
    self.init()
    settings.withLock { settings in
      settings.mode = pinningMode
      settings.certificates = pinnedCertificates
    }
  }

  /// Pins keys by their hashes, as HTTP public key pinning and curl write them: only AFNetworking on Linux has it.
  ///
  /// ```swift
  /// let pins = ["sha256/AAAA...=", "sha256/BBBB...="].compactMap { CertificatePin($0) }
  /// let policy = AFSecurityPolicy(publicKeyPins: Set(pins))
  /// ```
  ///
  /// - Parameter publicKeyPins: One of them has to be in the chain. At least two, one of a key that is not in use yet.
  public convenience init(publicKeyPins: Set<CertificatePin>) {
    self.init()
    settings.withLock { settings in
      settings.mode = .publicKey
      settings.keyPins = publicKeyPins
    }
  }

  /// A new policy as `init()` makes it.
  public class func `default`() -> AFSecurityPolicy { AFSecurityPolicy() }

  /// The certificates in a bundle: its files whose names end in `.cer`, DER or PEM. A file that cannot be read is left out.
  public class func certificates(in bundle: Bundle) -> Set<Data> {
    let files = bundle.paths(forResourcesOfType: "cer", inDirectory: nil).map { URL(filePath: $0) }
    return Set(files.flatMap(CertificateFiles.certificates(of:)))
  }

  /// The certificates in a directory: its files whose names end in `.cer`, `.crt`, `.der` or `.pem`. Programs on Linux seldom
  /// have a bundle: only AFNetworking on Linux has this.
  ///
  /// - Throws: If the directory cannot be listed. A file that is no certificate is left out.
  public class func certificates(inDirectory directory: URL) throws -> Set<Data> {
    try CertificateFiles.certificates(inDirectory: directory)
  }

  /// What is compared. It is set when the policy is made.
  open var sslPinningMode: AFSSLPinningMode { settings.withLock { $0.mode } }

  /// The certificates that are pinned, DER. Nil, or none: with a mode that pins certificates nothing is trusted.
  open var pinnedCertificates: Set<Data>? {
    get { settings.withLock { $0.certificates } }
    set { settings.withLock { $0.certificates = newValue } }
  }

  /// Pins of keys, for ``AFSSLPinningMode/publicKey``; they count beside ``pinnedCertificates``. None at first.
  open var publicKeyPins: Set<CertificatePin> {
    get { settings.withLock { $0.keyPins } }
    set { settings.withLock { $0.keyPins = newValue } }
  }

  /// Whether certificates are taken that are expired, or whose issuer is not trusted. False at first.
  ///
  /// With no pins, and a host's name that does not count either, that is every certificate: whoever sits on the way can read
  /// and change everything. With pins only those who have a pinned key, or a certificate that leads to one, are trusted. Of a
  /// certificate whose own key is pinned nothing else is asked; in the mode `certificate` it has to be valid.
  open var allowInvalidCertificates: Bool {
    get { settings.withLock { $0.allowsInvalid } }
    set { settings.withLock { $0.allowsInvalid = newValue } }
  }

  /// Whether the certificate has to be for the host. True at first.
  open var validatesDomainName: Bool {
    get { settings.withLock { $0.validatesName } }
    set { settings.withLock { $0.validatesName = newValue } }
  }

  /// Whether every certificate of the chain has to be pinned, and not just one of them. False at first.
  ///
  /// AFNetworking has it up to version 2.5, where it is true at first, and has dropped it: it makes nothing safer, and a
  /// server that changes an intermediate certificate is trusted no more.
  open var validatesCertificateChain: Bool {
    get { settings.withLock { $0.validatesChain } }
    set { settings.withLock { $0.validatesChain = newValue } }
  }

  /// Whether a server is to be trusted. It takes about a millisecond, on the calling thread, and leaves `serverTrust` as it is.
  ///
  /// - Parameters:
  ///   - serverTrust: As the challenge of a session has it.
  ///   - domain: The host that was asked for. Nil: whoever the certificate is for.
  open func evaluateServerTrust(_ serverTrust: SecTrust, forDomain domain: String?) -> Bool {
    TrustEvaluation(settings: settings.withLock { $0 }, trust: serverTrust, domain: domain).isTrusted
  }

  /// The same for whatever host. AFNetworking 2 has it.
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

  /// True: the archives hold no objects but those that they say.
  open class var supportsSecureCoding: Bool { true }

  /// Reads an archive of this module's. What cannot be read makes a policy that trusts nothing, never one that trusts more.
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

  /// Writes what is set, for a keyed archive.
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

  /// A policy of the same class with the same settings.
  open func copy(with zone: NSZone? = nil) -> Any {
    guard let coder = EmptyArchive.decoder(), let copy = type(of: self).init(coder: coder) else { return self }
    let settings = settings.withLock { $0 }
    copy.settings.withLock { $0 = settings }
    return copy
  }
}
