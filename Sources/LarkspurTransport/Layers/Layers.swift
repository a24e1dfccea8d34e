import LarkspurBytes
import LarkspurIO
import LarkspurTLS

/// The layers between HTTP and the socket: nothing, or TLS.
///
///     plain -> secured -> closed
///     plain -> closed
///
/// The handshake belongs to `secured`. So does TLS through TLS with a proxy: a `TLSLayer` holds the outer layer.
enum Layers: ~Copyable {
  case plain
  /// TLS, from the beginning of its handshake on. Performance: held by reference, because most connections have no TLS
  /// and reserve no memory for it.
  case secured(LoopBound<TLSLayer>)
  /// The connection is closed, or its socket has been given away. Nothing is sent or received any more, so the bytes of
  /// a secured connection never leave without TLS.
  case closed

  /// Ends the use of the layers here, and returns them.
  mutating func take() -> Layers {
    var layers = Layers.closed
    swap(&layers, &self)
    return layers
  }

  /// Whether bytes pass unchanged, so that the kernel can move them by itself (`splice`, `sendfile`).
  var isPlain: Bool {
    switch self {
    case .plain: true
    default: false
    }
  }

  // MARK: - Handshake

  func handshake(over channel: Channel) throws(TLSLayer.Failure) -> TLSLayer.HandshakeStep {
    switch self {
    case .secured(let tls): return try tls.state.handshake(over: channel)
    default: throw .tls(TLSError(.connectionLost))
    }
  }

  func decide(_ decision: TrustDecision) {
    switch self {
    case .secured(let tls): tls.state.decide(decision)
    default: break
    }
  }

  func identify(_ identity: ClientIdentity?) throws(TLSError) {
    switch self {
    case .secured(let tls): try tls.state.identify(identity)
    default: break
    }
  }

  func takePinMismatches() -> [PinMismatch] {
    switch self {
    case .secured(let tls): tls.state.takePinMismatches()
    default: []
    }
  }

  // MARK: - Receiving

  /// Whether something may be read without a receive.
  var hasInput: Bool {
    switch self {
    case .secured(let tls): tls.state.hasInput
    default: false
    }
  }

  /// Receives once, and appends plaintext to `chunk`.
  @inline(__always)
  func receive(from channel: Channel, into chunk: inout Chunk) throws(TLSLayer.Failure) -> ClientSocket.Received {
    switch self {
    case .plain:
      do throws(Errno) {
        return try channel.receive(into: &chunk)
      } catch {
        throw .kernel(error)
      }
    case .secured(let tls): return try tls.state.receive(from: channel, into: &chunk)
    case .closed: throw .kernel(.notConnected)
    }
  }

  // MARK: - Sending

  /// Whether TLS has something to send, and whether TLS accepts no plaintext before it has received something.
  var sendingState: (hasOutput: Bool, waitsForInput: Bool) {
    switch self {
    case .secured(let tls): tls.state.sendingState
    default: (false, false)
    }
  }

  /// A counter that changes whenever TLS may have handed bytes to the kernel, or `nil` without TLS.
  var secureSends: Int? {
    switch self {
    case .secured(let tls): tls.state.sends
    default: nil
    }
  }

  /// Sends the queue as far as the kernel takes it.
  ///
  /// - Returns: Whether all of the queue has been sent.
  @inline(__always)
  func send(_ queue: inout ByteQueue, to channel: Channel) throws(TLSLayer.Failure) -> Bool {
    switch self {
    case .plain:
      do throws(Errno) {
        return try channel.send(&queue)
      } catch {
        throw .kernel(error)
      }
    case .secured(let tls): return try tls.state.send(&queue, to: channel)
    case .closed: throw .kernel(.notConnected)
    }
  }

  /// Sends not much more than `limit` bytes of the queue.
  ///
  /// - Returns: Whether all of the queue has been sent.
  func send(_ queue: inout ByteQueue, to channel: Channel, atMost limit: Int) throws(TLSLayer.Failure) -> Bool {
    switch self {
    case .plain:
      do throws(Errno) {
        return try channel.send(&queue, atMost: limit)
      } catch {
        throw .kernel(error)
      }
    case .secured(let tls): return try tls.state.send(&queue, to: channel, atMost: limit)
    case .closed: throw .kernel(.notConnected)
    }
  }

  /// Drops what TLS has encrypted and not sent, and sends nothing more.
  func stopSending() {
    switch self {
    case .secured(let tls): tls.state.stopSending()
    default: break
    }
  }

  /// Queues `close_notify` with TLS. Receiving continues.
  func endSending(to channel: Channel) {
    switch self {
    case .secured(let tls): tls.state.endSending(to: channel)
    default: break
    }
  }

  /// Sends `close_notify` if the kernel takes it at once, and releases the layers.
  ///
  /// - Parameter inOrder: Whether bytes that are encrypted already are sent before it.
  mutating func close(over channel: Channel, inOrder: Bool) {
    switch take() {
    case .secured(let tls): tls.state.close(over: channel, inOrder: inOrder)
    default: break
    }
  }
}
