import LarkspurTLS

/// Versions of TLS, by the numbers of the protocol. Larkspur speaks 1.2 and 1.3.
public enum tls_protocol_version_t: UInt16, Sendable {
  /// RFC 2246. A limit of this comes to 1.2.
  case TLSv10 = 0x0301
  /// RFC 4346. A limit of this comes to 1.2.
  case TLSv11 = 0x0302
  /// RFC 5246.
  case TLSv12 = 0x0303
  /// RFC 8446.
  case TLSv13 = 0x0304
  /// RFC 4347, for datagrams: not spoken.
  case DTLSv10 = 0xFEFF
  /// RFC 6347, for datagrams: not spoken.
  case DTLSv12 = 0xFEFD

  /// What a limit of this version comes to.
  var version: TLSVersion { self == .TLSv13 ? .tls13 : .tls12 }
}

/// Cipher suites, by their numbers in IANA's registry.
public enum tls_ciphersuite_t: UInt16, Sendable, CaseIterable {
  /// Of TLS 1.3 (RFC 8446).
  case AES_128_GCM_SHA256 = 0x1301
  /// Of TLS 1.3 (RFC 8446).
  case AES_256_GCM_SHA384 = 0x1302
  /// Of TLS 1.3 (RFC 8446).
  case CHACHA20_POLY1305_SHA256 = 0x1303
  /// Of TLS 1.2 (RFC 5246).
  case RSA_WITH_3DES_EDE_CBC_SHA = 0x000A
  /// Of TLS 1.2 (RFC 5246).
  case RSA_WITH_AES_128_CBC_SHA = 0x002F
  /// Of TLS 1.2 (RFC 5246).
  case RSA_WITH_AES_256_CBC_SHA = 0x0035
  /// Of TLS 1.2 (RFC 5288).
  case RSA_WITH_AES_128_GCM_SHA256 = 0x009C
  /// Of TLS 1.2 (RFC 5288).
  case RSA_WITH_AES_256_GCM_SHA384 = 0x009D
  /// Of TLS 1.2 (RFC 5246).
  case RSA_WITH_AES_128_CBC_SHA256 = 0x003C
  /// Of TLS 1.2 (RFC 5246).
  case RSA_WITH_AES_256_CBC_SHA256 = 0x003D
  /// Of TLS 1.2 (RFC 8422).
  case ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA = 0xC008
  /// Of TLS 1.2 (RFC 8422).
  case ECDHE_ECDSA_WITH_AES_128_CBC_SHA = 0xC009
  /// Of TLS 1.2 (RFC 8422).
  case ECDHE_ECDSA_WITH_AES_256_CBC_SHA = 0xC00A
  /// Of TLS 1.2 (RFC 8422).
  case ECDHE_RSA_WITH_3DES_EDE_CBC_SHA = 0xC012
  /// Of TLS 1.2 (RFC 8422).
  case ECDHE_RSA_WITH_AES_128_CBC_SHA = 0xC013
  /// Of TLS 1.2 (RFC 8422).
  case ECDHE_RSA_WITH_AES_256_CBC_SHA = 0xC014
  /// Of TLS 1.2 (RFC 5289).
  case ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 = 0xC023
  /// Of TLS 1.2 (RFC 5289).
  case ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 = 0xC024
  /// Of TLS 1.2 (RFC 5289).
  case ECDHE_RSA_WITH_AES_128_CBC_SHA256 = 0xC027
  /// Of TLS 1.2 (RFC 5289).
  case ECDHE_RSA_WITH_AES_256_CBC_SHA384 = 0xC028
  /// Of TLS 1.2 (RFC 5289).
  case ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = 0xC02B
  /// Of TLS 1.2 (RFC 5289).
  case ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 = 0xC02C
  /// Of TLS 1.2 (RFC 5289).
  case ECDHE_RSA_WITH_AES_128_GCM_SHA256 = 0xC02F
  /// Of TLS 1.2 (RFC 5289).
  case ECDHE_RSA_WITH_AES_256_GCM_SHA384 = 0xC030
  /// Of TLS 1.2 (RFC 7905).
  case ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA8
  /// Of TLS 1.2 (RFC 7905).
  case ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA9

  /// By the name that the RFCs give it. Nil: there is no case for it.
  init?(standardName: String) {
    guard let suite = Self.allCases.first(where: { "TLS_\($0)" == standardName }) else { return nil }
    self = suite
  }
}
