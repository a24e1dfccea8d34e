/// A connection that has been handed over to another protocol. Its socket is closed when the tunnel is released, unless
/// `handOver` has given it away.
public final class Tunnel {
  public let channel: Channel
  /// TLS between the other protocol and the channel, if there is any.
  var tls: Confined<TLSLayer>?
  /// The other protocol's first bytes, which the server has sent right behind the head.
  public let received: [UInt8]
  private var isHandedOver = false

  init(channel: Channel, tls: consuming Confined<TLSLayer>?, received: [UInt8]) {
    self.channel = channel
    self.tls = tls
    self.received = received
  }

  /// Gives the channel away, and TLS with it. The caller closes the channel from then on.
  func handOver(_ layer: inout Confined<TLSLayer>?) -> Channel {
    isHandedOver = true
    swap(&layer, &tls)
    return channel
  }

  deinit {
    if !isHandedOver { channel.abandon() }
  }
}
