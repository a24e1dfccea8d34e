import LarkspurTLS

/// How a connection uses TLS.
public struct Security: Sendable {
  public var context: TLSContext
  /// The proxies on the way. A TLS session that was established over one path is not resumed over another.
  public var path = ""
  /// Decides whether the server of a connection is trusted, or `nil` to leave that to the context. Called for each
  /// connection, also for resumed sessions, in a task on another thread than the loop's. The handshake waits for the
  /// result until its deadline. The task is cancelled when the wait is over.
  public var decideTrust: (@Sendable (Trust) async -> TrustDecision)? { didSet { identity = Identity() } }
  /// Returns a certificate for a server that requests one, or `nil` if there is none to show. `issuers` are the
  /// issuers that the server accepts; empty means any. Not called if the context's configuration has an identity.
  public var provideIdentity: (@Sendable (_ issuers: [DistinguishedName]) async -> ClientIdentity?)? {
    didSet { identity = Identity() }
  }
  /// Represents the closures above in comparisons, because closures cannot be compared. Copies share it.
  private var identity: Identity?

  private final class Identity: Sendable {}

  public init(_ context: TLSContext) { self.context = context }

  func engine(for server: ServerName, port: UInt16, date: Int64) throws(TransportError) -> TLSEngine {
    var options = TLSEngine.Options()
    options.asksTrust = decideTrust != nil
    options.asksIdentity = provideIdentity != nil && context.configuration.identity == nil
    do throws(TLSError) {
      return try TLSEngine(
        context: context, key: SessionKey(server: server, port: port, path: path), options: options, date: date)
    } catch {
      throw .tls(error)
    }
  }
}

extension Security: Hashable {
  /// Whether the two values can share connections.
  public static func == (one: Security, other: Security) -> Bool {
    one.context === other.context && one.path == other.path && one.identity === other.identity
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(context))
    hasher.combine(path)
    hasher.combine(identity.map(ObjectIdentifier.init))
  }
}
