// The parts of OpenSSL that this module uses. `CLarkspurOpenSSL` is linked, not imported, so that clients need no module
// map (decision 35). `CLarkspurOpenSSL.h` describes its functions. `ExternTests` compares these declarations with the headers.
// swift-format-ignore-file: AlwaysUseLowerCamelCase

let ERR_LIB_SSL: Int32 = 20
let ERR_R_MALLOC_FAILURE: Int32 = 786688
let EVP_MAX_MD_SIZE: Int32 = 64
let GEN_DNS: Int32 = 2
let GEN_IPADD: Int32 = 7
let SSL_R_BAD_DH_VALUE: Int32 = 102
let SSL_R_BAD_SIGNATURE: Int32 = 123
let SSL_R_CA_KEY_TOO_SMALL: Int32 = 397
let SSL_R_CA_MD_TOO_WEAK: Int32 = 398
let SSL_R_DH_KEY_TOO_SMALL: Int32 = 394
let SSL_R_EE_KEY_TOO_SMALL: Int32 = 399
let SSL_R_HTTPS_PROXY_REQUEST: Int32 = 155
let SSL_R_HTTP_REQUEST: Int32 = 156
let SSL_R_NO_CIPHERS_AVAILABLE: Int32 = 181
let SSL_R_NO_PROTOCOLS_AVAILABLE: Int32 = 191
let SSL_R_UNKNOWN_CIPHER_RETURNED: Int32 = 248
let SSL_R_UNSUPPORTED_PROTOCOL: Int32 = 258
let SSL_R_VERSION_TOO_LOW: Int32 = 396
let SSL_R_WRONG_CIPHER_RETURNED: Int32 = 261
let SSL_R_WRONG_SSL_VERSION: Int32 = 266
let SSL_R_WRONG_VERSION_NUMBER: Int32 = 267
let TLS1_3_VERSION: Int32 = 772
let X509_V_ERR_APPLICATION_VERIFICATION: Int32 = 50
let X509_V_ERR_CA_KEY_TOO_SMALL: Int32 = 67
let X509_V_ERR_CA_MD_TOO_WEAK: Int32 = 68
let X509_V_ERR_CERT_CHAIN_TOO_LONG: Int32 = 22
let X509_V_ERR_CERT_HAS_EXPIRED: Int32 = 10
let X509_V_ERR_CERT_NOT_YET_VALID: Int32 = 9
let X509_V_ERR_CERT_REJECTED: Int32 = 28
let X509_V_ERR_CERT_REVOKED: Int32 = 23
let X509_V_ERR_CERT_SIGNATURE_FAILURE: Int32 = 7
let X509_V_ERR_CERT_UNTRUSTED: Int32 = 27
let X509_V_ERR_CRL_HAS_EXPIRED: Int32 = 12
let X509_V_ERR_CRL_NOT_YET_VALID: Int32 = 11
let X509_V_ERR_CRL_PATH_VALIDATION_ERROR: Int32 = 54
let X509_V_ERR_CRL_SIGNATURE_FAILURE: Int32 = 8
let X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: Int32 = 18
let X509_V_ERR_DIFFERENT_CRL_SCOPE: Int32 = 44
let X509_V_ERR_EE_KEY_TOO_SMALL: Int32 = 66
let X509_V_ERR_ERROR_IN_CRL_LAST_UPDATE_FIELD: Int32 = 15
let X509_V_ERR_ERROR_IN_CRL_NEXT_UPDATE_FIELD: Int32 = 16
let X509_V_ERR_HOSTNAME_MISMATCH: Int32 = 62
let X509_V_ERR_IP_ADDRESS_MISMATCH: Int32 = 64
let X509_V_ERR_KEYUSAGE_NO_CRL_SIGN: Int32 = 35
let X509_V_ERR_OUT_OF_MEM: Int32 = 17
let X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: Int32 = 19
let X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE: Int32 = 4
let X509_V_ERR_UNABLE_TO_DECRYPT_CRL_SIGNATURE: Int32 = 5
let X509_V_ERR_UNABLE_TO_GET_CRL: Int32 = 3
let X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER: Int32 = 33
let X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT: Int32 = 2
let X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY: Int32 = 20
let X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE: Int32 = 21
let X509_V_ERR_UNHANDLED_CRITICAL_CRL_EXTENSION: Int32 = 36
let X509_V_OK: Int32 = 0
let larkspur_ocsp_good: UInt32 = 0
let larkspur_ocsp_none: UInt32 = 1
let larkspur_ocsp_outdated: UInt32 = 4
let larkspur_ocsp_revoked: UInt32 = 2
let larkspur_ocsp_unknown: UInt32 = 3
let larkspur_ocsp_untrusted: UInt32 = 6
let larkspur_secret_needs_password: UInt32 = 1
let larkspur_secret_unreadable: UInt32 = 0
let larkspur_secret_unsupported: UInt32 = 2
let larkspur_tls_closed: UInt32 = 5
let larkspur_tls_done: UInt32 = 0
let larkspur_tls_failed: UInt32 = 6
let larkspur_tls_group_not_of_safe_prime: UInt32 = 2
let larkspur_tls_group_too_large: UInt32 = 1
let larkspur_tls_needs_identity: UInt32 = 4
let larkspur_tls_needs_input: UInt32 = 1
let larkspur_tls_needs_output: UInt32 = 2
let larkspur_tls_needs_trust: UInt32 = 3
let larkspur_v_key_too_large: Int32 = 1001

@unsafe
struct larkspur_tls_flow {
  var input: UnsafePointer<UInt8>?
  var input_count: Int = 0
  var output: UnsafeMutablePointer<UInt8>?
  var output_room: Int = 0
  var input_ended: Int = 0
}

struct larkspur_tls_result {
  var status: UInt32 = 0
  var input_used: Int = 0
  var output_used: Int = 0
  var plain_count: Int = 0
}

struct larkspur_tls_failure_details {
  var code: UInt = 0
  var alert: Int32 = 0
  var identity_requested: Bool = false
  var identity_sent: Bool = false
  var truncated: Bool = false
  var saw_server_hello: Bool = false
  var group: UInt32 = 0
  var _padding: UInt32 = 0
}

@unsafe
struct larkspur_tls_verification_result {
  var error: Int32 = 0
  var depth: Int32 = 0
  var sent: OpaquePointer?
  var verified: OpaquePointer?
  var complaint: UnsafeMutableRawPointer?
}

@_extern(c) func ERR_get_error() -> UInt
@_extern(c) func ERR_clear_error()
@_extern(c) func ERR_reason_error_string(_ e: UInt) -> UnsafePointer<CChar>?
@_extern(c) func EVP_MD_CTX_new() -> OpaquePointer?
@_extern(c) func EVP_MD_CTX_free(_ ctx: OpaquePointer?)
@_extern(c) func EVP_DigestInit_ex(_ ctx: OpaquePointer?, _ type: OpaquePointer?, _ impl: OpaquePointer?) -> Int32
@_extern(c) func EVP_DigestUpdate(_ ctx: OpaquePointer?, _ d: UnsafeRawPointer?, _ cnt: Int) -> Int32
@_extern(c) func EVP_DigestFinal_ex(
  _ ctx: OpaquePointer?, _ md: UnsafeMutablePointer<UInt8>?, _ s: UnsafeMutablePointer<UInt32>?
) -> Int32
@_extern(c) func EVP_md5() -> OpaquePointer?
@_extern(c) func EVP_sha1() -> OpaquePointer?
@_extern(c) func EVP_sha256() -> OpaquePointer?
@_extern(c) func EVP_sha512() -> OpaquePointer?
@_extern(c) func EVP_sha512_256() -> OpaquePointer?
@_extern(c) func EVP_PKEY_free(_ pkey: OpaquePointer?)
@discardableResult
@_extern(c) func SHA256(
  _ d: UnsafePointer<UInt8>?, _ n: Int, _ md: UnsafeMutablePointer<UInt8>?
) -> UnsafeMutablePointer<UInt8>?
@_extern(c) func X509_STORE_new() -> OpaquePointer?
@_extern(c) func X509_STORE_free(_ v: OpaquePointer?)
@_extern(c) func X509_STORE_add_cert(_ ctx: OpaquePointer?, _ x: OpaquePointer?) -> Int32
@_extern(c) func X509_verify_cert_error_string(_ n: Int) -> UnsafePointer<CChar>?
@_extern(c) func X509_free(_ a: OpaquePointer?)
@_extern(c) func X509_get_issuer_name(_ a: OpaquePointer?) -> OpaquePointer?
@_extern(c) func X509_get_subject_name(_ a: OpaquePointer?) -> OpaquePointer?
@_extern(c) func X509_up_ref(_ x: OpaquePointer?) -> Int32
@_extern(c) func X509_check_private_key(_ x509: OpaquePointer?, _ pkey: OpaquePointer?) -> Int32
@_extern(c) func X509_cmp(_ a: OpaquePointer?, _ b: OpaquePointer?) -> Int32
@_extern(c) func GENERAL_NAMES_free(_ a: OpaquePointer?)
@_extern(c) func SSL_CTX_free(_ p0: OpaquePointer?)
@_extern(c) func SSL_get_current_cipher(_ s: OpaquePointer?) -> OpaquePointer?
@_extern(c) func SSL_CIPHER_standard_name(_ c: OpaquePointer?) -> UnsafePointer<CChar>?
@_extern(c) func SSL_SESSION_get_timeout(_ s: OpaquePointer?) -> Int
@_extern(c) func SSL_SESSION_get_protocol_version(_ s: OpaquePointer?) -> Int32
@_extern(c) func SSL_SESSION_is_resumable(_ s: OpaquePointer?) -> Int32
@_extern(c) func SSL_SESSION_free(_ ses: OpaquePointer?)
@_extern(c) func SSL_version(_ ssl: OpaquePointer?) -> Int32
@_extern(c) func SSL_session_reused(_ s: OpaquePointer?) -> Int32
@_extern(c) func larkspur_tls_context(
  _ minimum_version: Int32, _ maximum_version: Int32, _ allows_legacy: Bool, _ store: OpaquePointer?
) -> OpaquePointer?
@_extern(c) func larkspur_tls_context_log_keys(
  _ context: OpaquePointer?, _ path: UnsafePointer<CChar>?
) -> UnsafePointer<CChar>?
@_extern(c) func larkspur_tls_context_use_identity(
  _ context: OpaquePointer?, _ leaf: OpaquePointer?, _ key: OpaquePointer?, _ chain: OpaquePointer?
) -> Int32
@_extern(c) func larkspur_store_rules(_ store: OpaquePointer?)
@_extern(c) func larkspur_tls_new(_ context: OpaquePointer?, _ asks_identity: Bool) -> OpaquePointer?
@_extern(c) func larkspur_tls_free(_ tls: OpaquePointer?)
@_extern(c) func larkspur_tls_ssl(_ tls: OpaquePointer?) -> OpaquePointer?
@_extern(c) func larkspur_tls_set_server(
  _ tls: OpaquePointer?, _ name: UnsafePointer<CChar>?, _ address: UnsafePointer<CChar>?, _ date: Int64
) -> Int32
@_extern(c) func larkspur_tls_offer(_ tls: OpaquePointer?, _ session: OpaquePointer?) -> Int32
@_extern(c) func larkspur_tls_keep_buffers(_ tls: OpaquePointer?)
@_extern(c) func larkspur_tls_handshake(
  _ tls: OpaquePointer?, _ flow: UnsafeRawPointer?, _ result: UnsafeMutableRawPointer?
)
@_extern(c) func larkspur_tls_read(
  _ tls: OpaquePointer?, _ flow: UnsafeRawPointer?, _ result: UnsafeMutableRawPointer?,
  _ plain:
    UnsafeMutableRawPointer?, _ room: Int
)
@_extern(c) func larkspur_tls_write(
  _ tls: OpaquePointer?, _ flow: UnsafeRawPointer?, _ result: UnsafeMutableRawPointer?, _ plain: UnsafeRawPointer?,
  _ count: Int
)
@_extern(c) func larkspur_tls_shut_down(
  _ tls: OpaquePointer?, _ flow: UnsafeRawPointer?, _ result: UnsafeMutableRawPointer?
)
@_extern(c) func larkspur_tls_take_verification(_ tls: OpaquePointer?, _ result: UnsafeMutableRawPointer?)
@_extern(c) func larkspur_tls_decide(_ tls: OpaquePointer?, _ error: Int32)
@_extern(c) func larkspur_tls_identify(
  _ tls: OpaquePointer?, _ leaf: OpaquePointer?, _ key: OpaquePointer?, _ chain: OpaquePointer?
) -> Int32
@_extern(c) func larkspur_tls_failure(_ tls: OpaquePointer?, _ details: UnsafeMutableRawPointer?)
@_extern(c) func larkspur_tls_take_session(_ tls: OpaquePointer?) -> OpaquePointer?
@_extern(c) func larkspur_tls_alpn(_ tls: OpaquePointer?, _ name: UnsafeMutablePointer<UnsafePointer<UInt8>?>?) -> Int
@_extern(c) func larkspur_tls_stapled_response(
  _ tls: OpaquePointer?, _ response: UnsafeMutablePointer<UnsafePointer<UInt8>?>?
) -> Int
@_extern(c) func larkspur_tls_acceptable_issuers(_ tls: OpaquePointer?) -> Int32
@_extern(c) func larkspur_tls_acceptable_issuer(_ tls: OpaquePointer?, _ index: Int32) -> UnsafeMutableRawPointer?
@_extern(c) func larkspur_tls_acceptable_issuer_der(_ tls: OpaquePointer?, _ index: Int32) -> UnsafeMutableRawPointer?
@_extern(c) func larkspur_is_ipv4_address(_ text: UnsafePointer<CChar>?) -> Bool
@_extern(c) func larkspur_canonical_ipv6_address(_ text: UnsafePointer<CChar>?) -> UnsafeMutableRawPointer?
@_extern(c) func larkspur_chain_count(_ chain: OpaquePointer?) -> Int32
@_extern(c) func larkspur_chain_at(_ chain: OpaquePointer?, _ index: Int32) -> OpaquePointer?
@_extern(c) func larkspur_chain_new() -> OpaquePointer?
@_extern(c) func larkspur_chain_append(_ chain: OpaquePointer?, _ certificate: OpaquePointer?) -> Int32
@_extern(c) func larkspur_chain_free(_ chain: OpaquePointer?)
@_extern(c) func larkspur_certificate_der(_ certificate: OpaquePointer?) -> UnsafeMutableRawPointer?
@_extern(c) func larkspur_certificate_spki(_ certificate: OpaquePointer?) -> UnsafeMutableRawPointer?
@_extern(c) func larkspur_name_text(_ name: OpaquePointer?) -> UnsafeMutableRawPointer?
@_extern(c) func larkspur_certificate_serial(_ certificate: OpaquePointer?) -> UnsafeMutableRawPointer?
@_extern(c) func larkspur_certificate_not_before(_ certificate: OpaquePointer?) -> Int64
@_extern(c) func larkspur_certificate_not_after(_ certificate: OpaquePointer?) -> Int64
@_extern(c) func larkspur_certificate_names(_ certificate: OpaquePointer?) -> OpaquePointer?
@_extern(c) func larkspur_names_count(_ names: OpaquePointer?) -> Int32
@_extern(c) func larkspur_names_at(
  _ names: OpaquePointer?, _ index: Int32, _ bytes: UnsafeMutablePointer<UnsafePointer<UInt8>?>?,
  _ count:
    UnsafeMutablePointer<Int>?
) -> Int32
@_extern(c) func larkspur_certificate_must_staple(_ certificate: OpaquePointer?) -> Bool
@_extern(c) func larkspur_verify(
  _ store: OpaquePointer?, _ sent: OpaquePointer?, _ name: UnsafePointer<CChar>?,
  _ address:
    UnsafePointer<CChar>?, _ date: Int64, _ any_anchor: Bool, _ result: UnsafeMutableRawPointer?
)
@_extern(c) func larkspur_check_stapled_response(
  _ response: UnsafePointer<UInt8>?, _ count: Int, _ verified: OpaquePointer?, _ store: OpaquePointer?,
  _ date: Int64
) -> UInt32
@_extern(c) func larkspur_read_certificate(_ bytes: UnsafeRawPointer?, _ count: Int) -> OpaquePointer?
@_extern(c) func larkspur_read_certificates(
  _ bytes: UnsafeRawPointer?, _ count: Int, _ damaged: UnsafeMutablePointer<Int32>?
) -> OpaquePointer?
@_extern(c) func larkspur_named_root_file() -> UnsafePointer<CChar>?
@_extern(c) func larkspur_named_root_folders() -> UnsafePointer<CChar>?
@_extern(c) func larkspur_add_root_folders(_ store: OpaquePointer?, _ named_folders: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_add_root_file(
  _ store: OpaquePointer?, _ named_file: UnsafePointer<CChar>?, _ named_folders: UnsafePointer<CChar>?,
  _ is_empty: UnsafeMutablePointer<Bool>?
) -> UnsafeMutableRawPointer?
@_extern(c) func larkspur_add_root_files(_ store: OpaquePointer?, _ path: UnsafePointer<CChar>?) -> Int32
@_extern(c) func larkspur_read_revocation_lists(
  _ store: OpaquePointer?, _ bytes: UnsafeRawPointer?, _ count: Int
) -> Int32
@_extern(c) func larkspur_read_key(
  _ bytes: UnsafeRawPointer?, _ count: Int, _ password: UnsafePointer<CChar>?,
  _ failure:
    UnsafeMutablePointer<UInt32>?
) -> OpaquePointer?
@_extern(c) func larkspur_key_der(_ key: OpaquePointer?) -> UnsafeMutableRawPointer?
@_extern(c) func larkspur_read_pkcs12(
  _ bytes: UnsafeRawPointer?, _ count: Int, _ password: UnsafePointer<CChar>?,
  _ leaf:
    UnsafeMutablePointer<OpaquePointer?>?, _ key: UnsafeMutablePointer<OpaquePointer?>?,
  _ chain:
    UnsafeMutablePointer<OpaquePointer?>?, _ failure: UnsafeMutablePointer<UInt32>?
) -> Int32
@_extern(c) func larkspur_error_library(_ code: UInt) -> Int32
@_extern(c) func larkspur_error_code_reason(_ code: UInt) -> Int32
