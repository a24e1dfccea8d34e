import LarkspurHTTP
import Testing

@Suite struct WebSocketCloseTests {
  /// RFC 6455 7.4 and the registry of close codes.
  @Test func codes() {
    let allowed = Set<Int>([1000, 1001, 1002, 1003] + Array(1007...1014) + Array(3000...4999))
    var wrong: [Int] = []
    for code in 0...65535 where WebSocketClose.mayBeSent(UInt16(code)) != allowed.contains(code) { wrong.append(code) }
    #expect(wrong == [])
  }

  @Test(arguments: [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535] as [UInt16]) func invalidCode(code: UInt16)
  {
    let payload = [UInt8(code >> 8), UInt8(code & 255)]
    #expect(throws: WebSocketError.closeCodeInvalid(code)) { try WebSocketClose(payload: payload) }
    #expect(WebSocketClose(fitting: code, reason: [65]) == .empty)
  }

  @Test func payloads() throws {
    #expect(try WebSocketClose(payload: []) == .empty)
    #expect(WebSocketClose.empty.payload == [])
    #expect(throws: WebSocketError.closeTooShort) { try WebSocketClose(payload: [3]) }
    let payload = [0x03, 0xe8] + Array("Ende ✓".utf8)
    let close = try WebSocketClose(payload: payload)
    #expect(close.code == 1000 && close.reason == Array("Ende ✓".utf8) && close.payload == payload)
    #expect(throws: WebSocketError.invalidUTF8) { try WebSocketClose(payload: [0x03, 0xe8, 0xff]) }
    #expect(throws: WebSocketError.invalidUTF8) { try WebSocketClose(payload: [0x03, 0xe8, 0x61, 0xe2, 0x82]) }
  }

  /// 123 bytes fit, and one more does not.
  @Test func longReasons() {
    let text = [UInt8](repeating: 0x61, count: 124)
    #expect(WebSocketClose(fitting: 4000, reason: Array(text.prefix(123))).payload.count == 125)
    #expect(WebSocketClose(fitting: 4000, reason: text).payload.count == 125)
    // A character is not cut in two.
    let euro = [UInt8](repeating: 0x61, count: 122) + Array("€".utf8)
    #expect(WebSocketClose(fitting: 4000, reason: euro).reason == Array(euro.prefix(122)))
    #expect(WebSocketClose(fitting: 4000, reason: [0x61, 0xff, 0x62]).reason == [0x61])
    #expect(WebSocketClose(fitting: 4000, reason: [0xe2, 0x82]).reason == [])
    #expect(WebSocketClose(fitting: nil, reason: [0x61]) == .empty)
  }
}
