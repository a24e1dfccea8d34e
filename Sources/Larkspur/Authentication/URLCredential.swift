import Foundation
import LarkspurHTTP

/// What answers a challenge: a user and a password, a client certificate, or the word that a server is to be trusted.
/// Immutable, and for any thread.
open class URLCredential: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// How long a credential is kept.
  public enum Persistence: UInt, Sendable {
    /// It answers one challenge and is not kept.
    case none = 0
    /// As long as the session.
    case forSession = 1
    /// In a file of the user's: see ``URLCredentialStorage``.
    case permanent = 2
    /// On the user's other devices as well: nothing on Linux would carry it there, and no storage keeps it.
    case synchronizable = 3
  }

  enum Kind {
    case password(user: String, password: String)
    case identity(ClientIdentity, certificates: [TLSCertificate])
    case trust(ServerTrust)
  }

  let kind: Kind
  private let storedPersistence: Persistence

  /// A user and a password. They are sent as UTF-8.
  public init(user: String, password: String, persistence: URLCredential.Persistence) {
    kind = .password(user: user, password: password)
    storedPersistence = persistence
  }

  /// A client certificate, for a challenge of the method ``NSURLAuthenticationMethodClientCertificate``. It is kept for the
  /// session at most, whatever the persistence. Foundation on Linux does not have this initialiser.
  ///
  /// - Parameters:
  ///   - identity: The certificate and its key.
  ///   - certArray: The certificates behind the identity's own, each a ``SecCertificate``; what else stands there is left
  ///     out. Nil: those that the identity came with.
  ///   - persistence: `forSession`, or none.
  public init(identity: SecIdentity, certificates certArray: [Any]?, persistence: URLCredential.Persistence) {
    let chain = certArray?.compactMap { $0 as? TLSCertificate }
    kind = .identity(chain.map(identity.with(chain:)) ?? identity, certificates: chain ?? identity.chain)
    storedPersistence = persistence
  }

  /// Says that the server is trusted, whatever the verification came to: an answer to a challenge of the method
  /// ``NSURLAuthenticationMethodServerTrust``. It counts for the server that showed these certificates and for no other.
  /// Pins count all the same. Foundation on Linux does not have this initialiser.
  ///
  /// Evaluate `trust` first, or whoever sits on the way can be the server.
  public init(trust: SecTrust) {
    kind = .trust(trust)
    storedPersistence = .forSession
  }

  /// How long it is kept.
  open var persistence: URLCredential.Persistence { storedPersistence }

  /// Nil: it is no password.
  open var user: String? { if case .password(let user, _) = kind { user } else { nil } }

  /// Nil: it is no password.
  open var password: String? { if case .password(_, let password) = kind { password } else { nil } }

  /// Whether there is a password. An empty one is one.
  open var hasPassword: Bool { password != nil }

  /// The client certificate with its key. Nil: it is something else.
  open var identity: SecIdentity? { if case .identity(let identity, _) = kind { identity } else { nil } }

  /// The certificates behind the client's own, each a ``SecCertificate``.
  open var certificates: [Any] { if case .identity(_, let certificates) = kind { certificates } else { [] } }

  open override func copy() -> Any { copy(with: nil) }

  /// A credential never changes: it is its own copy.
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

  /// Writes user and password, readable by whoever has the archive. Other credentials cannot be archived: nothing is written,
  /// and nothing can be read again.
  open func encode(with aCoder: NSCoder) {
    guard aCoder.allowsKeyedCoding, case .password(let user, let password) = kind else { return }
    aCoder.encode(user as NSString, forKey: Key.user)
    aCoder.encode(password as NSString, forKey: Key.password)
    aCoder.encode(Int64(persistence.rawValue), forKey: Key.persistence)
  }

  /// - Returns: `nil` if there is no credential in the archive.
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
  /// For Basic and Digest, composed as servers that take UTF-8 have it (NFC: RFC 7617 2.1, RFC 7616 4). Nil: it is something
  /// else.
  var passwordCredential: PasswordCredential? {
    guard let user, let password else { return nil }
    func composed(_ text: String) -> String {
      text.utf8.allSatisfy { $0 < 0x80 } ? text : text.precomposedStringWithCanonicalMapping
    }
    return PasswordCredential(user: composed(user), password: composed(password))
  }

  /// Whether it may outlive its file's process.
  var isPermanent: Bool { persistence == .permanent }

  /// Whether a storage keeps it. What is to be on the user's other devices has no way to get there.
  var isKept: Bool { persistence == .permanent || persistence == .forSession }
}
