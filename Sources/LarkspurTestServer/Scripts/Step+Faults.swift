// Faults of the TCP connection, which strike when so many bytes of whatever kind have been sent. Over TLS those are bytes
// of ciphertext, and after `beforeHandshake` they are counted from the first one. A later fault replaces an earlier one.

extension TestServer.Step {
  /// From now on, when so many bytes have been sent, nothing more is: the connection hangs until the client gives up or
  /// the server stops.
  ///
  /// ```swift
  /// server.enqueue([.beforeHandshake, .stall(afterSending: 100), .handshake, .serveRoutes])
  /// ```
  ///
  /// - Parameter reached: Fires when it has come to that.
  public static func stall(afterSending count: Int, reached: TestServer.Signal? = nil) -> Self {
    Self(.cut(afterBytes: count, .stall(reached)), "stall(afterSending: \(count))")
  }

  /// From now on, when so many bytes have been sent, the connection is reset.
  public static func reset(afterSending count: Int) -> Self {
    Self(.cut(afterBytes: count, .reset), "reset(afterSending: \(count))")
  }

  /// From now on, when so many bytes have been sent, the connection is closed, over TLS without close_notify.
  public static func close(afterSending count: Int) -> Self {
    Self(.cut(afterBytes: count, .close), "close(afterSending: \(count))")
  }

  /// From now on each TCP segment has so many bytes at most.
  ///
  /// The client's kernel may still join segments that arrive faster than the client reads.
  public static func setSegment(bytes: Int) -> Self { Self(.setSegment(bytes: bytes), "setSegment") }
}
