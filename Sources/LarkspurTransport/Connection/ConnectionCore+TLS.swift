import LarkspurHTTP
import LarkspurIO
import LarkspurTLS

/// The handshake, step by step.
extension ConnectionCore {
  enum HandshakeStep {
    case done(Handshake)
    case wait(Channel, reading: Bool, writing: Bool)
    case wantsTrust(Trust)
    case wantsIdentity(issuers: [String])
  }

  /// Puts TLS between the connection and its channel.
  mutating func secure(_ engine: consuming TLSEngine) {
    tls = TLSLayer(engine, on: loop)
    isSecured = true
  }

  mutating func pollHandshake() throws(TransportError) -> HandshakeStep {
    guard let channel else { throw .connectionClosed }
    do throws(TLSLayer.Failure) {
      switch try tls?.handshake(over: channel) {
      case .done(let handshake):
        note(.secured(handshake))
        return .done(handshake)
      case .wait(let reading, let writing): return .wait(channel, reading: reading, writing: writing)
      case .wantsTrust(let trust): return .wantsTrust(trust)
      case .wantsIdentity(let issuers): return .wantsIdentity(issuers: issuers)
      case nil: throw TLSLayer.Failure.tls(TLSError(.connectionLost))
      }
    } catch {
      switch error {
      case .tls(let error): throw .tls(error)
      case .kernel(let error): throw .connectionLost(.securing, error)
      }
    }
  }

  mutating func decide(_ decision: TrustDecision) { tls?.decide(decision) }

  mutating func takePinMismatches() -> [PinMismatch] { tls?.takePinMismatches() ?? [] }

  mutating func identify(_ identity: ClientIdentity?) throws(TransportError) {
    do throws(TLSError) {
      try tls?.identify(identity)
    } catch {
      throw .tls(error)
    }
  }
}
