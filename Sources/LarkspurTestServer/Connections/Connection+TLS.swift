extension Connection {
  /// Does the TLS handshake and records it.
  ///
  /// - Returns: `.over` if the handshake has failed; the connection is closed then.
  func secure(_ wire: Wire, _ fault: TLSLayer.Fault = .init()) -> Outcome {
    guard let tls = core.tls, let session = TLSSession(tls.context) else {
      fail("TLS could not be started")
      wire.close()
      return .over
    }
    let layer = TLSLayer(session, depth: wire.layerCount, recordBytesMax: tls.options.recordBytesMax)
    var handshake = TestServer.Handshake(connection: number)
    do throws(Wire.Failure) {
      try wire.secure(layer, fault)
      layer.describe(&handshake)
      let recordNumber = core.record(handshake)
      let (core, described) = (core, handshake)
      layer.changed = { layer in
        var handshake = described
        layer.describeProgress(&handshake)
        core.amendHandshake(recordNumber, with: handshake)
      }
      return .open
    } catch {
      layer.describe(&handshake)
      handshake.failure = message(error, handshake)
      core.record(handshake)
      // Waits for the peer's close, so that a reset cannot overtake the alert that the client should read.
      wire.closeAfterPeer()
      return .over
    }
  }

  private func message(_ failure: Wire.Failure, _ handshake: TestServer.Handshake) -> String {
    if let alert = handshake.alertsReceived.last(where: \.isFatal) { return "the client sent \(alert)" }
    if core.isStopping { return "the server was stopped" }
    return switch failure {
    case .ended, .closed: "the connection ended"
    case .broken(let error): "the connection broke: \(error)"
    case .insecure(let message): message
    }
  }
}
