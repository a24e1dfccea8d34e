import LarkspurHTTP

/// A direct reading of RFC 6455: frames by index over all bytes at once, and what they mean to a client that only
/// answers.
struct NaiveFrames: Equatable {
  struct Frame: Equatable {
    var header: WebSocketFrameHeader
    /// The payload without its mask, as far as it is there.
    var payload: [UInt8]
    var isWhole: Bool { payload.count == header.length }
  }

  var frames: [Frame] = []
  /// The error behind the frames, or `nil` if the bytes end before the next header is complete.
  var error: WebSocketFrameError?

  init(_ bytes: [UInt8], role: WebSocketRole, allowsCompression: Bool) {
    error = read(bytes, role, allowsCompression)
  }

  private mutating func read(_ bytes: [UInt8], _ role: WebSocketRole, _ allowsCompression: Bool) -> WebSocketFrameError?
  {
    var at = 0
    var isInMessage = false
    func number(_ count: Int) -> UInt64? {
      at + count <= bytes.count ? bytes[at..<at + count].reduce(0) { $0 << 8 | UInt64($1) } : nil
    }
    while let first = at < bytes.count ? bytes[at] : nil {
      let bits = (0..<8).map { first >> UInt8(7 - $0) & 1 == 1 }
      if bits[2] || bits[3] { return .reservedBits }
      guard let opcode = WebSocketOpcode(rawValue: first % 16) else { return .opcodeReserved(first % 16) }
      let isControl = [.close, .ping, .pong].contains(opcode)
      if isControl, !bits[0] { return .controlFragmented }
      if opcode == .continuation, !isInMessage { return .continuationUnexpected }
      if opcode == .text || opcode == .binary, isInMessage { return .messageIncomplete }
      if bits[1], !allowsCompression || isControl || opcode == .continuation {
        return .compressionUnexpected(opcode)
      }
      if !isControl { isInMessage = !bits[0] }

      at += 1
      guard at < bytes.count else { return nil }
      let isMasked = bytes[at] >= 128
      if isMasked, role == .client { return .maskUnexpected }
      if !isMasked, role == .server { return .maskMissing }
      var length = UInt64(bytes[at] % 128)
      if length > 125, isControl { return .controlTooLong }
      at += 1
      if length == 127, at < bytes.count, bytes[at] > 127 { return .lengthTooLarge }
      if length > 125 {
        let size = length == 126 ? 2 : 8
        guard let long = number(size) else { return nil }
        if long <= (size == 2 ? 125 : 65535) { return .lengthNotMinimal }
        length = long
        at += size
      }
      var header = WebSocketFrameHeader(opcode, isFinal: bits[0], isCompressed: bits[1], length: Int(length))
      if isMasked {
        guard let mask = number(4) else { return nil }
        header.mask = UInt32(mask)
        at += 4
      }
      let end = bytes.count - at < header.length ? bytes.count : at + header.length
      let payload = bytes[at..<end].enumerated().map { index, byte in
        byte ^ UInt8(truncatingIfNeeded: (header.mask ?? 0) >> UInt32(24 - index % 4 * 8))
      }
      frames.append(Frame(header: header, payload: payload))
      at = end
    }
    return nil
  }

  /// The log of a conversation whose caller does nothing, up to its end.
  func log(messageBytesMax: Int) -> [WebSocketConversation.Entry] {
    typealias Entry = WebSocketConversation.Entry
    var log: [Entry] = []
    func failed(_ error: WebSocketError, _ code: UInt16) -> [Entry] {
      log + [.write(.close, [UInt8(code >> 8), UInt8(code & 255)]), .fail(error), .closeConnection]
    }
    var message = WebSocketMessage(.binary, [])
    var isCompressed = false
    for frame in frames {
      let header = frame.header
      if [.close, .ping, .pong].contains(header.opcode) {
        guard frame.isWhole else { break }
        if header.opcode == .ping { log.append(.write(.pong, frame.payload)) }
        guard header.opcode == .close else { continue }
        let code = frame.payload.count < 2 ? 0 : UInt16(frame.payload[0]) * 256 + UInt16(frame.payload[1])
        if frame.payload.count == 1 { return failed(.closeTooShort, 1002) }
        if !frame.payload.isEmpty {
          let isAllowed = (1000...1014).contains(code) && ![1004, 1005, 1006].contains(code)
          guard isAllowed || (3000...4999).contains(code) else { return failed(.closeCodeInvalid(code), 1002) }
          guard String(validating: frame.payload[2...], as: UTF8.self) != nil else { return failed(.invalidUTF8, 1007) }
        }
        guard let close = try? WebSocketClose(payload: frame.payload), close.payload == frame.payload else { break }
        return log + [.write(.close, Array(frame.payload.prefix(2))), .complete(close, .peer), .closeConnection]
      }
      if header.opcode != .continuation {
        message = WebSocketMessage(header.opcode == .text ? .text : .binary, [])
        isCompressed = header.isCompressed
      }
      let tooBig = WebSocketError.messageTooBig(limit: messageBytesMax)
      if !isCompressed, header.length > messageBytesMax - message.bytes.count { return failed(tooBig, 1009) }
      message.bytes += frame.payload
      let isText = message.kind == .text
      if isText, !Self.beginsText(message.bytes.prefix(messageBytesMax)) { return failed(.invalidUTF8, 1007) }
      if message.bytes.count > messageBytesMax { return failed(tooBig, 1009) }
      guard frame.isWhole else { break }
      guard header.isFinal else { continue }
      if isText, String(validating: message.bytes, as: UTF8.self) == nil { return failed(.invalidUTF8, 1007) }
      log.append(.message(message))
    }
    if let error { return failed(.frameInvalid(error), 1002) }
    return log + [.fail(.endedWithoutClose), .closeConnection]
  }

  /// Whether some bytes behind `bytes` make them valid UTF-8.
  static func beginsText(_ bytes: some Sequence<UInt8>) -> Bool {
    let ends: [[UInt8]] = [0x80, 0x90, 0xa0].flatMap { [[$0], [$0, 0x80], [$0, 0x80, 0x80]] }
    return ([[]] + ends).contains { String(validating: Array(bytes) + $0, as: UTF8.self) != nil }
  }
}
