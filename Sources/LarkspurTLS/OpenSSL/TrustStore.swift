import CLarkspurOpenSSL

/// Roots and revocation lists, parsed once. Any thread may verify against it at the same time.
final class TrustStore: Sendable {
  let reference: Reference
  private let revocationLists: [[UInt8]]
  /// Whether a chain may end at any of the certificates, not only at one that is its own issuer.
  private let takesAnyAnchor: Bool

  init(_ roots: TrustRoots, revocationLists: [[UInt8]] = [], takesAnyAnchor: Bool = false) throws(TLSError) {
    // Safe: here and below, the store is used by this thread alone until `init` returns, and OpenSSL locks it afterwards.
    guard let reference = unsafe Reference(X509_STORE_new(), releasedBy: { unsafe X509_STORE_free($0) })
    else { throw TLSError(.outOfMemory) }
    self.reference = reference
    self.revocationLists = revocationLists
    self.takesAnyAnchor = takesAnyAnchor
    // What verifies without a handshake, such as the signer of a stapled response, keeps to the same rules.
    unsafe larkspur_store_rules(reference.pointer)
    switch roots {
    case .system:
      try addSystemRoots()
    case .systemAnd(let certificates):
      try addSystemRoots()
      try add(certificates)
    case .only(let certificates):
      try add(certificates)
    }
    for list in revocationLists {
      // Safe: the bytes are lent for the call.
      let added = unsafe list.withUnsafeBytes {
        unsafe larkspur_read_revocation_lists(reference.pointer, $0.baseAddress, $0.count)
      }
      guard added > 0 else { throw TLSError(.revocationListUnreadable) }
    }
  }

  /// A file is parsed now; of a directory only what a chain needs, when it needs it. A file that cannot be read may be read
  /// later, when there are descriptors again: a store without it would refuse every server for as long as it is kept.
  private func addSystemRoots() throws(TLSError) {
    // Safe: nobody else has the store yet.
    let error = unsafe larkspur_add_system_roots(reference.pointer)
    if error != 0 { throw TLSError(.trustStoreUnreadable, reason: ErrorQueue.words(ofSystem: error)) }
  }

  private func add(_ certificates: [Certificate]) throws(TLSError) {
    for certificate in certificates {
      // Safe: the store takes a reference of its own.
      guard unsafe X509_STORE_add_cert(reference.pointer, certificate.reference.pointer) == 1 else {
        throw TLSError(.trustStoreUnreadable, reason: ErrorQueue.takeReason())
      }
    }
  }

  /// A store with other roots and the same revocation lists. Whoever names anchors means these: a chain ends at them, whatever
  /// they are.
  func with(anchors: [Certificate]) throws(TLSError) -> TrustStore {
    try TrustStore(.only(anchors), revocationLists: revocationLists, takesAnyAnchor: true)
  }

  /// Verifies a chain as a handshake would. Nil for `name`: whatever host it is for.
  func verify(_ sent: [Certificate], for server: ServerName?, date: Int64) -> (VerificationResult, [Certificate]) {
    guard let list = Certificate.list(sent) else {
      return (VerificationResult(code: X509_V_ERR_OUT_OF_MEM, depth: 0), [])
    }
    // Safe: store and list live until the call is over.
    let result = unsafe larkspur_verify(
      reference.pointer, list.pointer, server?.name, server?.address, date, takesAnyAnchor)
    return (
      VerificationResult(code: unsafe result.error, depth: unsafe Int(result.depth)),
      unsafe Certificate.list(taking: result.verified)
    )
  }
}
