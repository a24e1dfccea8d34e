extension TestServer {
  /// One action or expectation of a script.
  public struct Step: Sendable {
    indirect enum Kind {
      case expectRequest(method: String?, target: String?)
      case expectHead
      case expectBody
      case expectBytes([UInt8])
      case expectCount(Int)
      case expectClose
      case send([UInt8], pieceBytes: Int, gap: Duration)
      case sendContent(Range<Int>)
      case respond(Response)
      case wait(Signal)
      case fire(Signal)
      case pause(Duration)
      case close
      case reset
      case halfClose
      case hang
      case serveRoutes(requestsMax: Int?)
      case `repeat`(count: Int?, Script)
      case setSendBuffer(bytes: Int)
      case beforeHandshake
      case handshake(TLSLayer.Fault)
      case closeNotify
      case closeWithoutNotify
      case oddities(TLSLayer.Oddity, count: Int)
      case sendBelowTLS([UInt8])
      case cut(afterBytes: Int, SendFault.ConnectionEnd)
      case setSegment(bytes: Int)
      case webSocket(WebSocketAnswer, [WebSocketStep])
      case startEvents(Fields, Framing)
      case events([StreamEvent], lineEnd: String, pieceBytes: Int)
      case endEvents
    }

    let kind: Kind
    /// The step's name in messages.
    let name: String

    init(_ kind: Kind, _ name: String) {
      self.kind = kind
      self.name = name
    }
  }
}

// MARK: Reading

extension TestServer.Step {
  /// Reads one whole request, body included, and records it in ``TestServer/requests``.
  ///
  /// The record is made when the head has been read, and completed with the body. The step fails if the connection ends
  /// or the server stops first, or if the request is malformed. It does not send `100 Continue`: for clients that wait
  /// for that response, see ``expectHead``.
  public static let expectRequest = Self(.expectRequest(method: nil, target: nil), "expectRequest")

  /// Reads one whole request like ``expectRequest``, and fails if its method or its target differs.
  public static func expectRequest(_ method: String, _ target: String) -> Self {
    Self(.expectRequest(method: method, target: target), "expectRequest \(method) \(target)")
  }

  /// Reads and records the head of a request only, to respond before the body comes, or with `100 Continue`.
  public static let expectHead = Self(.expectHead, "expectHead")

  /// Reads the body that the last head announced, and adds it to the record.
  public static let expectBody = Self(.expectBody, "expectBody")

  /// Reads as many bytes as these, and fails at the first one that differs.
  public static func expectBytes(_ bytes: [UInt8]) -> Self { Self(.expectBytes(bytes), "expectBytes") }

  /// Reads as many bytes as the text has in UTF-8, and fails at the first one that differs.
  public static func expectBytes(_ text: String) -> Self { expectBytes(Array(text.utf8)) }

  /// Reads and discards this number of bytes.
  public static func expectBytes(count: Int) -> Self { Self(.expectCount(count), "expectBytes(count: \(count))") }

  /// Waits for the client to close or reset the connection. Fails if the client sends anything more.
  public static let expectClose = Self(.expectClose, "expectClose")
}

// MARK: Writing

extension TestServer.Step {
  /// Sends the bytes at once.
  public static func send(_ bytes: [UInt8]) -> Self { Self(.send(bytes, pieceBytes: .max, gap: .zero), "send") }

  /// Sends the text in UTF-8 at once.
  public static func send(_ text: String) -> Self { send(Array(text.utf8)) }

  /// Sends the bytes in pieces of `count`, each a separate TCP segment, with a pause of `gap` between them.
  ///
  /// The client's kernel may still join pieces that arrive faster than the client reads.
  public static func send(_ bytes: [UInt8], inPiecesOf count: Int, every gap: Duration = .zero) -> Self {
    Self(.send(bytes, pieceBytes: max(count, 1), gap: gap), "send")
  }

  /// Sends the text in UTF-8 in pieces of `count` bytes.
  public static func send(_ text: String, inPiecesOf count: Int, every gap: Duration = .zero) -> Self {
    send(Array(text.utf8), inPiecesOf: count, every: gap)
  }

  /// Sends text with the characters U+0000 to U+00FF as one byte each, and all others in UTF-8.
  public static func send(latin1 text: String, inPiecesOf count: Int = .max) -> Self {
    let bytes = text.unicodeScalars.flatMap { scalar in
      scalar.value < 0x100 ? [UInt8(scalar.value)] : Array(String(scalar).utf8)
    }
    return send(bytes, inPiecesOf: count)
  }

  /// Sends a part of ``TestServer/content(_:)``, of any size, in constant memory.
  public static func sendContent(_ range: Range<Int>) -> Self { Self(.sendContent(range), "sendContent") }

  /// Sends a well-formed response to the last request, as a route would. The script has to close the connection itself.
  public static func respond(_ response: TestServer.Response) -> Self { Self(.respond(response), "respond") }

  /// Requests a send buffer of about this size from the kernel. A small one makes back-pressure show early.
  public static func setSendBuffer(bytes: Int) -> Self { Self(.setSendBuffer(bytes: bytes), "setSendBuffer") }
}

// MARK: WebSockets

extension TestServer.Step {
  /// Answers the opening handshake of a WebSocket, and does steps on the WebSocket.
  ///
  /// ```swift
  /// server.enqueue([.webSocket([.expectText("hello"), .send("goodbye"), .close(), .awaitClose()])])
  /// ```
  ///
  /// The handshake is the last request that was read; if there is none, the step reads one. A request that is no right
  /// handshake gets a 400 or a 426, and the step fails. After the steps the script continues, and closes at its end.
  ///
  /// - Parameters:
  ///   - steps: The steps on the WebSocket.
  ///   - answer: The choices of the server, and its faults.
  public static func webSocket(
    _ steps: [TestServer.WebSocketStep], answer: TestServer.WebSocketAnswer = TestServer.WebSocketAnswer()
  ) -> Self {
    Self(.webSocket(answer, steps), "webSocket")
  }
}

// MARK: Time

extension TestServer.Step {
  /// Waits until the test fires the signal, or the server stops.
  public static func wait(_ signal: TestServer.Signal) -> Self { Self(.wait(signal), "wait") }

  /// Fires the signal, so that the test can wait until the script has reached this step.
  public static func fire(_ signal: TestServer.Signal) -> Self { Self(.fire(signal), "fire") }

  /// Waits for this duration, or until the server stops. Meant for clients' timers; use ``wait(_:)`` to wait for
  /// events.
  public static func pause(_ duration: Duration) -> Self { Self(.pause(duration), "pause") }
}

// MARK: Ends

extension TestServer.Step {
  /// Closes the connection in order (over TLS close_notify; FIN). The client reads the end of the stream; the kernel
  /// answers bytes that the client sends later with RST.
  public static let close = Self(.close, "close")

  /// Aborts the connection (RST), over TLS without close_notify. Bytes that the client's kernel has not yet received
  /// are lost.
  public static let reset = Self(.reset, "reset")

  /// Ends the sending side only (over TLS close_notify; FIN). The client reads the end of the stream, and can still
  /// send.
  public static let halfClose = Self(.halfClose, "halfClose")

  /// Neither reads nor writes until the client ends its side or the server stops.
  public static let hang = Self(.hang, "hang")

  /// Hands the connection over to the ordinary routes. The script ends with this step.
  public static let serveRoutes = Self(.serveRoutes(requestsMax: nil), "serveRoutes")

  /// Answers `count` requests by the ordinary routes, then continues the script.
  public static func serveRoutes(requests count: Int) -> Self {
    Self(.serveRoutes(requestsMax: count), "serveRoutes(requests: \(count))")
  }

  /// Does the steps `count` times.
  public static func `repeat`(_ count: Int, _ steps: [Self]) -> Self {
    Self(.repeat(count: count, TestServer.Script(steps)), "repeat")
  }

  /// Repeats the steps until the connection ends. An end at the beginning of a round is not a failure.
  public static func `repeat`(_ steps: [Self]) -> Self {
    Self(.repeat(count: nil, TestServer.Script(steps)), "repeat")
  }
}
