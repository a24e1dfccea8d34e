import LarkspurBytes
import LarkspurHTTP
import LarkspurTLS
import LarkspurTestServer
import Testing

/// A WebSocket client that blocks, on Larkspur's frame parser and writer.
final class WebSocketClient {
  struct Frame: Hashable {
    var opcode: WebSocketOpcode
    var payload: [UInt8]
    var isFinal = true
    var isCompressed = false

    init(_ opcode: WebSocketOpcode, _ payload: [UInt8], isFinal: Bool = true, isCompressed: Bool = false) {
      self.opcode = opcode
      self.payload = payload
      self.isFinal = isFinal
      self.isCompressed = isCompressed
    }

    init(_ opcode: WebSocketOpcode, _ text: String, isFinal: Bool = true) {
      self.init(opcode, Array(text.utf8), isFinal: isFinal)
    }

    static func close(_ code: UInt16, _ reason: String = "") -> Frame {
      Frame(.close, [UInt8(code >> 8), UInt8(code & 0xff)] + Array(reason.utf8))
    }
  }

  let raw: RawClient
  let response: RawClient.Response
  /// The outcome of the client's check of the response.
  let agreement: Result<WebSocketAgreement, WebSocketHandshakeError>
  private var parser = WebSocketFrameParser(role: .client, allowsCompression: true)
  private var bytes: [UInt8] = []
  private var position = 0
  /// The masking key of the next frame.
  private(set) var mask: UInt32 = 0x0102_0304

  /// Sends an opening handshake, and reads the response.
  init(
    _ raw: RawClient, _ path: String = "/", protocols: [String] = [], offersCompression: Bool = false,
    extensions: String? = nil
  ) throws {
    self.raw = raw
    let handshake = try WebSocketHandshake(
      nonce: [UInt8](1...16), protocols: protocols, offersCompression: offersCompression,
      sha1: { MessageDigest.of($0, .sha1) })
    var fields = handshake.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    if let extensions { fields += "Sec-WebSocket-Extensions: \(extensions)\r\n" }
    try raw.request("GET", path, fields)
    let response = try raw.response()
    self.response = response
    agreement = Result { () throws(WebSocketHandshakeError) in
      try handshake.check(status: response.status) { name in response.fields(name) }
    }
  }

  convenience init(
    _ server: TestServer, _ path: String = "/", protocols: [String] = [], offersCompression: Bool = false,
    extensions: String? = nil
  ) throws {
    try self.init(
      RawClient(server), path, protocols: protocols, offersCompression: offersCompression, extensions: extensions)
  }

  func send(_ frame: Frame) throws {
    var output: [UInt8] = []
    WebSocketFrameWriter.append(
      frame.opcode, isFinal: frame.isFinal, isCompressed: frame.isCompressed, payload: frame.payload.span, mask: mask,
      to: &output)
    mask &+= 0x0101_0101
    try raw.send(output)
  }

  func send(_ opcode: WebSocketOpcode, _ text: String) throws { try send(Frame(opcode, text)) }

  /// Reads the next frame.
  ///
  /// - Returns: The frame, or `nil` at the end of the stream.
  /// - Throws: `WebSocketFrameError` for a frame that breaks the rules.
  func receive() throws -> Frame? {
    var header: WebSocketFrameHeader?
    var payload: [UInt8] = []
    while true {
      let piece = bytes
      switch try parser.next(in: piece.span, consumed: &position) {
      case .needMore:
        bytes = try raw.receive(atMost: 1 << 16)
        position = 0
        if bytes.isEmpty { return nil }
      case .frame(let next): header = next
      case .payload(let range, let endsFrame):
        payload += piece[range]
        guard endsFrame, let header else { continue }
        return Frame(header.opcode, payload, isFinal: header.isFinal, isCompressed: header.isCompressed)
      }
    }
  }

  /// Reads all frames up to the end of the stream.
  func receiveAll() throws -> [Frame] {
    var frames: [Frame] = []
    while let frame = try receive() { frames.append(frame) }
    return frames
  }
}

extension RawClient.Response {
  /// Returns the values of all fields with a name.
  func fields(_ name: String) -> [String] {
    head.split(separator: "\r\n").dropFirst().filter { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
      .map { String($0.dropFirst(name.count + 2)) }
  }
}
