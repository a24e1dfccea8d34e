import LarkspurTLS

/// The versions of TLS, by the numbers of the protocol. Larkspur speaks TLS 1.2 and 1.3.
public enum tls_protocol_version_t: UInt16, Sendable {
  /// TLS 1.0 (RFC 2246), not supported. As a limit: TLS 1.2.
  case TLSv10 = 0x0301
  /// TLS 1.1 (RFC 4346), not supported. As a limit: TLS 1.2.
  case TLSv11 = 0x0302
  /// TLS 1.2 (RFC 5246).
  case TLSv12 = 0x0303
  /// TLS 1.3 (RFC 8446).
  case TLSv13 = 0x0304
  /// DTLS 1.0 (RFC 4347), for datagrams; not supported. As a limit: TLS 1.2.
  case DTLSv10 = 0xFEFF
  /// DTLS 1.2 (RFC 6347), for datagrams; not supported. As a limit: TLS 1.2.
  case DTLSv12 = 0xFEFD

  /// The version of TLS that applies if this one is set as a limit.
  var version: TLSVersion { self == .TLSv13 ? .tls13 : .tls12 }
}

/// The cipher suites of TLS, by their numbers in IANA's registry.
public enum tls_ciphersuite_t: UInt16, Sendable, CaseIterable {
  /// TLS 1.3 (RFC 8446).
  case AES_128_GCM_SHA256 = 0x1301
  /// TLS 1.3 (RFC 8446).
  case AES_256_GCM_SHA384 = 0x1302
  /// TLS 1.3 (RFC 8446).
  case CHACHA20_POLY1305_SHA256 = 0x1303
  /// TLS 1.2 (RFC 5246).
  case RSA_WITH_3DES_EDE_CBC_SHA = 0x000A
  /// TLS 1.2 (RFC 5246).
  case RSA_WITH_AES_128_CBC_SHA = 0x002F
  /// TLS 1.2 (RFC 5246).
  case RSA_WITH_AES_256_CBC_SHA = 0x0035
  /// TLS 1.2 (RFC 5288).
  case RSA_WITH_AES_128_GCM_SHA256 = 0x009C
  /// TLS 1.2 (RFC 5288).
  case RSA_WITH_AES_256_GCM_SHA384 = 0x009D
  /// TLS 1.2 (RFC 5246).
  case RSA_WITH_AES_128_CBC_SHA256 = 0x003C
  /// TLS 1.2 (RFC 5246).
  case RSA_WITH_AES_256_CBC_SHA256 = 0x003D
  /// TLS 1.2 (RFC 8422).
  case ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA = 0xC008
  /// TLS 1.2 (RFC 8422).
  case ECDHE_ECDSA_WITH_AES_128_CBC_SHA = 0xC009
  /// TLS 1.2 (RFC 8422).
  case ECDHE_ECDSA_WITH_AES_256_CBC_SHA = 0xC00A
  /// TLS 1.2 (RFC 8422).
  case ECDHE_RSA_WITH_3DES_EDE_CBC_SHA = 0xC012
  /// TLS 1.2 (RFC 8422).
  case ECDHE_RSA_WITH_AES_128_CBC_SHA = 0xC013
  /// TLS 1.2 (RFC 8422).
  case ECDHE_RSA_WITH_AES_256_CBC_SHA = 0xC014
  /// TLS 1.2 (RFC 5289).
  case ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 = 0xC023
  /// TLS 1.2 (RFC 5289).
  case ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 = 0xC024
  /// TLS 1.2 (RFC 5289).
  case ECDHE_RSA_WITH_AES_128_CBC_SHA256 = 0xC027
  /// TLS 1.2 (RFC 5289).
  case ECDHE_RSA_WITH_AES_256_CBC_SHA384 = 0xC028
  /// TLS 1.2 (RFC 5289).
  case ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = 0xC02B
  /// TLS 1.2 (RFC 5289).
  case ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 = 0xC02C
  /// TLS 1.2 (RFC 5289).
  case ECDHE_RSA_WITH_AES_128_GCM_SHA256 = 0xC02F
  /// TLS 1.2 (RFC 5289).
  case ECDHE_RSA_WITH_AES_256_GCM_SHA384 = 0xC030
  /// TLS 1.2 (RFC 7905).
  case ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA8
  /// TLS 1.2 (RFC 7905).
  case ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA9

  /// Finds a cipher suite by its name in the RFCs.
  ///
  /// - Returns: `nil` if there is no case for the name.
  init?(standardName: String) {
    guard let suite = Self.allCases.first(where: { "TLS_\($0)" == standardName }) else { return nil }
    self = suite
  }
}
