/// The name of an issuer whose certificates a server takes.
public struct DistinguishedName: Hashable, Sendable {
  /// As RFC 2253 writes it.
  public let text: String
  public let der: [UInt8]
}

extension DistinguishedName: CustomStringConvertible {
  public var description: String { text }
}
