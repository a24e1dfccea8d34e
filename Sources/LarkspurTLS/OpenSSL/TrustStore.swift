import Synchronization

/// Roots and revocation lists, parsed once. Any number of threads may verify against the store at once.
///
/// The system's root file may be missing or damaged, or cannot be opened for lack of descriptors. The directory of
/// roots and the program's roots still count. When a chain then leads to no root, the store reads the file again. If
/// this fails, too, the connection fails with the file's name, because the server may be innocent.
final class TrustStore: Sendable {
  let reference: Reference
  let revocationLists: [[UInt8]]
  /// The anchors for one evaluation, or `nil`. A chain may end at any of them, even if it is not self-signed.
  private let anchors: [Certificate]?
  private let places: RootPlaces
  /// The reason why the system's root file cannot be used, or `nil`.
  private let complaint = Mutex<String?>(nil)

  init(
    _ roots: TrustRoots, in places: RootPlaces = .ofEnvironment, revocationLists: [[UInt8]] = [],
    anchors: [Certificate]? = nil
  ) throws(TLSError) {
    // Safe: here and below, only this thread uses the store until `init` returns. Afterwards OpenSSL locks it.
    guard let reference = unsafe Reference(X509_STORE_new(), releasedBy: { unsafe X509_STORE_free($0) })
    else { throw TLSError(.outOfMemory) }
    self.reference = reference
    self.revocationLists = revocationLists
    self.anchors = anchors
    self.places = places
    // Verifications outside of a handshake, such as that of a stapled response's signer, follow these rules, too.
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

  /// Parses the root file now. OpenSSL reads the certificates of the directory when a chain needs them.
  private func addSystemRoots() throws(TLSError) {
    // Safe: the store locks itself.
    guard unsafe larkspur_add_root_folders(reference.pointer, places.directories) == 1 else {
      throw TLSError(.outOfMemory)
    }
    readRootFile()
  }

  private func readRootFile() {
    var isEmpty = false
    // Safe: the store locks itself.
    let message = unsafe Certificate.text(
      larkspur_add_root_file(reference.pointer, places.file, places.directories, &isEmpty))
    // A directory that the environment names counts even if it is empty.
    let isSearched = isEmpty && places.directories == nil
    let failure = isSearched ? addUsualRoots(after: message) : message.isEmpty ? nil : message
    complaint.withLock { $0 = failure }
  }

  /// Adds the roots of the first usual place that has any.
  ///
  /// - Parameters:
  ///   - message: The reason why OpenSSL's own places are not enough.
  ///   - prefix: The directory above the usual places. For tests.
  /// - Returns: `nil` on success, or else a sentence with all places.
  func addUsualRoots(after message: String, below prefix: String = "") -> String? {
    for file in RootPlaces.usualFiles {
      var isEmpty = false
      // Safe: the store locks itself.
      if unsafe Certificate.text(larkspur_add_root_file(reference.pointer, prefix + file, nil, &isEmpty)).isEmpty {
        return nil
      }
    }
    for directory in RootPlaces.usualDirectories {
      // Safe: the store locks itself.
      if unsafe larkspur_add_root_files(reference.pointer, prefix + directory) > 0 { return nil }
    }
    let places = (RootPlaces.usualFiles + RootPlaces.usualDirectories).joined(separator: ", ")
    return "\(message), nor does any of \(places)"
  }

  private func add(_ certificates: [Certificate]) throws(TLSError) {
    for certificate in certificates {
      // Safe: the store takes its own reference.
      guard unsafe X509_STORE_add_cert(reference.pointer, certificate.reference.pointer) == 1 else {
        throw TLSError(.trustStoreUnreadable, reason: ErrorQueue.takeReason())
      }
    }
  }

  /// Returns a store with these anchors in place of the roots, and with the revocation lists of this store.
  func with(anchors: [Certificate]) throws(TLSError) -> TrustStore {
    try TrustStore(.only(anchors), revocationLists: revocationLists, anchors: anchors)
  }

  /// Verifies a chain as a handshake does.
  ///
  /// - Parameter server: The host for which the certificate must be issued, or `nil` for any host.
  func verify(_ sent: [Certificate], for server: ServerName?, date: Int64) -> (VerificationResult, [Certificate]) {
    // Safe: the call transfers the result.
    unsafe result(of: verifyOnce(sent, for: server, date: date), sent, for: server, date: date)
  }

  /// Converts OpenSSL's result. If the chain leads to no root and the system's root file could not be used, reads the
  /// file again, and verifies the chain again if that succeeds.
  @unsafe
  func result(
    of taken: larkspur_tls_verification_result, _ sent: [Certificate], for server: ServerName?, date: Int64
  ) -> (VerificationResult, [Certificate]) {
    // Safe: in these calls, the lists and the message are transferred.
    let (result, verified) = unsafe Self.take(taken)
    guard !result.isTrusted, VerificationResult.lacksRoot(result.code),
      complaint.withLock({ $0 != nil })
    else { return (result, verified) }
    readRootFile()
    guard let message = complaint.withLock({ $0 }) else {
      return unsafe Self.take(verifyOnce(sent, for: server, date: date))
    }
    return (VerificationResult(code: result.code, depth: result.depth, complaint: message), verified)
  }

  /// Takes ownership of the lists and the message. The message counts only if a root is missing.
  @unsafe
  private static func take(_ taken: larkspur_tls_verification_result) -> (VerificationResult, [Certificate]) {
    // Safe: the result is transferred.
    let (code, depth) = unsafe (taken.error, Int(taken.depth))
    let message = unsafe Certificate.text(taken.complaint)
    let isRootMissing = VerificationResult.lacksRoot(code)
    return (
      VerificationResult(code: code, depth: depth, complaint: isRootMissing && !message.isEmpty ? message : nil),
      unsafe Certificate.list(taking: taken.verified)
    )
  }

  @unsafe
  private func verifyOnce(
    _ sent: [Certificate], for server: ServerName?, date: Int64
  ) -> larkspur_tls_verification_result {
    // If the server's own certificate is an anchor, pass it alone: OpenSSL would check the certificates above it, too.
    let needed = anchors.map { anchors in sent.first.map(anchors.contains) == true ? Array(sent.prefix(1)) : sent }
    var result = unsafe larkspur_tls_verification_result()
    unsafe result.error = X509_V_ERR_OUT_OF_MEM
    guard let list = Certificate.list(needed ?? sent) else { return unsafe result }
    // Safe: the store and the list live until the call returns, which writes the result.
    unsafe larkspur_verify(
      reference.pointer, list.pointer, server?.name, server?.address, date, anchors != nil, &result)
    return unsafe result
  }
}
