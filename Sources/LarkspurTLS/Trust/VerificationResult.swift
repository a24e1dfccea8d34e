/// What came out when a chain was verified.
public struct VerificationResult: Hashable, Sendable {
  /// OpenSSL's number, `X509_V_...`, or 1001 for a key that is too large. 0: the chain is good.
  public let code: Int32
  /// Where in the chain the problem is: 0 is the server's own certificate.
  public let depth: Int

  /// Which of the system's files of roots cannot be used, and why, where the chain leads to no root.
  let complaint: String?

  public init(code: Int32, depth: Int) { self.init(code: code, depth: depth, complaint: nil) }

  init(code: Int32, depth: Int, complaint: String?) {
    self.code = code
    self.depth = depth
    self.complaint = complaint
  }

  public var isTrusted: Bool { code == 0 }

  /// OpenSSL's words for `code`; or, where a root is missing, which of the system's files of roots cannot be used.
  public var words: String { complaint ?? ErrorQueue.verificationWords(code) }

  /// What the connection would fail with. Nil: the chain is good.
  public var error: TLSError? {
    // The fault is not the server's.
    if let complaint { return TLSError(.trustStoreUnreadable, reason: complaint) }
    return isTrusted ? nil : TLSError(Self.problem(code), reason: words + (depth > 0 ? ", issuer \(depth)" : ""))
  }
}
