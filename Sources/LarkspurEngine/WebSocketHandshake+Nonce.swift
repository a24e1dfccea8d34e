import LarkspurHTTP
import LarkspurTLS

extension WebSocketHandshake {
  /// Creates the opening handshake of one request, with a new key.
  ///
  /// - Parameter protocols: The value of the request's `Sec-WebSocket-Protocol`. Empty for none.
  package init(offering protocols: String, offersCompression: Bool) throws(WebSocketHandshakeError) {
    try self.init(
      nonce: (0..<16).map { _ in UInt8.random(in: 0 ... .max) }, protocols: ListMembers.split(protocols),
      offersCompression: offersCompression, sha1: { MessageDigest.of($0, .sha1) })
  }
}
