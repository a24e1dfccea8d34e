import LarkspurTLS

/// How a connection uses TLS.
public struct Security: Sendable {
  public var context: TLSContext
  /// Replaces the context when files of the configuration change, or `nil` if there are no files.
  private(set) var renewal: ContextRenewal?
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

  public init(_ context: TLSContext) {
    self.context = context
  }

  /// Creates the context of a configuration, whose files are read now, and again when they change.
  ///
  /// - Parameters:
  ///   - pinMismatched: See `TLSContext.pinMismatched`.
  ///   - fileFailed: Called with the path of a changed file that cannot be used, and the reason. Connections continue with
  ///     the earlier content. Called on any thread.
  public init(
    _ configuration: TLSConfiguration, pinMismatched: (@Sendable (PinMismatch) -> Void)? = nil,
    fileFailed: (@Sendable (_ path: String, _ reason: String) -> Void)? = nil
  ) throws(TLSError) {
    guard configuration.identity?.files != nil || !configuration.rootFiles.isEmpty else {
      self.init(try TLSContext(configuration, pinMismatched: pinMismatched))
      return
    }
    let renewal = try ContextRenewal(configuration, pinMismatched: pinMismatched, fileFailed: fileFailed)
    self.init(renewal.context)
    self.renewal = renewal
  }

  /// The context for new connections.
  public var currentContext: TLSContext { renewal?.context ?? context }

  func engine(for server: ServerName, port: UInt16, date: Int64) throws(TransportError) -> TLSEngine {
    let context = currentContext
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
