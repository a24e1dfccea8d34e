import LarkspurBytes
import LarkspurIO
import LarkspurTLS

/// The TLS handshake.
extension ConnectionCore {
  enum HandshakeStep {
    case done(Handshake)
    case wait(Channel, reading: Bool, writing: Bool)
    case needsTrust(Trust)
    case needsIdentity(issuers: [DistinguishedName])
  }

  /// Puts TLS between the connection and its channel. A TLS layer that exists already (the one with a proxy) becomes
  /// the outer layer, and received bytes become input of the new one.
  mutating func secure(_ engine: consuming TLSEngine) {
    var received = Chunk()
    swap(&received, &input)
    let outer: OuterTLS?
    switch layers.take() {
    case .secured(let tls): outer = OuterTLS(tls)
    default: outer = nil
    }
    layers = .secured(LoopBound(TLSLayer(engine, on: loop, through: outer, received: received)))
  }

  mutating func pollHandshake() throws(TransportError) -> HandshakeStep {
    guard let channel else { throw .connectionClosed }
    do throws(TLSLayer.Failure) {
      switch try layers.handshake(over: channel) {
      case .done(let handshake):
        note(.secured(handshake))
        return .done(handshake)
      case .wait(let reading, let writing): return .wait(channel, reading: reading, writing: writing)
      case .needsTrust(let trust): return .needsTrust(trust)
      case .needsIdentity(let issuers): return .needsIdentity(issuers: issuers)
      }
    } catch {
      switch error {
      case .tls(let error): throw .tls(error)
      case .kernel(let error): throw .connectionLost(.securing, error)
      }
    }
  }

  /// Whether the handshake has something left to send.
  var hasUnsentFlight: Bool { layers.sendingState.hasOutput }

  /// Sends the last flight of the handshake as far as the kernel takes it. The rest leaves with the first request, and
  /// an error is found there.
  mutating func sendLastFlight() {
    if let channel, !layers.isPlain, exchangeNumber == 0, output.isEmpty {
      _ = try? layers.send(&output, to: channel)
    }
  }

  mutating func decide(_ decision: TrustDecision) { layers.decide(decision) }

  mutating func takePinMismatches() -> [PinMismatch] { layers.takePinMismatches() }

  mutating func identify(_ identity: ClientIdentity?) throws(TransportError) {
    do throws(TLSError) {
      try layers.identify(identity)
    } catch {
      throw .tls(error)
    }
  }
}
