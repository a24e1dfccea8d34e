/// What came out when a chain was verified.
package struct VerificationResult: Hashable, Sendable {
  /// OpenSSL's number, `X509_V_...`. 0: the chain is good.
  package let code: Int32
  /// Where in the chain the problem is: 0 is the server's own certificate.
  package let depth: Int

  package init(code: Int32, depth: Int) {
    self.code = code
    self.depth = depth
  }

  package var isTrusted: Bool { code == 0 }

  /// OpenSSL's words for `code`.
  package var words: String { ErrorQueue.verificationWords(code) }

  /// What the connection would fail with. Nil: the chain is good.
  package var error: TLSError? {
    isTrusted ? nil : TLSError(Self.problem(code), reason: words + (depth > 0 ? ", issuer \(depth)" : ""))
  }
}
