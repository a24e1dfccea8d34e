/// A connection that has been handed over to another protocol. Its socket is closed when the tunnel is released, unless
/// `handOver` has given it away.
public final class Tunnel {
  public let channel: Channel
  /// What is between the other protocol and the channel.
  private var layers: Layers
  /// The other protocol's first bytes, which the server has sent right behind the head.
  public let received: [UInt8]
  private var isHandedOver = false

  init(channel: Channel, layers: consuming Layers, received: [UInt8]) {
    self.channel = channel
    self.layers = layers
    self.received = received
  }

  /// Gives away the channel, and returns the layers above it. The caller closes the channel from then on.
  func handOver() -> Layers {
    isHandedOver = true
    return layers.take()
  }

  deinit {
    if !isHandedOver { channel.abandon() }
  }
}
