import LarkspurBytes
import Testing

@Suite struct RecordReaderTests {
  private static func record() -> [UInt8] {
    var writer = RecordWriter()
    writer.number(UInt8(0xfe))
    writer.number(UInt32(0x1234_5678))
    writer.number(UInt64.max - 1)
    writer.text("é")
    writer.data([1, 2, 3])
    writer.optional(nil)
    writer.optional("")
    return writer.bytes
  }

  /// Reads the parts of `record()`.
  ///
  /// - Returns: Whether all parts were there.
  private static func read(_ bytes: [UInt8]) -> Bool {
    var reader = RecordReader(bytes: bytes[...])
    guard reader.number(UInt8.self) == 0xfe, reader.number(UInt32.self) == 0x1234_5678,
      reader.number(UInt64.self) == .max - 1, reader.text() == "é", reader.data() == [1, 2, 3],
      let none = reader.optional(), none.text == nil, let empty = reader.optional(), empty.text == ""
    else { return false }
    return reader.isAtEnd
  }

  @Test func whatIsWrittenIsRead() {
    #expect(Self.record()[1..<5] == [0x78, 0x56, 0x34, 0x12])
    #expect(Self.read(Self.record()))
  }

  @Test func everyPrefixIsIncomplete() {
    let bytes = Self.record()
    for count in 0..<bytes.count { #expect(!Self.read(Array(bytes.prefix(count))), "\(count) bytes") }
  }

  /// A size larger than the rest, text that is not UTF-8, and a flag that is neither 0 nor 1 are refused.
  @Test func damage() {
    var tooLong = RecordReader(bytes: [0xff, 0xff, 0xff, 0xff, 1])
    #expect(tooLong.data() == nil)
    var notUTF8 = RecordReader(bytes: [3, 0, 0, 0, 0xf0, 0x9f, 0x98])
    #expect(notUTF8.text() == nil)
    var flag = RecordReader(bytes: [2, 0, 0, 0, 0])
    #expect(flag.optional() == nil)
  }
}
