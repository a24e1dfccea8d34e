import LarkspurHTTP
import Testing

@Suite struct WebSocketCompressionTests {
  static func offer(_ parameters: String) throws -> WebSocketCompression {
    let element = try #require(WebSocketExtension.list("permessage-deflate; " + parameters)?.first)
    return try WebSocketCompression(offer: element)
  }

  /// The response's parameters are checked through a handshake.
  static func response(_ parameters: String) throws -> WebSocketCompression? {
    let fields = WebSocketHandshakeTests.with("Sec-WebSocket-Extensions", ["permessage-deflate; " + parameters])
    return try WebSocketHandshakeTests.check(fields).compression
  }

  /// RFC 7692 7.1.2: 8 to 15, without leading zeros.
  @Test func windowBits() throws {
    for bits in 8...15 {
      #expect(
        try Self.response("server_max_window_bits=\(bits); client_max_window_bits=\"\(bits)\"")
          == WebSocketCompression(clientWindowBits: bits, serverWindowBits: bits))
    }
    for value in ["7", "16", "0", "08", "8x", "-8", "1", "99999999999999999999"] {
      for name in ["server_max_window_bits", "client_max_window_bits"] {
        let error = WebSocketHandshakeError.parameterInvalid(name: name, value: value)
        #expect(throws: error) { try Self.response("\(name)=\(value)") }
        #expect(throws: error) { try Self.offer("\(name)=\(value)") }
      }
    }
  }

  @Test func withoutValues() throws {
    for name in ["server_max_window_bits", "client_max_window_bits"] {
      #expect(throws: WebSocketHandshakeError.parameterInvalid(name: name, value: nil)) { try Self.response(name) }
    }
    // RFC 7692 7.1.2.2: only in an offer, and only for the client's window, the value may be missing.
    #expect(try Self.offer("client_max_window_bits") == WebSocketCompression())
    for name in ["server_no_context_takeover", "client_no_context_takeover"] {
      #expect(throws: WebSocketHandshakeError.parameterInvalid(name: name, value: "1")) {
        try Self.response("\(name)=1")
      }
    }
  }

  @Test func takeover() throws {
    #expect(try Self.response("server_no_context_takeover") == WebSocketCompression(serverTakesOver: false))
    #expect(try Self.response("client_no_context_takeover") == WebSocketCompression(clientTakesOver: false))
  }

  @Test(arguments: [
    "server_no_context_takeover", "client_no_context_takeover", "server_max_window_bits=9", "client_max_window_bits=9",
  ])
  func repeated(parameter: String) throws {
    let name = String(try #require(parameter.split(separator: "=").first))
    #expect(throws: WebSocketHandshakeError.parameterRepeated(name)) {
      try Self.response("\(parameter); \(parameter)")
    }
  }

  @Test func unknown() {
    #expect(throws: WebSocketHandshakeError.parameterUnknown("Server_no_context_takeover")) {
      try Self.response("Server_no_context_takeover")
    }
  }
}
