extension TestServer {
  /// A WebSocket as the server has seen it: the record of an opening handshake that it answered, and
  /// of all that the client sent.
  ///
  /// Every frame is recorded before a script or a route reacts to it.
  public struct WebSocket: Sendable {
    /// The number of the connection.
    public let connection: Int
    /// The request of the opening handshake.
    public let request: Request
    /// The subprotocol that the server chose, or `nil` if it chose no subprotocol.
    public let subprotocol: String?
    /// The agreed parameters of permessage-deflate, or `nil` if it is not in use.
    public let deflate: WebSocketDeflate?
    /// The number of frames that the client sent.
    public internal(set) var framesReceived = 0
    /// The number of whole messages that the client sent.
    public internal(set) var messagesReceived = 0
    /// The code of the client's Close: 1005 if the Close has none, `nil` if no Close came.
    public internal(set) var closeCode: Int?
    /// The reason in the client's Close, or `nil` if no Close came.
    public internal(set) var closeReason: String?

    private var latestFrames: Recent<WebSocketFrame>
    private var latestMessages: Recent<WebSocketMessage>
    /// The numbers of payload bytes that the records of frames and of messages may still keep.
    private var frameBytesLeft: Int
    private var messageBytesLeft: Int

    init(
      connection: Int, request: Request, subprotocol: String?, deflate: WebSocketDeflate?, options: Options
    ) {
      self.connection = connection
      self.request = request
      self.subprotocol = subprotocol
      self.deflate = deflate
      latestFrames = Recent(countMax: options.webSocketFramesKept)
      latestMessages = Recent(countMax: options.webSocketFramesKept)
      frameBytesLeft = max(options.webSocketBytesKept, 0)
      messageBytesLeft = frameBytesLeft
    }

    /// The latest frames that the client sent, at most ``Options/webSocketFramesKept`` of them.
    public var frames: [WebSocketFrame] { latestFrames.latest }

    /// The latest whole messages that the client sent, at most ``Options/webSocketFramesKept`` of them.
    public var messages: [WebSocketMessage] { latestMessages.latest }

    mutating func add(_ frame: WebSocketFrame) {
      var frame = frame
      Self.keep(&frame.payload, &frameBytesLeft)
      framesReceived += 1
      _ = latestFrames.append(frame)
    }

    mutating func add(_ message: WebSocketMessage) {
      var message = message
      Self.keep(&message.bytes, &messageBytesLeft)
      messagesReceived += 1
      _ = latestMessages.append(message)
    }

    /// Cuts a payload to the bytes that may still be kept.
    private static func keep(_ payload: inout [UInt8], _ bytesLeft: inout Int) {
      if payload.count > bytesLeft { payload = Array(payload.prefix(bytesLeft)) }
      bytesLeft -= payload.count
    }
  }

  /// A whole message that a client sent over a WebSocket.
  public struct WebSocketMessage: Hashable, Sendable {
    /// Whether the message is text, not binary.
    public var isText: Bool
    /// The content, inflated if it was compressed. A record keeps only the bytes that
    /// ``Options/webSocketBytesKept`` permits.
    public var bytes: [UInt8]
    /// The length of the content in bytes, including those that ``bytes`` does not keep.
    public var count: Int
    /// The checksum of the whole content.
    public var checksum: Checksum
    /// The number of frames of the message.
    public var fragments: Int
    /// Whether the client compressed the message.
    public var isCompressed: Bool

    init(isText: Bool, _ bytes: [UInt8], fragments: Int, isCompressed: Bool) {
      self.isText = isText
      self.bytes = bytes
      self.fragments = fragments
      self.isCompressed = isCompressed
      count = bytes.count
      checksum = Checksum(bytes)
    }

    /// The content as text.
    public var text: String { LarkspurTestServer.text(of: bytes) }
  }
}
