extension TLSLayer {
  /// Unusual actions of a server.
  enum Oddity {
    case record(type: UInt8, [UInt8])
    case keyUpdate(isRequested: Bool)
    case ticket
    case renegotiation
  }

  /// Does an unusual action. Throws `.insecure` if the action is not possible on this connection.
  func perform(_ oddity: Oddity, on wire: Wire) throws(Wire.Failure) {
    if hasSentCloseNotify { throw .closed }
    let outcome =
      switch oddity {
      case .record(let type, let bytes): session.forgeRecord(type: type, bytes)
      case .keyUpdate(let isRequested): session.updateKey(isUpdateRequested: isRequested)
      case .ticket: session.sendTicket()
      case .renegotiation: session.requestRenegotiation()
      }
    if case .failed(let message) = outcome { throw .insecure(message) }
    try flush(to: wire)
  }
}
