import LarkspurBytes

/// A connection that has been handed over to another protocol. Releasing the tunnel closes its socket, unless
/// `handOver` has given the socket away.
public final class Tunnel {
  public let channel: Channel
  /// The layers between the other protocol and the channel.
  private var layers: Layers
  /// The other protocol's first bytes, which the server sent right behind the head.
  public let received: [UInt8]
  private var isHandedOver = false

  init(channel: Channel, layers: consuming Layers, received: [UInt8]) {
    self.channel = channel
    self.layers = layers
    self.received = received
  }

  /// Gives away the channel and returns the layers above it. The caller has to close the channel.
  func handOver() -> Layers {
    isHandedOver = true
    return layers.take()
  }

  deinit {
    if !isHandedOver { channel.abandon() }
  }
}

extension Tunnel {
  /// Makes a TLS handshake with a host at the other end. A cancellation of the task ends the handshake, and an error
  /// closes the connection.
  ///
  /// - Returns: The tunnel above TLS.
  public func secured(
    by security: Security, as host: String, port: UInt16, deadline: Deadline = .never
  ) async throws(TransportError) -> Tunnel {
    let server = try Connection.serverName(host)
    let connection = Connection(through: self)
    try await connection.secure(by: security, as: server, port: port, deadline: deadline)
    guard let tunnel = connection.takeStream() else { throw .connectionClosed }
    return tunnel
  }
}
