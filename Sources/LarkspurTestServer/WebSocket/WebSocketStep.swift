extension TestServer {
  /// One action or expectation of the server on a WebSocket, after the opening handshake.
  ///
  /// ```swift
  /// server.webSocket("/feed", [
  ///   .expectText("subscribe"), .send("one"), .send("two", fragments: 3), .ping([1, 2]), .awaitPong(),
  ///   .close(1000, "done"), .awaitClose(code: 1000),
  /// ])
  /// ```
  ///
  /// While a step reads, the server answers pings, and the client's Close unless it has sent a Close itself; see
  /// ``answerPings(_:)`` and ``answerClose(_:)``. All that comes is recorded in ``TestServer/webSockets``. A frame
  /// against the rules fails the step: it is a bug of the client under test.
  public struct WebSocketStep: Sendable {
    indirect enum Kind {
      case expectText(String?)
      case expectBinary([UInt8]?)
      case expectMessages(Int)
      case expectPing([UInt8]?)
      case awaitPong([UInt8]?)
      case awaitClose(code: Int?, reason: String?)
      case awaitEnd
      case drain
      case echo(messagesMax: Int?)
      case send(isText: Bool, [UInt8], fragments: Int, isCompressed: Bool)
      case sendFrame(WebSocketFrame)
      case sendBytes([UInt8])
      case ping([UInt8])
      case pong([UInt8])
      case close(code: Int?, reason: String)
      case deflateBomb(bytes: Int)
      case flood(WebSocketFlood, count: Int, isReading: Bool)
      case drip([WebSocketStep])
      case answerPings(Bool)
      case answerClose(Bool)
      case `repeat`(count: Int, [WebSocketStep])
      case ordinary(Step)
    }

    let kind: Kind
    /// The step's name in messages.
    let name: String

    init(_ kind: Kind, _ name: String) {
      self.kind = kind
      self.name = name
    }
  }

  /// The frames of a flood, a great number of small ones.
  public enum WebSocketFlood: Hashable, Sendable {
    /// Pings with a payload of this size, at most 125 bytes.
    case pings(bytes: Int = 0)
    /// Pongs that answer no ping.
    case pongs
    /// Empty fragments of one text message. The message is ended by one more empty fragment.
    case emptyFragments
    /// Binary messages of this size.
    case messages(bytes: Int = 0)
  }
}

// MARK: Reading

extension TestServer.WebSocketStep {
  /// Reads the next message. Fails if it is not text or differs from `text`; `nil` accepts any text.
  public static func expectText(_ text: String? = nil) -> Self { Self(.expectText(text), "expectText") }

  /// Reads the next message. Fails if it is not binary or differs from `bytes`; `nil` accepts any bytes.
  public static func expectBinary(_ bytes: [UInt8]? = nil) -> Self { Self(.expectBinary(bytes), "expectBinary") }

  /// Reads this number of messages of any kind.
  public static func expectMessages(_ count: Int) -> Self { Self(.expectMessages(count), "expectMessages(\(count))") }

  /// Reads up to the client's next ping. Messages before it are kept for later steps.
  ///
  /// Fails if the ping has another payload; `nil` accepts any.
  public static func expectPing(_ payload: [UInt8]? = nil) -> Self { Self(.expectPing(payload), "expectPing") }

  /// Reads up to a pong with this payload; `nil` means the payload of the server's latest ``ping(_:)``.
  ///
  /// Other pongs are skipped. Messages before the pong are kept for later steps.
  public static func awaitPong(_ payload: [UInt8]? = nil) -> Self { Self(.awaitPong(payload), "awaitPong") }

  /// Reads up to the client's Close, and skips messages. Fails if the connection ends without a Close, or if the code
  /// or the reason differs; `nil` accepts any.
  ///
  /// - Parameters:
  ///   - code: The code, which is 1005 for a Close without one.
  ///   - reason: The reason, which is empty for a Close without one.
  public static func awaitClose(code: Int? = nil, reason: String? = nil) -> Self {
    Self(.awaitClose(code: code, reason: reason), "awaitClose")
  }

  /// Reads until the client ends its side of the connection, with or without a Close, or the server stops.
  public static let awaitEnd = Self(.awaitEnd, "awaitEnd")

  /// Reads until the client's Close, the end of the connection, or the server's stop.
  public static let drain = Self(.drain, "drain")

  /// Sends each message back, until the client's Close or the end of the connection.
  ///
  /// Fragments are sent back as they come. A compressed message is sent back compressed, in one frame.
  public static let echo = Self(.echo(messagesMax: nil), "echo")

  /// Sends this number of messages back, then continues the script; or until the client's Close.
  public static func echo(messages count: Int) -> Self { Self(.echo(messagesMax: count), "echo(messages: \(count))") }
}

// MARK: Writing

extension TestServer.WebSocketStep {
  /// Sends a text message.
  ///
  /// - Parameters:
  ///   - text: The text, which is sent in UTF-8.
  ///   - fragments: The number of frames. More frames than bytes make some of them empty.
  ///   - isCompressed: Whether to compress the message (RFC 7692), with the agreed parameters, or without any
  ///     agreement if there is none.
  public static func send(_ text: String, fragments: Int = 1, isCompressed: Bool = false) -> Self {
    Self(.send(isText: true, Array(text.utf8), fragments: fragments, isCompressed: isCompressed), "send")
  }

  /// Sends a binary message, with parameters as those of a text.
  public static func send(_ bytes: [UInt8], fragments: Int = 1, isCompressed: Bool = false) -> Self {
    Self(.send(isText: false, bytes, fragments: fragments, isCompressed: isCompressed), "send")
  }

  /// Sends a frame, right or wrong.
  public static func sendFrame(_ frame: TestServer.WebSocketFrame) -> Self { Self(.sendFrame(frame), "sendFrame") }

  /// Sends bytes that need not be frames.
  public static func sendBytes(_ bytes: [UInt8]) -> Self { Self(.sendBytes(bytes), "sendBytes") }

  /// Sends a ping.
  public static func ping(_ payload: [UInt8] = []) -> Self { Self(.ping(payload), "ping") }

  /// Sends a pong that answers no ping.
  public static func pong(_ payload: [UInt8] = []) -> Self { Self(.pong(payload), "pong") }

  /// Sends a Close with a code and a reason, whether or not they are allowed, or an empty one if the code is `nil`.
  ///
  /// The connection stays open. ``awaitClose(code:reason:)`` reads the answer.
  public static func close(_ code: Int? = 1000, _ reason: String = "") -> Self {
    Self(.close(code: code, reason: reason), "close")
  }

  /// Sends a compressed binary message of this number of zeros, which is a thousandth as long on the wire.
  public static func deflateBomb(bytes: Int) -> Self { Self(.deflateBomb(bytes: bytes), "deflateBomb") }

  /// Sends a great number of frames, in constant memory.
  ///
  /// - Parameters:
  ///   - flood: The kind of the frames.
  ///   - count: The number of the frames.
  ///   - isReading: Whether the server reads in the meantime, and skips messages. Without that, a client that answers
  ///     each frame comes to the point where its answers cannot leave.
  public static func flood(_ flood: TestServer.WebSocketFlood, count: Int, isReading: Bool = true) -> Self {
    Self(.flood(flood, count: count, isReading: isReading), "flood")
  }

  /// Does the steps, and sends each of their bytes in a separate TCP segment.
  ///
  /// The client's kernel may still join segments that arrive faster than the client reads.
  public static func drip(_ steps: [Self]) -> Self { Self(.drip(steps), "drip") }
}

// MARK: Settings, time and ends

extension TestServer.WebSocketStep {
  /// Sets whether the server answers pings from here on. It does so at the start.
  public static func answerPings(_ answers: Bool) -> Self { Self(.answerPings(answers), "answerPings") }

  /// Sets whether the server answers the client's Close from here on. It does so at the start.
  public static func answerClose(_ answers: Bool) -> Self { Self(.answerClose(answers), "answerClose") }

  /// Waits until the test fires the signal, or the server stops.
  public static func wait(_ signal: TestServer.Signal) -> Self { step(.wait(signal)) }

  /// Fires the signal, so that the test can wait until the script has reached this step.
  public static func fire(_ signal: TestServer.Signal) -> Self { step(.fire(signal)) }

  /// Aborts the connection (RST) without a Close.
  public static let reset = step(.reset)

  /// Closes the connection in order (FIN) without a Close.
  public static let end = step(.close)

  /// Neither reads nor writes until the client ends its side or the server stops.
  public static let stall = step(.hang)

  /// Does the steps `count` times.
  public static func `repeat`(_ count: Int, _ steps: [Self]) -> Self { Self(.repeat(count: count, steps), "repeat") }

  /// Does a step of ordinary scripts: a pause, a fault after a number of bytes, an odd TLS record, an expected close.
  public static func step(_ step: TestServer.Step) -> Self { Self(.ordinary(step), step.name) }
}
