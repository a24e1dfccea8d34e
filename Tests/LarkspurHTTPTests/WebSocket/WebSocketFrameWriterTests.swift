import LarkspurBytes
import LarkspurHTTP
import Testing

@Suite struct WebSocketFrameWriterTests {
  static func frame(
    _ opcode: WebSocketOpcode, _ payload: [UInt8], isFinal: Bool = true, isCompressed: Bool = false,
    mask: UInt32? = nil
  ) -> [UInt8] {
    var output: [UInt8] = [0xee]
    WebSocketFrameWriter.append(
      opcode, isFinal: isFinal, isCompressed: isCompressed, payload: payload.span, mask: mask, to: &output)
    #expect(output.first == 0xee, "the frame is appended")
    return Array(output.dropFirst())
  }

  /// The examples of RFC 6455 5.7.
  @Test func examples() {
    let text = Array("Hello".utf8)
    #expect(Self.frame(.text, text) == [0x81, 0x05] + text)
    #expect(
      Self.frame(.text, text, mask: 0x37fa_213d)
        == [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58])
    #expect(Self.frame(.text, [0x48], isFinal: false) == [0x01, 0x01, 0x48])
    #expect(Self.frame(.continuation, [0x6c]) == [0x80, 0x01, 0x6c])
    #expect(Self.frame(.binary, [], isCompressed: true) == [0xc2, 0x00])
    #expect(Self.frame(.close, []) == [0x88, 0x00])
    #expect(Self.frame(.ping, text).prefix(2) == [0x89, 0x05])
    #expect(Self.frame(.pong, text).prefix(2) == [0x8a, 0x05])
  }

  static let lengths: [(count: Int, header: [UInt8])] = [
    (0, [0x82, 0]), (125, [0x82, 125]), (126, [0x82, 126, 0, 126]), (65535, [0x82, 126, 0xff, 0xff]),
    (65536, [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
  ]

  @Test(arguments: lengths.indices) func length(index: Int) {
    let row = Self.lengths[index]
    let payload = [UInt8](repeating: 0x61, count: row.count)
    #expect(Self.frame(.binary, payload) == row.header + payload)
    let masked = Self.frame(.binary, payload, mask: 0x0102_0304)
    let header = Array(masked.prefix(row.header.count))
    #expect(header[1] == row.header[1] | 0x80 && header.dropFirst(2) == row.header.dropFirst(2))
    #expect(masked.dropFirst(row.header.count).prefix(4) == [1, 2, 3, 4])
    let expected = payload.indices.map { payload[$0] ^ UInt8($0 % 4 + 1) }
    #expect(masked.dropFirst(row.header.count + 4).elementsEqual(expected))
  }

  /// A header of a length that no payload can have.
  @Test func longest() {
    var output: [UInt8] = []
    WebSocketFrameWriter.append(WebSocketFrameHeader(.binary, mask: 1, length: .max), to: &output)
    #expect(output == [0x82, 0xff, 0x7f] + [UInt8](repeating: 0xff, count: 7) + [0, 0, 0, 1])
    #expect(output.count == WebSocketFrameWriter.headerBytesMax)
  }
}
