/// What came out when a chain was verified.
public struct VerificationResult: Hashable, Sendable {
  /// OpenSSL's number, `X509_V_...`. 0: the chain is good.
  public let code: Int32
  /// Where in the chain the problem is: 0 is the server's own certificate.
  public let depth: Int

  public init(code: Int32, depth: Int) {
    self.code = code
    self.depth = depth
  }

  public var isTrusted: Bool { code == 0 }

  /// OpenSSL's words for `code`.
  public var words: String { ErrorQueue.verificationWords(code) }

  /// What the connection would fail with. Nil: the chain is good.
  public var error: TLSError? {
    isTrusted ? nil : TLSError(Self.problem(code), reason: words + (depth > 0 ? ", issuer \(depth)" : ""))
  }
}
