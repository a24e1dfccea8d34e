/// An error of TLS.
public struct TLSError: Error, Hashable, Sendable {
  public var problem: Problem
  /// OpenSSL's message, or further details, if there are any.
  public var reason: String?
  /// The certificates that the server had sent when the handshake failed. Ignored by `==`.
  public var trust: Trust?
  /// Whether the handshake had ended, so that application data was being exchanged. Ignored by `==`.
  public var isAfterHandshake = false

  public init(_ problem: Problem, reason: String? = nil) {
    self.problem = problem
    self.reason = reason
  }

  public enum Problem: Hashable, Sendable {
    // Problems of the server's certificate (RFC 5280).
    /// No chain leads to a trusted root: the root is unknown, or an intermediate certificate is missing.
    case untrustedRoot
    case selfSigned
    case expired
    case notYetValid
    case wrongHost
    case revoked
    /// The revocation lists, or the stapled response that the certificate promises, contain nothing valid about it.
    case revocationUnknown
    case badSignature
    case weakKey
    /// A key, or the group of a key exchange, exceeds Larkspur's size limit. Computing with it would delay other
    /// connections.
    case keyTooLarge
    case weakDigest
    /// The certificate or one of its issuers violates another rule: key usage, path length, name constraints, encoding.
    case certificateInvalid
    case pinMismatch(PinMismatch)
    /// The program refused the certificate when it was asked.
    case refusedByCaller

    // Problems of the protocol.
    /// The client and the server have no TLS version in common.
    case protocolVersion
    case noSharedCipher
    /// The server's bytes are not TLS.
    case notTLS
    /// The server chose a protocol other than HTTP/1.1, which the client had not offered.
    case applicationProtocol
    /// The server supports no offered protocol; the client offers HTTP/1.1 only (RFC 7301 3.2).
    case noSharedProtocol
    /// The server ended the connection with an alert.
    case alert(TLSAlert)
    /// The server violated the TLS protocol.
    case protocolViolation
    /// The connection ended without `close_notify`. An attacker may have cut it.
    case truncated
    /// The connection ended during the handshake.
    case connectionLost
    case handshakeTimedOut

    // Problems of the client's certificate.
    case clientCertificateRequired
    case clientCertificateRefused

    // Problems of the configuration.
    case hostInvalid
    case identityUnreadable
    case passwordWrong
    /// The client's key or archive is encrypted with an algorithm that this OpenSSL does not support. No password
    /// helps.
    case encryptionUnsupported
    /// The private key does not match the certificate.
    case keyMismatch
    case trustStoreUnreadable
    case revocationListUnreadable
    /// The file for keys cannot be written, is of an unsafe kind, or is accessible to others.
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
