/// A TLS version that Larkspur supports.
public enum TLSVersion: Int, Hashable, Sendable, Comparable, CaseIterable {
  /// TLS 1.2 (RFC 5246).
  case tls12 = 0x0303
  /// TLS 1.3 (RFC 8446).
  case tls13 = 0x0304

  public static func < (left: TLSVersion, right: TLSVersion) -> Bool { left.rawValue < right.rawValue }
}

extension TLSVersion: CustomStringConvertible {
  public var description: String {
    switch self {
    case .tls12: "TLS 1.2"
    case .tls13: "TLS 1.3"
    }
  }
}
