import LarkspurTLS

/// That a connection speaks TLS, and how.
public struct Security: Sendable {
  public var context: TLSContext
  /// The proxies on the way: sessions of one path are not resumed on another.
  public var path = ""
  /// Asked for each connection, resumed ones too, whether its server is trusted; on a thread that is not the loop's. The
  /// handshake waits for the answer, until its deadline; the task is cancelled when nobody waits any more.
  public var decideTrust: (@Sendable (Trust) async -> TrustDecision)? { didSet { identity = Identity() } }
  /// Asked when the server wants a certificate, with the issuers that it knows (none: any). Nil: there is
  /// none to show. Not asked when the configuration has an identity.
  public var provideIdentity: (@Sendable (_ issuers: [DistinguishedName]) async -> ClientIdentity?)? {
    didSet { identity = Identity() }
  }
  /// Stands for the closures above, which cannot be compared: copies share it.
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
  /// Whether connections of the one are as good as connections of the other.
  public static func == (one: Security, other: Security) -> Bool {
    one.context === other.context && one.path == other.path && one.identity === other.identity
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(context))
    hasher.combine(path)
    hasher.combine(identity.map(ObjectIdentifier.init))
  }
}
