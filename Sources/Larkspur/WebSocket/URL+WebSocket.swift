import Foundation
import LarkspurHTTP

extension URL {
  /// The HTTP URL of the opening handshake for a `ws` or `wss` URL (RFC 6455 3), or `nil` for another scheme.
  var ofHandshake: URL? { WebSocketHandshake.httpURL(of: absoluteString).flatMap { URL(string: $0) } }

  /// The `ws` or `wss` URL whose opening handshake has this URL. A URL of another scheme stays as it is.
  var ofWebSocket: URL {
    switch scheme?.lowercased() {
    case "http": withScheme("ws") ?? self
    case "https": withScheme("wss") ?? self
    default: self
    }
  }

  private func withScheme(_ scheme: String) -> URL? {
    let text = absoluteString
    return text.firstIndex(of: ":").flatMap { URL(string: scheme + text[$0...]) }
  }
}
