import LarkspurCoding
import LarkspurHTTP
import LarkspurTLS

extension ScriptRunner {
  /// Answers an opening handshake, and does the steps if the handshake is right. If `mayEnd`, the connection may end in
  /// place of the request without a failure.
  mutating func runWebSocket(
    _ answer: TestServer.WebSocketAnswer, _ steps: [TestServer.WebSocketStep], mayEnd: Bool
  ) throws(Stop) {
    if request == nil {
      try readHead(mayEnd: mayEnd)
      try readBody()
    }
    let channel = try acceptWebSocket(answer)
    try run(steps, on: channel)
  }

  private mutating func run(_ steps: [TestServer.WebSocketStep], on channel: WebSocketChannel) throws(Stop) {
    for (index, step) in steps.enumerated() {
      path.append(index + 1)
      stepName = step.name
      try perform(step.kind, on: channel)
      path.removeLast()
    }
  }

  // MARK: The handshake

  private mutating func acceptWebSocket(_ answer: TestServer.WebSocketAnswer) throws(Stop) -> WebSocketChannel {
    guard let request else { throw .failed("no request has been read") }
    // A later handshake on the connection needs a new request.
    self.request = nil
    let offer = try checkedOffer(of: request)
    let subprotocol = answer.subprotocols.first { offer.protocols.contains($0) }
    let deflate = answer.deflate.flatMap { $0.agreed(offer, with: request) }
    let agreement = WebSocketAgreement(
      subprotocol: subprotocol,
      compression: deflate.map {
        WebSocketCompression(
          clientWindowBits: $0.clientWindowBits, serverWindowBits: $0.serverWindowBits,
          clientTakesOver: $0.clientTakesOver, serverTakesOver: $0.serverTakesOver)
      })
    guard let list = offer.responseFields(agreement, sha1: { MessageDigest.of($0, .sha1) }) else {
      throw .failed("SHA-1 is not available")
    }
    let fields = TestServer.Fields(list.map { TestServer.Field($0.name, $0.value) } + Array(answer.fields))
    let head = answer.head(fields)
    let recordNumber = connection.core.record(
      TestServer.WebSocket(
        connection: connection.number, request: request, subprotocol: subprotocol, deflate: deflate,
        options: connection.core.options))
    let channel: WebSocketChannel
    do {
      channel = try WebSocketChannel(wire, connection.core, recordNumber: recordNumber, agreed: deflate)
    } catch {
      throw .failed("the compression cannot be set up: \(error)")
    }
    let wire = wire
    try sending { try wire.send(Array(head.utf8)) }
    return channel
  }

  /// Returns the client's offer, or refuses a request that is no right opening handshake (RFC 6455, section 4.2.1).
  private func checkedOffer(of request: TestServer.Request) throws(Stop) -> WebSocketOffer {
    var status = 400
    let message: String
    do throws(WebSocketHandshakeError) {
      if request.method == "GET", request.version == "HTTP/1.1" {
        return try WebSocketOffer(fields: request.fields.values)
      }
      message = "the request is \(request.method) with \(request.version), and not GET with HTTP/1.1"
    } catch {
      let doesNotUpgrade = error == .upgradeMissing || error == .connectionMissing
      // RFC 6455, section 4.4, and RFC 9110, section 15.5.22.
      if doesNotUpgrade || error == .versionUnsupported { status = 426 }
      message = doesNotUpgrade ? "the request does not upgrade" : "\(error)"
    }
    var response = TestServer.Response.json(["error": .string(message)], status: status)
    response.fields.add("Upgrade", "websocket")
    response.fields.add("Connection", "Upgrade, close")
    response.fields.add("Sec-WebSocket-Version", WebSocketHandshake.version)
    let (wire, core) = (wire, connection.core)
    try sending { _ = try ResponseWriter(wire: wire, core: core).write(response, to: request) }
    throw .failed("no right opening handshake: \(message)")
  }

  // MARK: Steps

  private mutating func perform(_ step: TestServer.WebSocketStep.Kind, on channel: WebSocketChannel) throws(Stop) {
    switch step {
    case .expectText(let text):
      let message = try nextMessage(channel)
      guard message.isText else { throw .failed("a binary message came, not text: \(quoted(message.bytes))") }
      try compare(message.bytes, text.map { Array($0.utf8) })
    case .expectBinary(let bytes):
      let message = try nextMessage(channel)
      guard !message.isText else { throw .failed("a text message came, not a binary one: \(quoted(message.bytes))") }
      try compare(message.bytes, bytes)
    case .expectMessages(let count):
      for _ in 0..<max(count, 0) { _ = try nextMessage(channel) }
    case .expectPing(let payload):
      let came = try awaitControl(channel, "ping") { if case .ping(let payload) = $0 { payload } else { nil } }
      try compare(came, payload)
    case .awaitPong(let payload):
      let wanted = payload ?? channel.pingPayload
      _ = try awaitControl(channel, "pong") { if case .pong(wanted) = $0 { wanted } else { nil } }
    case .awaitClose(let code, let reason):
      try awaitClose(channel, code, reason)
    case .awaitEnd:
      while try receiveOrEnd(channel) != nil {}
    case .drain:
      while !channel.hasReceivedClose, try receiveOrEnd(channel) != nil {}
    case .echo(let messagesMax):
      try echo(channel, messagesMax)
    case .send(let isText, let bytes, let fragments, let isCompressed):
      try sending {
        try channel.send(bytes, isText: isText, fragments: fragments, isCompressed: isCompressed)
      }
    case .sendFrame(let frame):
      try sending { try channel.send(frame) }
    case .sendBytes(let bytes):
      try sending { try channel.send(bytes) }
    case .ping(let payload):
      try sending { try channel.send(.ping, payload) }
    case .pong(let payload):
      try sending { try channel.send(.pong, payload) }
    case .close(let code, let reason):
      try sending { try channel.send(.close, closePayload(code, reason)) }
    case .deflateBomb(let count):
      try sending { try channel.sendBomb(count) }
    case .flood(let flood, let count, let isReading):
      try self.flood(channel, flood, count, isReading)
    case .drip(let steps):
      let before = wire.fault.segmentBytesMax
      wire.fault.segmentBytesMax = 1
      defer { wire.fault.segmentBytesMax = before }
      try run(steps, on: channel)
    case .answerPings(let answers):
      channel.answersPings = answers
    case .answerClose(let answers):
      channel.answersClose = answers
    case .repeat(let count, let steps):
      for _ in 0..<max(count, 0) { try run(steps, on: channel) }
    case .ordinary(let step):
      try perform(step.kind, mayEnd: false)
    }
  }

  private func closePayload(_ code: Int?, _ reason: String) -> [UInt8] {
    guard let code else { return [] }
    return [UInt8(truncatingIfNeeded: code >> 8), UInt8(truncatingIfNeeded: code)] + Array(reason.utf8)
  }

  // MARK: Reading

  /// Receives a frame. The end of the connection fails the step, which waited for `what`.
  private func receive(_ channel: WebSocketChannel, _ what: String) throws(Stop) -> WebSocketChannel.Arrival {
    do {
      return try channel.receive()
    } catch {
      switch error {
      case .ended(.insecure(let message), _): throw .failed("TLS failed: \(message)")
      case .ended(_, let isWithin):
        throw .failed(isWithin ? "a message was not whole before \(theEnd)" : "no \(what) came before \(theEnd)")
      case .wrong(let message): throw .failed(message)
      }
    }
  }

  private func nextMessage(_ channel: WebSocketChannel) throws(Stop) -> TestServer.WebSocketMessage {
    if let message = channel.takePending() { return message }
    while true {
      switch try receive(channel, "message") {
      case .fragment(_, _, let message?): return message
      case .fragment, .ping, .pong: break
      case .close(let close): throw .failed("a Close came, not a message: \(description(of: close))")
      }
    }
  }

  /// Reads up to a control frame that `match` accepts, and keeps messages for later steps.
  private func awaitControl(
    _ channel: WebSocketChannel, _ what: String, _ match: (WebSocketChannel.Arrival) -> [UInt8]?
  ) throws(Stop) -> [UInt8] {
    while true {
      let arrival = try receive(channel, what)
      if let payload = match(arrival) { return payload }
      switch arrival {
      case .fragment(_, _, let message?):
        do { try channel.keep(message) } catch { throw .failed("too many messages came before the \(what)") }
      case .fragment, .ping, .pong: break
      case .close(let close): throw .failed("a Close came, not a \(what): \(description(of: close))")
      }
    }
  }

  private func awaitClose(_ channel: WebSocketChannel, _ code: Int?, _ reason: String?) throws(Stop) {
    while true {
      guard case .close(let close) = try receive(channel, "Close") else { continue }
      let closeCode = close.code.map { Int($0) } ?? 1005
      if let code, closeCode != code { throw .failed("the code of the Close is \(closeCode), not \(code)") }
      if let reason, close.reason != Array(reason.utf8) {
        throw .failed("the reason of the Close is \(quoted(close.reason)), not \(quoted(Array(reason.utf8)))")
      }
      return
    }
  }

  /// Receives a frame, or returns `nil` at the end of the connection.
  private func receiveOrEnd(_ channel: WebSocketChannel) throws(Stop) -> WebSocketChannel.Arrival? {
    do {
      return try channel.receive()
    } catch {
      switch error {
      case .ended(.closed, _): throw .failed("the script has closed the connection itself")
      case .ended(.insecure(let message), _): throw .failed("TLS failed: \(message)")
      case .ended: return nil
      case .wrong(let message): throw .failed(message)
      }
    }
  }

  private func echo(_ channel: WebSocketChannel, _ messagesMax: Int?) throws(Stop) {
    var left = messagesMax ?? .max
    while left > 0, let message = channel.takePending() {
      try send(message, on: channel)
      left -= 1
    }
    while left > 0 {
      // A client that leaves without a Close ends the script, as where a script sends.
      guard let arrival = try receiveOrEnd(channel) else { throw .quiet }
      switch arrival {
      case .fragment(let frame, false, let message):
        var copy = frame
        copy.mask = nil
        let echoed = copy
        try sending { try channel.send(echoed) }
        if message != nil { left -= 1 }
      case .fragment(_, true, let message?):
        try send(message, on: channel)
        left -= 1
      case .fragment, .ping, .pong: break
      case .close: return
      }
    }
  }

  private func send(_ message: TestServer.WebSocketMessage, on channel: WebSocketChannel) throws(Stop) {
    try sending {
      try channel.send(message.bytes, isText: message.isText, fragments: 1, isCompressed: message.isCompressed)
    }
  }

  private func flood(
    _ channel: WebSocketChannel, _ flood: TestServer.WebSocketFlood, _ count: Int, _ isReading: Bool
  ) throws(Stop) {
    try sending {
      try channel.flood(flood, count: count) {
        while isReading, !channel.hasReceivedClose, channel.wire.isReadable {
          // A client that closes in the middle of a flood ends the flood only with its connection.
          _ = try channel.receive()
        }
      }
    }
  }

  // MARK: Words

  private func compare(_ came: [UInt8], _ wanted: [UInt8]?) throws(Stop) {
    guard let wanted, came != wanted else { return }
    throw .failed("\(quoted(came)) came, not \(quoted(wanted))")
  }

  private func description(of close: WebSocketClose) -> String {
    "code \(close.code.map { Int($0) } ?? 1005), reason \(quoted(close.reason))"
  }
}

extension TestServer.WebSocketAnswer {
  /// Returns the head of the response with these fields, after the faults.
  fileprivate func head(_ fields: TestServer.Fields) -> String {
    var fields = fields
    var status = 101
    for fault in faults {
      switch fault {
      case .status(let other):
        status = other
        if other >= 200 { fields["Content-Length"] = "0" }
      case .wrongAccept:
        // The value for the key of RFC 6455, section 1.3.
        fields["Sec-WebSocket-Accept"] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
      case .omit(let name): fields[name] = nil
      case .replace(let name, let value): fields[name] = value
      case .add(let name, let value): fields.add(name, value)
      }
    }
    return "HTTP/1.1 \(status) \(reasonPhrase(status))\r\n\(lines(fields))\r\n"
  }
}

extension TestServer.WebSocketDeflate {
  /// Returns the parameters that this wish and the client's first acceptable offer agree on, or `nil` if the client
  /// does not offer compression.
  fileprivate func agreed(_ offer: WebSocketOffer, with request: TestServer.Request) -> Self? {
    guard let offered = offer.compressions.first else { return nil }
    // RFC 7692, section 7.1.2.2: a client that does not offer this parameter gets no answer with it.
    let extensions = WebSocketExtension.list(request.fields.values("Sec-WebSocket-Extensions").joined(separator: ","))
    let element = extensions?.first { element in
      element.name == WebSocketCompression.name && (try? WebSocketCompression(offer: element)) == offered
    }
    let mayLimitClient = element?.parameters.contains { $0.name == "client_max_window_bits" } ?? false
    return Self(
      clientWindowBits: mayLimitClient ? min(clientWindowBits, offered.clientWindowBits) : 15,
      serverWindowBits: min(serverWindowBits, offered.serverWindowBits),
      clientTakesOver: clientTakesOver && offered.clientTakesOver,
      serverTakesOver: serverTakesOver && offered.serverTakesOver)
  }
}
