import Foundation
import LarkspurHTTP

/// The answer to a challenge: a user and a password, a client certificate, or the decision to trust a server.
/// Immutable, and safe to use from any thread.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// How long a credential is kept.
  public enum Persistence: UInt, Sendable {
    /// The credential answers one challenge and is not kept.
    case none = 0
    /// The credential is kept as long as the session.
    case forSession = 1
    /// The credential is kept in a file of the user's: see ``URLCredentialStorage``.
    case permanent = 2
    /// The credential is for the user's other devices as well. Linux has no service that would carry it there, and no
    /// storage keeps it.
    case synchronizable = 3
  }

  enum Kind {
    case password(user: String, password: String)
    case identity(ClientIdentity, certificates: [TLSCertificate])
    case trust(ServerTrust)
  }

  let kind: Kind
  private let storedPersistence: Persistence

  /// Creates a credential with a user and a password. They are sent as UTF-8.
  public init(user: String, password: String, persistence: URLCredential.Persistence) {
    kind = .password(user: user, password: password)
    storedPersistence = persistence
  }

  /// Creates a credential with a client certificate, for a challenge of the method
  /// ``NSURLAuthenticationMethodClientCertificate``. No storage writes it to a file, whatever the persistence.
  /// Foundation on Linux does not have this initializer.
  ///
  /// - Parameters:
  ///   - identity: The certificate and its key.
  ///   - certArray: The certificates that follow the identity's own in its chain, each a ``SecCertificate``; other
  ///     elements are ignored. With `nil` the identity's own chain is used.
  ///   - persistence: `forSession` or `none`.
  public init(identity: SecIdentity, certificates certArray: [Any]?, persistence: URLCredential.Persistence) {
    let chain = certArray?.compactMap { $0 as? TLSCertificate }
    kind = .identity(chain.map(identity.with(chain:)) ?? identity, certificates: chain ?? identity.chain)
    storedPersistence = persistence
  }

  /// Creates a credential that trusts the server, whatever the result of the verification: an answer to a challenge of
  /// the method ``NSURLAuthenticationMethodServerTrust``. `trust` may differ from the challenge's, with intermediate
  /// certificates that the server did not send, for instance. The credential applies only if the server's own
  /// certificate has the key of the trust's, and if the trust is for the connected host or for any host. Pins are still
  /// checked, in the chain that the last evaluation of `trust` found good. Foundation on Linux does not have this
  /// initializer.
  ///
  /// Evaluate `trust` first. Otherwise anyone on the network path can act as the server.
  public init(trust: SecTrust) {
    kind = .trust(trust)
    storedPersistence = .forSession
  }

  /// How long the credential is kept.
  open var persistence: URLCredential.Persistence { storedPersistence }

  /// The user, or `nil` if the credential is not a password.
  open var user: String? { if case .password(let user, _) = kind { user } else { nil } }

  /// The password, or `nil` if the credential is not a password.
  open var password: String? { if case .password(_, let password) = kind { password } else { nil } }

  /// Whether the credential has a password, which may be empty.
  open var hasPassword: Bool { password != nil }

  /// The client certificate with its key, or `nil` if the credential is of another kind.
  open var identity: SecIdentity? { if case .identity(let identity, _) = kind { identity } else { nil } }

  /// The certificates that follow the client's own in its chain, each a ``SecCertificate``.
  open var certificates: [Any] { if case .identity(_, let certificates) = kind { certificates } else { [] } }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns the credential itself, which is immutable.
  open func copy(with zone: NSZone? = nil) -> Any { self }

  open override func isEqual(_ object: Any?) -> Bool {
    guard let other = object as? URLCredential else { return false }
    if self === other { return true }
    guard persistence == other.persistence else { return false }
    switch (kind, other.kind) {
    case (.password, .password): return user == other.user && password == other.password
    case (.identity(let one, let chain), .identity(let two, let otherChain)):
      return one.certificate == two.certificate && chain == otherChain
    case (.trust(let one), .trust(let two)): return one === two
    default: return false
    }
  }

  open override var hash: Int {
    var hasher = Hasher()
    hasher.combine(persistence)
    hasher.combine(user)
    return hasher.finalize()
  }

  // MARK: - Archives

  public static var supportsSecureCoding: Bool { true }

  private enum Key {
    static let user = "user"
    static let password = "password"
    static let persistence = "persistence"
  }

  /// Writes user and password in clear text. Credentials of other kinds cannot be archived: nothing is written, and
  /// nothing can be read back.
  open func encode(with aCoder: NSCoder) {
    guard aCoder.allowsKeyedCoding, case .password(let user, let password) = kind else { return }
    aCoder.encode(user as NSString, forKey: Key.user)
    aCoder.encode(password as NSString, forKey: Key.password)
    aCoder.encode(Int64(persistence.rawValue), forKey: Key.persistence)
  }

  /// Reads a credential with a user and a password.
  ///
  /// - Returns: `nil` if the archive holds no such credential.
  public required init?(coder aDecoder: NSCoder) {
    guard aDecoder.allowsKeyedCoding, let user = aDecoder.text(forKey: Key.user),
      let password = aDecoder.text(forKey: Key.password),
      let persistence = aDecoder.number(forKey: Key.persistence).flatMap({ Persistence(rawValue: $0) })
    else { return nil }
    kind = .password(user: user, password: password)
    storedPersistence = persistence
  }
}

extension URLCredential {
  /// The user and password for Basic and Digest, composed (NFC) as RFC 7617 2.1 and RFC 7616 4 require for UTF-8, or
  /// `nil` if the credential is of another kind.
  var passwordCredential: PasswordCredential? {
    guard let user, let password else { return nil }
    func composed(_ text: String) -> String {
      text.utf8.allSatisfy { $0 < 0x80 } ? text : text.precomposedStringWithCanonicalMapping
    }
    return PasswordCredential(user: composed(user), password: composed(password))
  }

  /// Whether the credential may be written to a file.
  var isPermanent: Bool { persistence == .permanent }

  /// Whether a storage keeps the credential. A `synchronizable` one is not kept: nothing on Linux could synchronize it.
  var isKept: Bool { persistence == .permanent || persistence == .forSession }
}
