/// The ways in which several interfaces share a connection's traffic (RFC 8684). The kernel decides about the paths: all
/// but `none` have one effect.
public enum URLSessionMultipathServiceType: Int, Sendable {
  /// Uses one interface.
  case none = 0
  /// Uses another interface when the first one fails.
  case handover = 1
  /// Uses the interface with the shortest delay.
  case interactive = 2
  /// Uses all interfaces at once.
  case aggregate = 3
}

/// Properties of other platforms that have no effect on Linux. Each value is kept.
extension URLSessionConfiguration {
  /// Whether name resolution requires DNSSEC. No effect: see ``URLRequest/requiresDNSSECValidation``.
  public var requiresDNSSECValidation: Bool {
    get { storage.settings.requiresDNSSECValidation }
    set { storage.settings.requiresDNSSECValidation = newValue }
  }
  /// Whether the older of Darwin's two loaders is used. No effect: Larkspur has one loader.
  public var usesClassicLoadingMode: Bool {
    get { storage.settings.usesClassicLoadingMode }
    set { storage.settings.usesClassicLoadingMode = newValue }
  }

  /// Whether requests may be sent as early data (RFC 8446 2.3). No effect: no request is sent as early data, which an
  /// attacker could replay. A resumed TLS session saves the verification of certificates, and no round trip.
  public var enablesEarlyData: Bool {
    get { storage.settings.enablesEarlyData }
    set { storage.settings.enablesEarlyData = newValue }
  }
}
