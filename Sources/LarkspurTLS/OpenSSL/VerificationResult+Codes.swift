extension VerificationResult {
  /// Whether a root that could not be read can explain the result. A self-signed certificate may itself be such a root.
  static func lacksRoot(_ code: Int32) -> Bool { [.untrustedRoot, .selfSigned].contains(problem(code)) }

  static func problem(_ code: Int32) -> TLSError.Problem {
    switch code {
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
      X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_CERT_UNTRUSTED,
      X509_V_ERR_CERT_REJECTED, X509_V_ERR_CERT_CHAIN_TOO_LONG:
      .untrustedRoot
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: .selfSigned
    case X509_V_ERR_CERT_HAS_EXPIRED: .expired
    case X509_V_ERR_CERT_NOT_YET_VALID: .notYetValid
    case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .wrongHost
    case X509_V_ERR_CERT_REVOKED: .revoked
    case X509_V_ERR_UNABLE_TO_GET_CRL, X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER, X509_V_ERR_CRL_NOT_YET_VALID,
      X509_V_ERR_CRL_HAS_EXPIRED, X509_V_ERR_CRL_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE,
      X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD, X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD,
      X509_V_ERR_KEYUSAGE_NO_CRL_SIGN, X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION, X509_V_ERR_DIFFERENT_CRL_SCOPE,
      X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
      .revocationUnknown
    case X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE: .badSignature
    case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL: .weakKey
    case larkspur_v_key_too_large: .keyTooLarge
    case X509_V_ERR_CA_MD_TOO_WEAK: .weakDigest
    case X509_V_ERR_OUT_OF_MEM: .outOfMemory
    default: .certificateInvalid
    }
  }
}
