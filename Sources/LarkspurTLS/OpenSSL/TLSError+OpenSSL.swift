extension TLSError {
  /// Creates the error of a failed connection.
  @unsafe
  init(_ details: larkspur_tls_failure_details, isHandshake: Bool) {
    // Safe: plain numbers.
    let code = details.code
    let message = ErrorQueue.reason(of: code)
    if details.group == larkspur_tls_group_too_large {
      self.init(.keyTooLarge, reason: "the group for the key exchange has more than 4096 bits")
    } else if details.group == larkspur_tls_group_not_of_safe_prime {
      self.init(.weakKey, reason: "the group for the key exchange is not of a safe prime")
    } else if details.truncated {
      self.init(isHandshake ? .connectionLost : .truncated, reason: message)
    } else if let alert = UInt8(exactly: details.alert) {
      self.init(unsafe Self.problem(alert, details), reason: message)
    } else {
      self.init(Self.problem(code), reason: message)
    }
  }

  @unsafe
  private static func problem(_ alert: UInt8, _ details: larkspur_tls_failure_details) -> Problem {
    // Safe: plain numbers.
    switch alert {
    case 70: return .protocolVersion
    case 116: return .clientCertificateRequired
    // TLS 1.2 has no alert for a missing certificate.
    case 40 where details.identity_requested && !details.identity_sent: return .clientCertificateRequired
    // RFC 8446 4.1.1: no set of parameters in common.
    case 40 where !details.saw_server_hello, 71 where !details.saw_server_hello: return .noSharedCipher
    case 42...46 where details.identity_sent, 48 where details.identity_sent,
      49 where details.identity_sent:
      return .clientCertificateRefused
    // RFC 7301 3.2: the server supports none of the protocols that the client offers.
    case 120: return .noSharedProtocol
    default: return .alert(TLSAlert(number: alert))
    }
  }

  private static func problem(_ code: UInt) -> Problem {
    if larkspur_error_code_reason(code) == ERR_R_MALLOC_FAILURE { return .outOfMemory }
    // Safe: plain numbers.
    guard larkspur_error_library(code) == ERR_LIB_SSL else {
      return .protocolViolation
    }
    return switch larkspur_error_code_reason(code) {
    case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_VERSION_TOO_LOW:
      .protocolVersion
    case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST: .notTLS
    case SSL_R_NO_CIPHERS_AVAILABLE, SSL_R_WRONG_CIPHER_RETURNED, SSL_R_UNKNOWN_CIPHER_RETURNED: .noSharedCipher
    case SSL_R_BAD_SIGNATURE: .badSignature
    case SSL_R_DH_KEY_TOO_SMALL, SSL_R_EE_KEY_TOO_SMALL, SSL_R_CA_KEY_TOO_SMALL, SSL_R_BAD_DH_VALUE: .weakKey
    case SSL_R_CA_MD_TOO_WEAK: .weakDigest
    default: .protocolViolation
    }
  }
}
