import LarkspurTLS

/// A version of TLS, by Darwin's names. Foundation on Linux does not have it.
public enum tls_protocol_version_t: UInt16, Hashable, Sendable {
  /// Broken, and not spoken here.
  case TLSv10 = 0x0301
  /// Broken, and not spoken here.
  case TLSv11 = 0x0302
  /// RFC 5246.
  case TLSv12 = 0x0303
  /// RFC 8446.
  case TLSv13 = 0x0304
  /// TLS over datagrams, which HTTP/1.1 does not use.
  case DTLSv10 = 0xfeff
  /// TLS over datagrams, which HTTP/1.1 does not use.
  case DTLSv12 = 0xfefd
}

extension tls_protocol_version_t {
  /// The nearest version that is spoken: nothing is below TLS 1.2.
  var version: TLSVersion { self == .TLSv13 ? .tls13 : .tls12 }
}
