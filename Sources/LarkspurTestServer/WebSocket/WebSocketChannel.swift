import LarkspurBytes
import LarkspurCoding
import LarkspurHTTP

/// The server's end of a WebSocket, confined to its connection's thread: frames and messages in, frames out.
///
/// The channel takes no byte from the wire beyond the current frame, so that other steps may follow at any frame.
final class WebSocketChannel {
  enum Failure: Error {
    /// No more bytes come. `isWithin`: whether a frame or a message has begun.
    case ended(Wire.Failure, isWithin: Bool)
    /// The client broke a rule, in words.
    case wrong(String)
  }

  /// A received frame, with the message that it completes.
  enum Arrival {
    case fragment(TestServer.WebSocketFrame, isCompressed: Bool, completes: TestServer.WebSocketMessage?)
    case ping([UInt8])
    case pong([UInt8])
    case close(WebSocketClose)
  }

  /// The message whose fragments are coming in.
  private struct Partial {
    let isText: Bool
    let isCompressed: Bool
    /// The content, inflated.
    var bytes: [UInt8] = []
    var fragments = 0
  }

  private static let batchBytes = 1 << 16

  let wire: Wire
  private let core: ServerCore
  private let recordNumber: Int
  private let deflate: TestServer.WebSocketDeflate
  private var parser: WebSocketFrameParser
  private var inflater: MessageInflater
  private var deflater: MessageDeflater
  private var partial: Partial?
  var answersPings = true
  var answersClose = true
  private var hasSentClose = false
  private(set) var hasReceivedClose = false
  private var latestPing: [UInt8] = []
  /// Messages that came while a step waited for a control frame, the oldest first.
  private var pending: [TestServer.WebSocketMessage] = []
  private var pendingBytes = 0

  /// - Parameter agreed: The agreed compression, or `nil` if the client must not compress.
  init(
    _ wire: Wire, _ core: ServerCore, recordNumber: Int, agreed: TestServer.WebSocketDeflate?
  ) throws(CodingError) {
    self.wire = wire
    self.core = core
    self.recordNumber = recordNumber
    parser = WebSocketFrameParser(role: .server, allowsCompression: agreed != nil)
    // A server that compresses without an agreement does wrong, but each of its messages can be inflated alone.
    deflate = agreed ?? TestServer.WebSocketDeflate(serverTakesOver: false)
    inflater = try MessageInflater(windowBits: deflate.clientWindowBits, takesOver: deflate.clientTakesOver)
    deflater = try Self.deflater(deflate)
  }

  private static func deflater(_ deflate: TestServer.WebSocketDeflate) throws(CodingError) -> MessageDeflater {
    try MessageDeflater(windowBits: deflate.serverWindowBits, takesOver: deflate.serverTakesOver)
  }

  // MARK: Reading

  /// Reads and records the next frame, and answers it if it is a ping or a Close.
  func receive() throws(Failure) -> Arrival {
    let frame = try receiveFrame()
    core.amendWebSocket(recordNumber) { $0.add(frame) }
    switch frame.opcode {
    case .ping:
      // A client that has gone needs no answer, and the next read reports it.
      if answersPings, !hasSentClose { try? send(.pong, frame.payload) }
      return .ping(frame.payload)
    case .pong: return .pong(frame.payload)
    case .close: return .close(try receivedClose(frame.payload))
    default: return try receivedFragment(frame)
    }
  }

  private func receiveFrame() throws(Failure) -> TestServer.WebSocketFrame {
    let header = try receiveHeader()
    let messageBytesMax = core.options.webSocketMessageBytesMax
    guard header.length <= messageBytesMax else {
      throw .wrong("a frame of \(header.length) bytes exceeds webSocketMessageBytesMax, \(messageBytesMax)")
    }
    var payload: [UInt8] = []
    var endsFrame = false
    while !endsFrame {
      let piece = header.length == payload.count ? [] : try take(header.length - payload.count, isWithin: true)
      if case .payload(_, let ends) = try parse(piece) { endsFrame = ends }
      payload += piece
    }
    if let mask = header.mask { Masking.apply(mask, to: &payload, in: payload.indices) }
    return TestServer.WebSocketFrame(
      .init(rawValue: header.opcode.rawValue), payload, isFinal: header.isFinal,
      reservedBits: header.isCompressed ? 4 : 0, mask: header.mask)
  }

  private func receiveHeader() throws(Failure) -> WebSocketFrameHeader {
    var isWithin = partial != nil
    while true {
      let byte = try take(1, isWithin: isWithin)
      if hasReceivedClose { throw .wrong("a frame came after the client's Close") }
      if case .frame(let header) = try parse(byte) { return header }
      isWithin = true
    }
  }

  private func take(_ count: Int, isWithin: Bool) throws(Failure) -> ArraySlice<UInt8> {
    do {
      return try wire.take(atMost: count)
    } catch {
      throw .ended(error, isWithin: isWithin)
    }
  }

  private func parse(_ bytes: ArraySlice<UInt8>) throws(Failure) -> WebSocketFrameParser.Event {
    var consumed = 0
    do {
      return try parser.next(in: bytes.span, consumed: &consumed)
    } catch {
      throw .wrong("\(error)")
    }
  }

  private func receivedFragment(_ frame: TestServer.WebSocketFrame) throws(Failure) -> Arrival {
    var message = partial ?? Partial(isText: frame.opcode == .text, isCompressed: frame.reservedBits != 0)
    partial = nil
    message.fragments += 1
    let messageBytesMax = core.options.webSocketMessageBytesMax
    if message.isCompressed {
      do {
        try inflater.inflate(
          frame.payload.span, isLast: frame.isFinal, atMost: messageBytesMax, appendingTo: &message.bytes)
      } catch {
        throw .wrong("a compressed message cannot be inflated: \(error)")
      }
    } else {
      guard message.bytes.count + frame.payload.count <= messageBytesMax else {
        throw .wrong("a message exceeds webSocketMessageBytesMax, \(messageBytesMax)")
      }
      message.bytes += frame.payload
    }
    guard frame.isFinal else {
      partial = message
      return .fragment(frame, isCompressed: message.isCompressed, completes: nil)
    }
    if message.isText {
      var validator = UTF8Validator()
      guard validator.accept(message.bytes.span), validator.isComplete else {
        throw .wrong("a text message is not UTF-8: \(quoted(message.bytes))")
      }
    }
    let whole = TestServer.WebSocketMessage(
      isText: message.isText, message.bytes, fragments: message.fragments, isCompressed: message.isCompressed)
    core.amendWebSocket(recordNumber, counting: .webSocketMessages) { $0.add(whole) }
    return .fragment(frame, isCompressed: message.isCompressed, completes: whole)
  }

  private func receivedClose(_ payload: [UInt8]) throws(Failure) -> WebSocketClose {
    let close: WebSocketClose
    do {
      close = try WebSocketClose(payload: payload)
    } catch {
      throw .wrong("\(error)")
    }
    hasReceivedClose = true
    core.amendWebSocket(recordNumber, counting: .webSocketCloses) { record in
      record.closeCode = close.code.map { Int($0) } ?? 1005
      record.closeReason = text(of: close.reason)
    }
    if answersClose, !hasSentClose { try? send(.close, close.code == nil ? [] : Array(payload.prefix(2))) }
    return close
  }

  // MARK: Messages

  /// Returns the oldest message that no step has taken, or `nil` if there is none.
  func takePending() -> TestServer.WebSocketMessage? {
    guard !pending.isEmpty else { return nil }
    let message = pending.removeFirst()
    pendingBytes -= message.bytes.count
    return message
  }

  /// Keeps a message for a later step.
  func keep(_ message: TestServer.WebSocketMessage) throws(Failure) {
    pendingBytes += message.bytes.count
    pending.append(message)
    guard pendingBytes <= core.options.webSocketMessageBytesMax, pending.count <= core.options.webSocketFramesKept
    else { throw .wrong("too many messages came before the control frame that the step waits for") }
  }

  /// The payload of the latest ping that `send` sent.
  var pingPayload: [UInt8] { latestPing }

  // MARK: Writing

  func send(_ bytes: [UInt8]) throws(Wire.Failure) { try wire.send(bytes) }

  func send(_ opcode: TestServer.WebSocketFrame.Opcode, _ payload: [UInt8]) throws(Wire.Failure) {
    if opcode == .ping { latestPing = payload }
    try send(TestServer.WebSocketFrame(opcode, payload))
  }

  func send(_ frame: TestServer.WebSocketFrame) throws(Wire.Failure) {
    if frame.opcode == .close { hasSentClose = true }
    try send(frame.bytes)
  }

  /// Sends a message in a number of frames.
  func send(_ bytes: [UInt8], isText: Bool, fragments: Int, isCompressed: Bool) throws {
    var payload = bytes
    if isCompressed {
      payload = []
      try deflater.deflate(bytes.span, into: &payload)
    }
    let count = max(fragments, 1)
    var output: [UInt8] = []
    var start = 0
    for index in 0..<count {
      // The sizes of the fragments differ by at most one byte, and their sum is that of the payload.
      let end = start + payload.count / count + (index < payload.count % count ? 1 : 0)
      let opcode: WebSocketOpcode = index > 0 ? .continuation : isText ? .text : .binary
      WebSocketFrameWriter.append(
        opcode, isFinal: index == count - 1, isCompressed: isCompressed && index == 0,
        payload: payload.span.extracting(start..<end), mask: nil, to: &output)
      start = end
      if output.count >= Self.batchBytes {
        try send(output)
        output.removeAll(keepingCapacity: true)
      }
    }
    try send(output)
  }

  /// Sends a compressed message of `count` zeros.
  func sendBomb(_ count: Int) throws {
    var compressor = try Compressor(.rawDeflate)
    let zeros = [UInt8](repeating: 0, count: Self.batchBytes)
    var payload: [UInt8] = []
    var left = max(count, 0)
    while left > 0 {
      let piece = min(left, zeros.count)
      try compressor.compress(zeros.span.extracting(0..<piece), into: &payload)
      left -= piece
    }
    try compressor.finish(into: &payload)
    // RFC 7692, section 7.2.3.4: a message that ends with a final block gets one byte more.
    payload.append(0)
    // The bomb is in the client's window but not in the server's, so the next message must not refer back.
    deflater = try Self.deflater(deflate)
    try send(TestServer.WebSocketFrame(.binary, payload, reservedBits: 4))
  }

  /// Sends many frames in batches, and calls `between` after each batch.
  func flood(_ flood: TestServer.WebSocketFlood, count: Int, between: () throws -> Void) throws {
    var left = max(count, 0)
    var isFirst = true
    while left > 0 {
      var output: [UInt8] = []
      while left > 0, output.count < Self.batchBytes {
        output += Self.frame(of: flood, isFirst: isFirst).bytes
        isFirst = false
        left -= 1
      }
      try send(output)
      try between()
    }
    if flood == .emptyFragments, count > 0 { try send(TestServer.WebSocketFrame(.continuation)) }
  }

  private static func frame(of flood: TestServer.WebSocketFlood, isFirst: Bool) -> TestServer.WebSocketFrame {
    switch flood {
    case .pings(let count):
      .init(.ping, [UInt8](repeating: 0, count: min(max(count, 0), WebSocketFrameHeader.controlBytesMax)))
    case .pongs: .init(.pong)
    case .emptyFragments: .init(isFirst ? .text : .continuation, isFinal: false)
    case .messages(let count): .init(.binary, [UInt8](repeating: 0, count: max(count, 0)))
    }
  }
}
