extension NSURLRequest.NetworkServiceType {
  /// How the packets of such traffic are marked: the code point of its service class (RFC 4594, table 3) in the upper six
  /// bits. Linux and its network cards choose their own queues by it as well.
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
