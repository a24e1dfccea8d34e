import LarkspurTLS

/// Versions of TLS, by the numbers of the protocol. Larkspur speaks 1.2 and 1.3.
public enum tls_protocol_version_t: UInt16, Sendable {
  case TLSv10 = 0x0301
  case TLSv11 = 0x0302
  case TLSv12 = 0x0303
  case TLSv13 = 0x0304
  case DTLSv10 = 0xFEFF
  case DTLSv12 = 0xFEFD

  /// What a limit of this version comes to.
  var version: TLSVersion { self == .TLSv13 ? .tls13 : .tls12 }
}

/// Cipher suites, by their numbers in IANA's registry.
public enum tls_ciphersuite_t: UInt16, Sendable, CaseIterable {
  case AES_128_GCM_SHA256 = 0x1301
  case AES_256_GCM_SHA384 = 0x1302
  case CHACHA20_POLY1305_SHA256 = 0x1303
  case RSA_WITH_3DES_EDE_CBC_SHA = 0x000A
  case RSA_WITH_AES_128_CBC_SHA = 0x002F
  case RSA_WITH_AES_256_CBC_SHA = 0x0035
  case RSA_WITH_AES_128_GCM_SHA256 = 0x009C
  case RSA_WITH_AES_256_GCM_SHA384 = 0x009D
  case RSA_WITH_AES_128_CBC_SHA256 = 0x003C
  case RSA_WITH_AES_256_CBC_SHA256 = 0x003D
  case ECDHE_ECDSA_WITH_3DES_EDE_CBC_SHA = 0xC008
  case ECDHE_ECDSA_WITH_AES_128_CBC_SHA = 0xC009
  case ECDHE_ECDSA_WITH_AES_256_CBC_SHA = 0xC00A
  case ECDHE_RSA_WITH_3DES_EDE_CBC_SHA = 0xC012
  case ECDHE_RSA_WITH_AES_128_CBC_SHA = 0xC013
  case ECDHE_RSA_WITH_AES_256_CBC_SHA = 0xC014
  case ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 = 0xC023
  case ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 = 0xC024
  case ECDHE_RSA_WITH_AES_128_CBC_SHA256 = 0xC027
  case ECDHE_RSA_WITH_AES_256_CBC_SHA384 = 0xC028
  case ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 = 0xC02B
  case ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 = 0xC02C
  case ECDHE_RSA_WITH_AES_128_GCM_SHA256 = 0xC02F
  case ECDHE_RSA_WITH_AES_256_GCM_SHA384 = 0xC030
  case ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA8
  case ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 = 0xCCA9

  /// By the name that the RFCs give it. Nil: there is no case for it.
  init?(standardName: String) {
    guard let suite = Self.allCases.first(where: { "TLS_\($0)" == standardName }) else { return nil }
    self = suite
  }
}
