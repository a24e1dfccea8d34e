// Faults of the TCP connection that strike after a number of sent bytes, whatever the bytes are. Over TLS these are
// bytes of ciphertext; after `beforeHandshake` the count starts with the first byte of the connection. A later fault
// replaces an earlier one.

extension TestServer.Step {
  /// Stops sending after `count` more bytes: the connection hangs until the client ends it or the server stops.
  ///
  /// ```swift
  /// server.enqueue([.beforeHandshake, .stall(afterSending: 100), .handshake, .serveRoutes])
  /// ```
  ///
  /// - Parameters:
  ///   - count: The number of bytes.
  ///   - reached: A signal that fires when the connection stalls.
  public static func stall(afterSending count: Int, reached: TestServer.Signal? = nil) -> Self {
    Self(.cut(afterBytes: count, .stall(reached)), "stall(afterSending: \(count))")
  }

  /// Resets the connection after `count` more bytes.
  public static func reset(afterSending count: Int) -> Self {
    Self(.cut(afterBytes: count, .reset), "reset(afterSending: \(count))")
  }

  /// Closes the connection after `count` more bytes, over TLS without close_notify.
  public static func close(afterSending count: Int) -> Self {
    Self(.cut(afterBytes: count, .close), "close(afterSending: \(count))")
  }

  /// Limits each TCP segment, from this step on, to this number of bytes.
  ///
  /// The client's kernel may still join segments that arrive faster than the client reads.
  public static func setSegment(bytes: Int) -> Self { Self(.setSegment(bytes: bytes), "setSegment") }
}
