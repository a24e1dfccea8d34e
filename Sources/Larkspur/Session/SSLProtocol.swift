/// The versions of TLS by the older names of Darwin's Security framework, with its numbers. Larkspur speaks TLS 1.2 and
/// 1.3; as a limit, each other version counts as one of these two: see
/// ``URLSessionConfiguration/tlsMinimumSupportedProtocol``.
public enum SSLProtocol: Int32, Sendable {
  /// No version. As a limit: Larkspur's default.
  case sslProtocolUnknown = 0
  /// SSL 2.0, not supported.
  case sslProtocol2 = 1
  /// SSL 3.0 (RFC 6101), not supported.
  case sslProtocol3 = 2
  /// SSL 3.0 and no other version, not supported.
  case sslProtocol3Only = 3
  /// TLS 1.0 (RFC 2246), not supported.
  case tlsProtocol1 = 4
  /// TLS 1.0 and no other version, not supported.
  case tlsProtocol1Only = 5
  /// All versions. As a limit: Larkspur's default.
  case sslProtocolAll = 6
  /// TLS 1.1 (RFC 4346), not supported.
  case tlsProtocol11 = 7
  /// TLS 1.2 (RFC 5246).
  case tlsProtocol12 = 8
  /// DTLS 1.0 (RFC 4347), for datagrams; not supported.
  case dtlsProtocol1 = 9
  /// TLS 1.3 (RFC 8446).
  case tlsProtocol13 = 10
  /// DTLS 1.2 (RFC 6347), for datagrams; not supported.
  case dtlsProtocol12 = 11
  /// The latest supported version.
  case tlsProtocolMaxSupported = 999

  init(_ version: tls_protocol_version_t) {
    self =
      switch version {
      case .TLSv10: .tlsProtocol1
      case .TLSv11: .tlsProtocol11
      case .TLSv12: .tlsProtocol12
      case .TLSv13: .tlsProtocol13
      case .DTLSv10: .dtlsProtocol1
      case .DTLSv12: .dtlsProtocol12
      }
  }

  /// Returns the version as a limit.
  ///
  /// - Parameter standard: The limit for the values that name no version.
  fileprivate func version(otherwise standard: tls_protocol_version_t) -> tls_protocol_version_t {
    switch self {
    case .sslProtocolUnknown, .sslProtocolAll: standard
    case .sslProtocol2, .sslProtocol3, .sslProtocol3Only, .tlsProtocol1, .tlsProtocol1Only: .TLSv10
    case .tlsProtocol11: .TLSv11
    case .tlsProtocol12: .TLSv12
    case .tlsProtocol13, .tlsProtocolMaxSupported: .TLSv13
    case .dtlsProtocol1: .DTLSv10
    case .dtlsProtocol12: .DTLSv12
    }
  }
}

extension URLSessionConfiguration {
  /// The older form of ``tlsMinimumSupportedProtocolVersion``; the two properties are one setting. Versions before TLS
  /// 1.2, and values that name no version, count as TLS 1.2.
  public var tlsMinimumSupportedProtocol: SSLProtocol {
    get { SSLProtocol(tlsMinimumSupportedProtocolVersion) }
    set { tlsMinimumSupportedProtocolVersion = newValue.version(otherwise: .TLSv12) }
  }

  /// The older form of ``tlsMaximumSupportedProtocolVersion``; the two properties are one setting. Versions before TLS
  /// 1.2 count as TLS 1.2, and values that name no version as TLS 1.3.
  public var tlsMaximumSupportedProtocol: SSLProtocol {
    get { SSLProtocol(tlsMaximumSupportedProtocolVersion) }
    set { tlsMaximumSupportedProtocolVersion = newValue.version(otherwise: .TLSv13) }
  }
}
