import LarkspurBytes
import LarkspurIO
import LarkspurTLS

/// The TLS that another TLS goes through: that with a proxy, on the way to a server. The ciphertext of the one within is
/// its plaintext.
///
/// A layer cannot hold one of its own kind by value: it holds this.
final class OuterTLS {
  private let layer: Confined<TLSLayer>
  /// What the layer within has handed over and this one has not encrypted. No more is taken before it is gone.
  private var queue = ByteQueue()

  init(_ layer: consuming Confined<TLSLayer>) {
    self.layer = layer
  }

  /// Whether something may be received without the kernel.
  var hasInput: Bool { layer.state.hasInput }

  /// Whether something has not left, and whether sending it could come to anything.
  var isSending: Bool { !queue.isEmpty || layer.state.sendingState.hasOutput }
  var waitsForInput: Bool { layer.state.sendingState.waitsForInput }
  var hasOutput: Bool { layer.state.sendingState.hasOutput || !queue.isEmpty && !waitsForInput }

  func receive(from channel: Channel, into chunk: inout Chunk) throws(TLSLayer.Failure) -> ClientSocket.Received {
    do throws(TLSLayer.Failure) {
      return try layer.state.receive(from: channel, into: &chunk)
    } catch {
      // The TLS within finds out itself whether its own farewell is missing.
      guard case .tls(let error) = error, error.problem == .truncated else { throw error }
      return .endOfStream
    }
  }

  /// Sends what the kernel takes. True: all of it, and of what was left from before.
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

  /// What has not been encrypted does not leave any more.
  func stopSending() { queue.removeAll() }

  func close(over channel: Channel, inOrder: Bool) {
    layer.state.close(over: channel, inOrder: inOrder && queue.isEmpty)
  }
}
