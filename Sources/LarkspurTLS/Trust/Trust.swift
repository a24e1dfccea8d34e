/// A server's certificates and the result of their verification. The value can be kept, read and evaluated again on any
/// thread.
public struct Trust: Sendable {
  /// The contents, shared by all copies. Performance: each session and each connection copies one reference.
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
  /// The certificates as the server sent them: its own first, the others in any order.
  public var sent: [Certificate] { facts.sent }
  /// The chain that verification built, from the server's certificate to the root, as far as it was found.
  public var verified: [Certificate] { facts.verified }
  public var result: VerificationResult { facts.result }
  var store: TrustStore { facts.store }
  /// Whether revocation lists count in each verification.
  public var hasRevocationLists: Bool { !store.revocationLists.isEmpty }
  /// The earliest end of validity in the verified chain, in seconds since 1970.
  var validUntil: Int64 { facts.validUntil }

  init(
    server: ServerName, sent: [Certificate], verified: [Certificate], result: VerificationResult, store: TrustStore
  ) {
    facts = Facts(server, sent, verified, result, store)
  }

  /// Verifies a chain outside of a handshake.
  ///
  /// - Parameter date: Seconds since 1970, UTC.
  public static func verifying(
    _ sent: [Certificate], for server: ServerName, roots: TrustRoots, date: Int64
  ) throws(TLSError) -> Trust {
    let store = try TrustStore(roots)
    let (result, verified) = store.verify(sent, for: server, date: date)
    return Trust(server: server, sent: sent, verified: verified, result: result, store: store)
  }

  /// Verifies the certificates again with other inputs.
  ///
  /// - Parameters:
  ///   - host: The host for which the certificate must be issued, or `nil` for any host.
  ///   - anchors: The certificates at which the chain must end: roots, intermediates or the server's own certificate.
  ///     `nil` uses the connection's roots. The connection's revocation lists count in both cases.
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

/// The caller's decision on a server's certificates.
public enum TrustDecision: Hashable, Sendable {
  /// The result of the verification decides.
  case verified
  /// The server is trusted regardless of the verification. Pins still count: they are compared with `chain`, which the
  /// caller has verified for the server's key, or, if it is empty, with the chain of the verification.
  case trusted(chain: [Certificate] = [])
  /// The server is not trusted.
  case refused
}
