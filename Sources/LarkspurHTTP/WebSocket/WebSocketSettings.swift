/// Limits and times of a WebSocket conversation.
package struct WebSocketSettings: Hashable, Sendable {
  /// Maximum size of a received message in bytes, after decompression. An uncompressed frame that exceeds the limit
  /// fails the connection before its payload is read.
  package var messageBytesMax: Int
  /// The time for the whole closing handshake, up to the end of the peer's stream.
  package var closeTimeout: Duration
  /// The time without a received byte and without a ping after which the machine sends a ping, or `nil` for no pings.
  /// Intervals below `pingIntervalMin` count as that.
  package var pingInterval: Duration?
  /// The time without any byte from the peer after which a ping without its pong fails the connection, or `nil` for no
  /// limit. Any byte counts, because a pong cannot overtake the frame that the peer is sending.
  package var pongTimeout: Duration?

  /// The shortest interval between pings. Without it, an interval of zero would send pings without end.
  package static let pingIntervalMin = Duration.milliseconds(1)

  package init(
    messageBytesMax: Int = 1 << 20, closeTimeout: Duration = .seconds(10), pingInterval: Duration? = nil,
    pongTimeout: Duration? = nil
  ) {
    self.messageBytesMax = messageBytesMax
    self.closeTimeout = closeTimeout
    self.pingInterval = pingInterval
    self.pongTimeout = pongTimeout
  }
}
