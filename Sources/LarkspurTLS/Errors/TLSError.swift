/// Why TLS could not do what it was asked.
public struct TLSError: Error, Hashable, Sendable {
  public var problem: Problem
  /// OpenSSL's own words, where it had any.
  public var reason: String?
  /// The certificates that the server had shown when the handshake failed. Two errors that differ in nothing else are
  /// equal.
  public var trust: Trust?
  /// Whether the handshake was over: application data was on its way. Two errors that differ in nothing else are equal.
  public var isAfterHandshake = false

  public init(_ problem: Problem, reason: String? = nil) {
    self.problem = problem
    self.reason = reason
  }

  public enum Problem: Hashable, Sendable {
    // The server's certificate, RFC 5280.
    /// No chain leads to a root that is trusted: the root is unknown, or an intermediate is missing.
    case untrustedRoot
    case selfSigned
    case expired
    case notYetValid
    case wrongHost
    case revoked
    /// There are revocation lists, or a stapled response is promised, and they do not say anything valid about the certificate.
    case revocationUnknown
    case badSignature
    case weakKey
    /// A key, or the group of a key exchange, is larger than Larkspur computes with: it would hold up other connections.
    case keyTooLarge
    case weakDigest
    /// The certificate or one of its issuers breaks another rule: usage, path length, name constraints, form.
    case certificateInvalid
    case pinMismatch(PinMismatch)
    /// The caller, asked about the certificate, did not trust it.
    case refusedByCaller

    // The protocol.
    /// The two sides have no version of TLS in common.
    case protocolVersion
    case noSharedCipher
    /// What the server sends is not TLS.
    case notTLS
    /// The server chose another protocol than HTTP/1.1 over TLS, although it was not offered.
    case applicationProtocol
    /// The server speaks no protocol that was offered, and HTTP/1.1 is all that is (RFC 7301 3.2).
    case noSharedProtocol
    /// The server ended the connection with an alert.
    case alert(TLSAlert)
    /// The server broke the rules of TLS.
    case protocolViolation
    /// The connection ended without `close_notify`: an attacker may have cut it.
    case truncated
    /// The connection was lost in mid-handshake.
    case connectionLost
    case handshakeTimedOut

    // The client's certificate.
    case clientCertificateRequired
    case clientCertificateRefused

    // What the caller gave.
    case hostInvalid
    case identityUnreadable
    case passwordWrong
    /// The client's key or archive is encrypted with an algorithm that OpenSSL does not have here, whatever the password.
    case encryptionUnsupported
    /// The private key is not the certificate's.
    case keyMismatch
    case trustStoreUnreadable
    case revocationListUnreadable
    /// The file of `SSLKEYLOGFILE` cannot be written to, or others could read it.
    case keyLogUnwritable
    case outOfMemory
  }
}

extension TLSError.Problem: CustomStringConvertible {
  public var description: String {
    switch self {
    case .untrustedRoot: "the certificate leads to no root that is trusted"
    case .selfSigned: "the certificate is self-signed"
    case .expired: "the certificate has expired"
    case .notYetValid: "the certificate is not valid yet"
    case .wrongHost: "the certificate is for another host"
    case .revoked: "the certificate has been revoked"
    case .revocationUnknown: "it cannot be told whether the certificate has been revoked"
    case .badSignature: "a signature is wrong"
    case .weakKey: "a key is too weak"
    case .keyTooLarge: "a key is too large"
    case .weakDigest: "a signature's digest is too weak"
    case .certificateInvalid: "the certificate or one of its issuers breaks the rules"
    case .pinMismatch(let mismatch): mismatch.description
    case .refusedByCaller: "the certificate was refused"
    case .protocolVersion: "no version of TLS in common"
    case .noSharedCipher: "no cipher in common"
    case .notTLS: "the server does not speak TLS"
    case .applicationProtocol: "the server chose a protocol that was not offered"
    case .noSharedProtocol: "the server does not speak HTTP/1.1 over TLS"
    case .alert(let alert): "the server sent the alert \(alert)"
    case .protocolViolation: "the server broke the rules of TLS"
    case .truncated: "the connection ended without close_notify"
    case .connectionLost: "the connection ended in mid-handshake"
    case .handshakeTimedOut: "the handshake took too long"
    case .clientCertificateRequired: "the server wants a client certificate"
    case .clientCertificateRefused: "the server refused the client certificate"
    case .hostInvalid: "the host is neither an address nor a name in ASCII"
    case .identityUnreadable: "the client certificate or its key cannot be read"
    case .passwordWrong: "the password of the client's key is wrong or missing"
    case .encryptionUnsupported: "the client's key is encrypted with an algorithm that OpenSSL does not have here"
    case .keyMismatch: "the key is not the client certificate's"
    case .trustStoreUnreadable: "the trusted certificates cannot be read"
    case .revocationListUnreadable: "a revocation list cannot be read"
    case .keyLogUnwritable: "the keys cannot be logged"
    case .outOfMemory: "out of memory"
    }
  }
}

extension TLSError: CustomStringConvertible {
  public var description: String { problem.description + (reason.map { " (\($0))" } ?? "") }
}

extension TLSError {
  public static func == (left: TLSError, right: TLSError) -> Bool {
    left.problem == right.problem && left.reason == right.reason
  }

  public func hash(into hasher: inout Hasher) {
    hasher.combine(problem)
    hasher.combine(reason)
  }
}
