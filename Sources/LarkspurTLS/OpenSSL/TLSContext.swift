/// A prepared configuration: its roots are parsed and its sessions are kept. Connections on any loop share it.
///
/// Creating a context may read the system's roots from the disk, which takes up to 40 ms. Create one for each
/// configuration.
@safe
public final class TLSContext: Sendable {
  public let configuration: TLSConfiguration
  let reference: Reference
  let store: TrustStore
  let sessions = SessionCache()
  /// Called with each pin mismatch, whether or not it fails the connection, in a tick of the connection's loop.
  public let pinMismatched: (@Sendable (PinMismatch) -> Void)?

  public init(
    _ configuration: TLSConfiguration = TLSConfiguration(), pinMismatched: (@Sendable (PinMismatch) -> Void)? = nil
  ) throws(TLSError) {
    self.configuration = configuration
    self.pinMismatched = pinMismatched
    store = try TrustStore(
      configuration.roots, in: configuration.rootPlaces ?? .ofEnvironment,
      revocationLists: configuration.revocationLists)
    ErrorQueue.clear()
    // Safe: here and below, only this thread uses the context until `init` returns.
    guard
      let reference = unsafe Reference(
        larkspur_tls_context(
          Int32(configuration.minimumVersion.rawValue), Int32(configuration.maximumVersion.rawValue),
          configuration.dangerouslyAllowsLegacyKeyExchange, store.reference.pointer),
        releasedBy: { unsafe SSL_CTX_free($0) })
    else {
      throw TLSError(.outOfMemory, reason: ErrorQueue.takeReason())
    }
    self.reference = reference
    if let path = configuration.dangerousKeyLogFile {
      // Safe: the message is a constant, or copied before this thread can fail again.
      if let refusal = unsafe larkspur_tls_context_log_keys(reference.pointer, path) {
        throw TLSError(.keyLogUnwritable, reason: unsafe "\(path): \(String(cString: refusal))")
      }
    }
    guard let identity = configuration.identity else { return }
    // Safe: the context takes its own references.
    guard
      unsafe larkspur_tls_context_use_identity(
        reference.pointer, identity.certificate.reference.pointer, identity.key.pointer, identity.list.pointer) == 1
    else { throw TLSError(.identityUnreadable, reason: ErrorQueue.takeReason()) }
  }

  /// Returns the trust of a handshake that another process made with an equal configuration. Verifies nothing.
  public func trust(
    server: ServerName, sent: [Certificate], verified: [Certificate], result: VerificationResult
  ) -> Trust {
    Trust(server: server, sent: sent, verified: verified, result: result, store: store)
  }

  /// Removes all sessions. The next connection to each server makes a full handshake.
  public func forgetSessions() { sessions.removeAll() }
}
