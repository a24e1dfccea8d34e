extension TestServer {
  /// The server's answer to the opening handshake of a WebSocket (RFC 6455, section 4.2.2).
  ///
  /// ```swift
  /// server.webSocket("/chat", [.echo], answer: .init(subprotocols: ["chat.v2", "chat.v1"], deflate: .init()))
  /// server.webSocket("/wrong", [.step(.expectClose)], answer: .init(faults: [.wrongAccept]))
  /// ```
  public struct WebSocketAnswer: Hashable, Sendable {
    /// The subprotocols that the server supports, the preferred one first. The server chooses the first one that the
    /// client offers, or none.
    public var subprotocols: [String]
    /// The parameters of permessage-deflate (RFC 7692) to agree on if the client offers it, or `nil` to decline.
    public var deflate: WebSocketDeflate?
    /// Further fields of the response, such as `Set-Cookie`.
    public var fields: Fields
    /// Changes that make the response wrong, applied in order.
    public var faults: [WebSocketFault]

    /// Creates an answer. By default it accepts the WebSocket, without a subprotocol or compression.
    public init(
      subprotocols: [String] = [], deflate: WebSocketDeflate? = nil, fields: Fields = [:], faults: [WebSocketFault] = []
    ) {
      self.subprotocols = subprotocols
      self.deflate = deflate
      self.fields = fields
      self.faults = faults
    }
  }

  /// A change to the response that accepts a WebSocket.
  public enum WebSocketFault: Hashable, Sendable {
    /// Another status in place of 101, such as 200 or 401. The other fields stay, and `Content-Length: 0` is added.
    case status(Int)
    /// A `Sec-WebSocket-Accept` that belongs to another key.
    case wrongAccept
    /// Leaves out all fields of a name, such as `Upgrade`.
    case omit(String)
    /// Replaces all fields of a name, or adds the field: a subprotocol or an extension that was not offered.
    case replace(String, with: String)
    /// Adds a field, even if a field of that name exists.
    case add(String, String)
  }

  /// The parameters of permessage-deflate (RFC 7692, section 7.1).
  ///
  /// As the server's wish they are lowered to the limits of the client's offer; the agreed ones are in
  /// ``WebSocket/deflate``. A wish for a smaller client window is dropped if the client does not offer
  /// `client_max_window_bits`.
  public struct WebSocketDeflate: Hashable, Sendable {
    /// The base-2 logarithm of the client's window, from 8 to 15.
    public var clientWindowBits: Int
    /// The base-2 logarithm of the server's window, from 8 to 15.
    public var serverWindowBits: Int
    /// Whether the client's messages may refer back to the messages before them.
    public var clientTakesOver: Bool
    /// Whether the server's messages refer back to the messages before them.
    public var serverTakesOver: Bool

    /// Creates the parameters. A window outside of 8 to 15 becomes the nearest one inside.
    public init(
      clientWindowBits: Int = 15, serverWindowBits: Int = 15, clientTakesOver: Bool = true, serverTakesOver: Bool = true
    ) {
      self.clientWindowBits = min(max(clientWindowBits, 8), 15)
      self.serverWindowBits = min(max(serverWindowBits, 8), 15)
      self.clientTakesOver = clientTakesOver
      self.serverTakesOver = serverTakesOver
    }
  }
}
