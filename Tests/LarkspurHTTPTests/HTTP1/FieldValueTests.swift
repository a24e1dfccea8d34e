import LarkspurHTTP
import Testing

@Suite struct FieldValueTests {
  private func text(_ bytes: [UInt8], _ range: Range<Int>? = nil) -> String {
    FieldValue.text(range ?? bytes.indices, in: bytes.span)
  }

  private func text(_ string: String) -> String { text(Array(string.utf8)) }

  @Test func onlyTheRangeIsRead() {
    #expect(text(Array("Name: value\r\n".utf8), 6..<11) == "value")
    #expect(text(Array("Name:\r\n".utf8), 5..<5) == "")
  }

  @Test func aFoldIsOneSpace() {
    #expect(text("a\r\n b") == "a b")
    #expect(text("a \t\r\n\t  b\r\n c") == "a b c")
    #expect(text("a\r\n \r\n \r\n b") == "a b")
    #expect(text("a  b\tc") == "a  b\tc", "white space without a fold stays")
  }

  @Test func textIsUTF8OrElseLatin1() {
    #expect(text("größe €") == "größe €")
    #expect(text([0x67, 0x72, 0xf6, 0xdf, 0x65]) == "größe")
    #expect(text([0xff, 0x80]) == "\u{ff}\u{80}")
    #expect(text([0xc3, 0x28, 0xc3, 0xa9]) == "Ã(Ã©", "one bad sequence makes all of it Latin-1")
    #expect(text([0x61, 0xed, 0xa0, 0x80]) == "aí\u{a0}\u{80}", "surrogates are not UTF-8")
  }
}
