import LarkspurBytes
import LarkspurIO
import LarkspurTLS

/// The TLS layer with a proxy, through which another TLS layer reaches a server. The ciphertext of the inner layer is
/// the plaintext of this one.
///
/// A class, because a `TLSLayer` cannot hold another `TLSLayer`.
final class OuterTLS {
  private let layer: LoopBound<TLSLayer>
  /// Ciphertext of the inner layer that this layer has not encrypted yet. No more is accepted until it is gone.
  private var queue = ByteQueue()

  init(_ layer: consuming LoopBound<TLSLayer>) {
    self.layer = layer
  }

  /// Whether something may be read without a receive.
  var hasInput: Bool { layer.state.hasInput }

  /// Whether something has not been sent yet.
  var isSending: Bool { !queue.isEmpty || layer.state.sendingState.hasOutput }
  /// Whether this layer accepts no plaintext before it has received something.
  var waitsForInput: Bool { layer.state.sendingState.waitsForInput }
  /// Whether a send could make progress.
  var hasOutput: Bool { layer.state.sendingState.hasOutput || !queue.isEmpty && !waitsForInput }

  func receive(from channel: Channel, into chunk: inout Chunk) throws(TLSLayer.Failure) -> ClientSocket.Received {
    do throws(TLSLayer.Failure) {
      return try layer.state.receive(from: channel, into: &chunk)
    } catch {
      // The inner TLS layer checks for its own `close_notify`.
      guard case .tls(let error) = error, error.problem == .truncated else { throw error }
      return .endOfStream
    }
  }

  /// Sends as many of the earlier bytes and of the chunk as the kernel takes.
  ///
  /// - Returns: `true` if nothing is left of either.
  func send(_ chunk: inout Chunk, to channel: Channel) throws(TLSLayer.Failure) -> Bool {
    while true {
      if queue.isEmpty, chunk.count > 0 {
        var bytes: [UInt8] = []
        bytes.append(copying: chunk.bytes)
        queue.append(bytes)
        chunk.drop(chunk.count)
      }
      guard try layer.state.send(&queue, to: channel) else { return false }
      if chunk.count == 0 { return true }
    }
  }

  /// Drops the bytes that have not been encrypted.
  func stopSending() { queue.removeAll() }

  func close(over channel: Channel, inOrder: Bool) {
    layer.state.close(over: channel, inOrder: inOrder && queue.isEmpty)
  }
}
