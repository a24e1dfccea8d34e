extension NSURLRequest.NetworkServiceType {
  /// The traffic class of the packets: the code point of the service class (RFC 4594, table 3) in the upper six bits.
  /// Linux and its network cards also choose their queues by it.
  var trafficClass: UInt8 {
    let codePoint: UInt8 =
      switch self {
      case .default: 0
      // Telephony: EF.
      case .voip, .voice: 46
      // Signaling: CS5.
      case .networkServiceTypeCallSignaling: 40
      // Multimedia conferencing: AF41.
      case .video: 34
      // Low-priority data: CS1.
      case .background: 8
      }
    return codePoint << 2
  }
}
