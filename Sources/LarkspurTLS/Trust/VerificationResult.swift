/// The result of verifying a chain.
public struct VerificationResult: Hashable, Sendable {
  /// OpenSSL's number, `X509_V_...`, or 1001 for a key that is too large. 0 means that the chain is valid.
  public let code: Int32
  /// The position in the chain of the certificate with the problem. 0 is the server's own certificate.
  public let depth: Int

  /// If the chain leads to no root: the system's root file that cannot be used, and why. Otherwise `nil`.
  public let complaint: String?

  public init(code: Int32, depth: Int, complaint: String? = nil) {
    self.code = code
    self.depth = depth
    self.complaint = complaint
  }

  public var isTrusted: Bool { code == 0 }

  /// The complaint about the system's root file if there is one, or else OpenSSL's message for `code`.
  public var message: String { complaint ?? ErrorQueue.verificationMessage(code) }

  /// The error with which the connection fails, or `nil` if the chain is valid.
  public var error: TLSError? {
    // A root file that cannot be read is not the server's fault.
    if let complaint { return TLSError(.trustStoreUnreadable, reason: complaint) }
    return isTrusted ? nil : TLSError(Self.problem(code), reason: message + (depth > 0 ? ", issuer \(depth)" : ""))
  }
}
