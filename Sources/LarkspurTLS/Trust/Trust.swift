/// A server's certificates, and what came out when they were verified. A value: it can be kept, looked at and evaluated
/// again on any thread.
public struct Trust: Sendable {
  /// Each session and each connection has a copy: so it is one reference.
  private final class Facts: Sendable {
    let server: ServerName
    let sent: [Certificate]
    let verified: [Certificate]
    let result: VerificationResult
    let store: TrustStore
    let validUntil: Int64

    init(
      _ server: ServerName, _ sent: [Certificate], _ verified: [Certificate], _ result: VerificationResult,
      _ store: TrustStore
    ) {
      self.server = server
      self.sent = sent
      self.verified = verified
      self.result = result
      self.store = store
      validUntil = verified.map(\.notAfter).min() ?? .min
    }
  }

  private let facts: Facts

  public var server: ServerName { facts.server }
  /// The chain as the server sent it: its own certificate first, the others in whatever order they came.
  public var sent: [Certificate] { facts.sent }
  /// The chain that was built, from the server's certificate to the root, as far as one was found.
  public var verified: [Certificate] { facts.verified }
  public var result: VerificationResult { facts.result }
  var store: TrustStore { facts.store }
  /// Whether revocation lists count in each verification.
  public var hasRevocationLists: Bool { !store.revocationLists.isEmpty }
  /// Until when every certificate of the verified chain is valid: seconds since 1970.
  var validUntil: Int64 { facts.validUntil }

  init(
    server: ServerName, sent: [Certificate], verified: [Certificate], result: VerificationResult, store: TrustStore
  ) {
    facts = Facts(server, sent, verified, result, store)
  }

  /// Verifies a chain that no handshake has brought. `date`: seconds since 1970, UTC.
  public static func verifying(
    _ sent: [Certificate], for server: ServerName, roots: TrustRoots, date: Int64
  ) throws(TLSError) -> Trust {
    let store = try TrustStore(roots)
    let (result, verified) = store.verify(sent, for: server, date: date)
    return Trust(server: server, sent: sent, verified: verified, result: result, store: store)
  }

  /// Verifies the same chain again with other inputs.
  ///
  /// - Parameters:
  ///   - host: Whom the certificate has to be for; nil: whoever it is for.
  ///   - anchors: Where a chain has to end, and nowhere else: roots, intermediates or the server's own certificate. Nil: at
  ///     the roots of the connection. Its revocation lists count either way.
  ///   - date: Seconds since 1970, UTC.
  public func evaluate(
    host: ServerName?, anchors: [Certificate]? = nil, date: Int64
  ) throws(TLSError) -> Trust {
    var store = store
    if let anchors { store = try store.with(anchors: anchors) }
    let (result, verified) = store.verify(sent, for: host, date: date)
    return Trust(server: host ?? server, sent: sent, verified: verified, result: result, store: store)
  }
}

/// What the caller says when it is asked about a server's certificates.
public enum TrustDecision: Hashable, Sendable {
  /// What the verification came to counts.
  case verified
  /// The server is trusted, whatever the verification came to. Pins count all the same.
  case trusted
  /// The server is not trusted.
  case refused
}
