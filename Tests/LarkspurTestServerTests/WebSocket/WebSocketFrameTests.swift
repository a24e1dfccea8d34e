import LarkspurTestServer
import Testing

@Suite struct WebSocketFrameTests {
  typealias Frame = TestServer.WebSocketFrame

  @Test(
    arguments: [
      // RFC 6455, section 5.7.
      (Frame(.text, "Hello"), [0x81, 5, 0x48, 0x65, 0x6c, 0x6c, 0x6f]),
      (
        Frame(.text, "Hello", mask: 0x37fa_213d),
        [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]
      ),
      (Frame(.text, "Hel", isFinal: false), [0x01, 3, 0x48, 0x65, 0x6c]),
      (Frame(.continuation, "lo"), [0x80, 2, 0x6c, 0x6f]),
      (Frame(3), [0x83, 0]),
      (Frame(31, reservedBits: 15), [0xff, 0]),
      (Frame(.text, reservedBits: 4), [0xc1, 0]),
      (Frame(.text, reservedBits: 2), [0xa1, 0]),
      (Frame(.text, reservedBits: 1), [0x91, 0]),
      (Frame(.binary, [7], lengthForm: .bits16), [0x82, 126, 0, 1, 7]),
      (Frame(.binary, [7], lengthForm: .bits64), [0x82, 127, 0, 0, 0, 0, 0, 0, 0, 1, 7]),
      (Frame(.binary, length: 300, lengthForm: .bits7), [0x82, 44]),
      (Frame(.binary, length: 65_536), [0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
      (Frame(.binary, length: .max), [0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255]),
    ] as [(Frame, [UInt8])])
  func bytes(frame: Frame, bytes: [UInt8]) { #expect(frame.bytes == bytes) }

  @Test(
    arguments: [
      (0, [0]), (125, [125]), (126, [126, 0, 126]), (65_535, [126, 255, 255]), (65_536, [127, 0, 0, 0, 0, 0, 1, 0, 0]),
    ] as [(Int, [UInt8])])
  func theShortestLength(count: Int, bytes: [UInt8]) {
    let payload = TestServer.content(count: count)
    #expect(Frame(.binary, payload).bytes == [0x82] + bytes + payload)
  }
}
