import LarkspurHTTP

/// The URL of a WebSocket.
package enum SocketURL {
  /// Parses a URL of the command line. `ws://` is assumed if the text has no scheme.
  ///
  /// - Returns: The URL of the opening handshake: a WebSocket opens by HTTP, on the ports of HTTP (RFC 6455 3).
  package static func parse(_ text: String) throws(CommandFailure) -> RequestURL {
    let scheme = String(decoding: text.utf8.prefix(while: ASCII.isSchemeCharacter), as: UTF8.self)
    let rest = Substring(text.utf8.dropFirst(scheme.utf8.count))
    let whole: String
    switch scheme.lowercased() {
    case "ws" where rest.hasPrefix("://"): whole = "http\(rest)"
    case "wss" where rest.hasPrefix("://"): whole = "https\(rest)"
    case "ws" where rest.hasPrefix(":"), "wss" where rest.hasPrefix(":"):
      throw CommandFailure(
        .malformedURL, "\(RequestURL.redacted(text).debugDescription): two slashes are missing after \(scheme):")
    case _ where rest.hasPrefix("://") && !scheme.isEmpty:
      throw CommandFailure(.unsupportedProtocol, "\(scheme):// is not supported: only ws:// and wss:// are")
    case _ where rest.hasPrefix("://"): whole = text
    default: whole = "http://" + text
    }
    return try RequestURL.parse(whole, given: text)
  }

  /// Returns the `ws` or `wss` URL whose opening handshake has this URL.
  package static func uri(of target: RequestURL) -> String { "ws\(target.uri.dropFirst(4))" }
}
