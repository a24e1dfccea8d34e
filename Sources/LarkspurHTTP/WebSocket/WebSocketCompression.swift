/// The agreed parameters of permessage-deflate (RFC 7692 7.1).
package struct WebSocketCompression: Hashable, Sendable {
  /// The base-2 logarithm of the LZ77 window with which the client compresses, in 8...15. The window may be as small as
  /// 256 bytes, with which zlib cannot compress; a client without another compressor then sends messages uncompressed
  /// (RFC 7692 6: each message may be).
  package var clientWindowBits: Int
  /// The base-2 logarithm of the LZ77 window with which the server compresses, in 8...15.
  package var serverWindowBits: Int
  /// Whether the client keeps its window from one message to the next.
  package var clientTakesOver: Bool
  /// Whether the server keeps its window from one message to the next.
  package var serverTakesOver: Bool

  package init(
    clientWindowBits: Int = 15, serverWindowBits: Int = 15, clientTakesOver: Bool = true, serverTakesOver: Bool = true
  ) {
    self.clientWindowBits = clientWindowBits
    self.serverWindowBits = serverWindowBits
    self.clientTakesOver = clientTakesOver
    self.serverTakesOver = serverTakesOver
  }

  /// The registered name of the extension (RFC 7692 7).
  package static let name = "permessage-deflate"

  /// A client's offer. RFC 7692 7.1.2.2: without `client_max_window_bits` the server could not ask for a small window.
  static let offer = "\(name); client_max_window_bits"

  /// The element of a server's `Sec-WebSocket-Extensions` that agrees on these parameters.
  package var response: String {
    var text = Self.name
    if !serverTakesOver { text += "; server_no_context_takeover" }
    if !clientTakesOver { text += "; client_no_context_takeover" }
    if serverWindowBits < 15 { text += "; server_max_window_bits=\(serverWindowBits)" }
    if clientWindowBits < 15 { text += "; client_max_window_bits=\(clientWindowBits)" }
    return text
  }

  /// Reads the server's response to the offer (RFC 7692 7.1).
  ///
  /// - Throws: The reason for which the client must fail the connection (RFC 7692 7).
  init(response: WebSocketExtension) throws(WebSocketHandshakeError) {
    self.init()
    try read(response, isOffer: false)
  }

  /// Reads a client's offer. `client_max_window_bits` without a value leaves the window to the server.
  ///
  /// - Throws: The reason for which the server must decline the offer (RFC 7692 7).
  package init(offer: WebSocketExtension) throws(WebSocketHandshakeError) {
    self.init()
    try read(offer, isOffer: true)
  }

  private mutating func read(_ element: WebSocketExtension, isOffer: Bool) throws(WebSocketHandshakeError) {
    var seen: Set<String> = []
    for parameter in element.parameters {
      let (name, value) = (parameter.name, parameter.value)
      switch name {
      // A server may demand both of these although the client did not ask for them (RFC 7692 7.1.1).
      case "server_no_context_takeover", "client_no_context_takeover":
        guard value == nil else { throw .parameterInvalid(name: name, value: value) }
        if name == "server_no_context_takeover" { serverTakesOver = false } else { clientTakesOver = false }
      case "server_max_window_bits": serverWindowBits = try Self.windowBits(name, value)
      case "client_max_window_bits":
        if !isOffer || value != nil { clientWindowBits = try Self.windowBits(name, value) }
      default: throw .parameterUnknown(name)
      }
      guard seen.insert(name).inserted else { throw .parameterRepeated(name) }
    }
  }

  /// Reads a number from 8 to 15 without leading zeros (RFC 7692 7.1.2).
  private static func windowBits(_ name: String, _ value: String?) throws(WebSocketHandshakeError) -> Int {
    switch value {
    case "8": 8
    case "9": 9
    case "10": 10
    case "11": 11
    case "12": 12
    case "13": 13
    case "14": 14
    case "15": 15
    default: throw .parameterInvalid(name: name, value: value)
    }
  }
}
