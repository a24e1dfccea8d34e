/// The name of a certificate authority whose certificates a server accepts.
public struct DistinguishedName: Hashable, Sendable {
  /// The name as text (RFC 2253).
  public let text: String
  public let der: [UInt8]
}

extension DistinguishedName: CustomStringConvertible {
  public var description: String { text }
}
