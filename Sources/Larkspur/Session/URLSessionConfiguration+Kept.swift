/// What other platforms have, and what has no effect on this one: each value is kept as it is set.
extension URLSessionConfiguration {
  /// How several interfaces would share a connection's traffic (RFC 8684).
  public enum MultipathServiceType: Int, Sendable {
    /// One interface.
    case none = 0
    /// Another one when the first fails.
    case handover = 1
    /// The one with the shortest delay.
    case interactive = 2
    /// All of them at once.
    case aggregate = 3
  }

  /// Without effect: connections go over TCP, one path each.
  public var multipathServiceType: MultipathServiceType {
    get { storage.multipathServiceType }
    set { storage.multipathServiceType = newValue }
  }

  /// Without effect: see ``URLRequest/requiresDNSSECValidation``.
  public var requiresDNSSECValidation: Bool {
    get { storage.requiresDNSSECValidation }
    set { storage.requiresDNSSECValidation = newValue }
  }
}
