import Synchronization

@_implementationOnly import CLarkspurOpenSSL

/// Roots and revocation lists, parsed once. Any thread may verify against it at the same time.
///
/// The system's file of roots may be missing, damaged, or impossible to open for want of descriptors. The folder of roots and the
/// roots that the program names count nevertheless. A chain that then leads to no root makes the store read the file again; a second
/// failure fails the connection with the file's name, because the server may be innocent.
final class TrustStore: Sendable {
  let reference: Reference
  let revocationLists: [[UInt8]]
  /// Set where a program names anchors for one evaluation: a chain may end at any of them, not only at one that is its own issuer.
  private let anchors: [Certificate]?
  /// Why the system's file of roots cannot be used, or `nil`.
  private let complaint = Mutex<String?>(nil)

  init(_ roots: TrustRoots, revocationLists: [[UInt8]] = [], anchors: [Certificate]? = nil) throws(TLSError) {
    // Safe: here and below, the store is used by this thread alone until `init` returns, and OpenSSL locks it afterwards.
    guard let reference = unsafe Reference(X509_STORE_new(), releasedBy: { unsafe X509_STORE_free($0) })
    else { throw TLSError(.outOfMemory) }
    self.reference = reference
    self.revocationLists = revocationLists
    self.anchors = anchors
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

  /// Parses the file now; of a folder only what a chain needs, when it needs it.
  private func addSystemRoots() throws(TLSError) {
    // Safe: the store locks itself.
    guard unsafe larkspur_add_root_folders(reference.pointer) == 1 else { throw TLSError(.outOfMemory) }
    readRootFile()
  }

  private func readRootFile() {
    // Safe: the store locks itself.
    let words = unsafe Certificate.text(larkspur_add_root_file(reference.pointer))
    complaint.withLock { $0 = words.isEmpty ? nil : words }
  }

  private func add(_ certificates: [Certificate]) throws(TLSError) {
    for certificate in certificates {
      // Safe: the store takes a reference of its own.
      guard unsafe X509_STORE_add_cert(reference.pointer, certificate.reference.pointer) == 1 else {
        throw TLSError(.trustStoreUnreadable, reason: ErrorQueue.takeReason())
      }
    }
  }

  /// Returns a store with other roots and the same revocation lists: a chain ends at `anchors`, whatever they are.
  func with(anchors: [Certificate]) throws(TLSError) -> TrustStore {
    try TrustStore(.only(anchors), revocationLists: revocationLists, anchors: anchors)
  }

  /// Verifies a chain as a handshake would. With `nil` for `server` it may be for any host.
  func verify(_ sent: [Certificate], for server: ServerName?, date: Int64) -> (VerificationResult, [Certificate]) {
    // Safe: the result is handed over.
    unsafe result(of: verifyOnce(sent, for: server, date: date), sent, for: server, date: date)
  }

  /// What OpenSSL's result comes to. A chain that leads to no root is verified again if the system's file of roots could not be used
  /// before and can be now.
  @unsafe
  func result(
    of taken: larkspur_tls_verification_result, _ sent: [Certificate], for server: ServerName?, date: Int64
  ) -> (VerificationResult, [Certificate]) {
    // Safe: in these, the lists and the words are handed over.
    let (result, verified) = unsafe Self.take(taken)
    guard !result.isTrusted, VerificationResult.lacksRoot(result.code),
      complaint.withLock({ $0 != nil })
    else { return (result, verified) }
    readRootFile()
    guard let words = complaint.withLock({ $0 }) else {
      return unsafe Self.take(verifyOnce(sent, for: server, date: date))
    }
    return (VerificationResult(code: result.code, depth: result.depth, complaint: words), verified)
  }

  /// Takes lists and words over. The words count only where a root is missing.
  @unsafe
  private static func take(_ taken: larkspur_tls_verification_result) -> (VerificationResult, [Certificate]) {
    // Safe: see above.
    let (code, depth) = unsafe (taken.error, Int(taken.depth))
    let words = unsafe Certificate.text(taken.complaint)
    let isRootMissing = VerificationResult.lacksRoot(code)
    return (
      VerificationResult(code: code, depth: depth, complaint: isRootMissing && !words.isEmpty ? words : nil),
      unsafe Certificate.list(taking: taken.verified)
    )
  }

  @unsafe
  private func verifyOnce(
    _ sent: [Certificate], for server: ServerName?, date: Int64
  ) -> larkspur_tls_verification_result {
    // OpenSSL goes on above a server's own certificate that is an anchor, and finds fault with what is there.
    let needed = anchors.map { anchors in sent.first.map(anchors.contains) == true ? Array(sent.prefix(1)) : sent }
    guard let list = Certificate.list(needed ?? sent) else {
      var result = unsafe larkspur_tls_verification_result()
      unsafe result.error = X509_V_ERR_OUT_OF_MEM
      return unsafe result
    }
    // Safe: store and list live until the call is over.
    return unsafe larkspur_verify(
      reference.pointer, list.pointer, server?.name, server?.address, date, anchors != nil)
  }
}
