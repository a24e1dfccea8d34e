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
  /// Without effect: Darwin has an older and a newer loader to choose from, and Larkspur has one.
  public var usesClassicLoadingMode: Bool {
    get { storage.usesClassicLoadingMode }
    set { storage.usesClassicLoadingMode = newValue }
  }

  /// Without effect: no request is sent as early data (RFC 8446 2.3), which an attacker could send again. A resumed TLS
  /// session saves the verification of the certificates, and no round trip.
  public var enablesEarlyData: Bool {
    get { storage.enablesEarlyData }
    set { storage.enablesEarlyData = newValue }
  }
}
