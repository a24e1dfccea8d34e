/// The URL of a WebSocket.
package enum SocketURL {
  /// Parses a URL of the command line.
  ///
  /// - Returns: The URL of the opening handshake, with an HTTP scheme.
  package static func parse(_ text: String) throws(CommandFailure) -> RequestURL {
    try RequestURL.parse(text, as: .webSocket)
  }

  /// Returns the `ws` or `wss` URL whose opening handshake has this URL.
  package static func uri(of target: RequestURL) -> String { "ws\(target.uri.dropFirst(4))" }
}
