import FuzzOracles
import LarkspurBytes
import LarkspurHTTP
import Testing

@Suite struct FieldLineTests {
  private func fields(_ lines: String, sourceLocation: SourceLocation = #_sourceLocation) -> [Transcript.Field]? {
    read("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n", sourceLocation: sourceLocation).heads.first?.fields
  }

  private func error(_ lines: String, sourceLocation: SourceLocation = #_sourceLocation) -> ResponseError? {
    read("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n", sourceLocation: sourceLocation).error
  }

  @Test func valuesAreTrimmedAndKept() {
    #expect(
      fields(
        "Server:nginx\r\nEmpty:\r\nBlank: \t \r\nTabs:\tx\t\r\nInner: a  b\tc \r\nColons: a:b::c\r\nList: ,, 1,, 2,,")
        == [
          .init(name: "Server", value: "nginx"), .init(name: "Empty", value: ""), .init(name: "Blank", value: ""),
          .init(name: "Tabs", value: "x"), .init(name: "Inner", value: "a  b\tc"),
          .init(name: "Colons", value: "a:b::c"),
          .init(name: "List", value: ",, 1,, 2,,"),
        ])
  }

  @Test func orderAndRepeatsAreKept() {
    #expect(
      fields("Foo: 1\r\nBar: 2\r\nfoo: 3") == [
        .init(name: "Foo", value: "1"), .init(name: "Bar", value: "2"), .init(name: "foo", value: "3"),
      ])
  }

  @Test func everyTokenCharacterMayStandInAName() {
    let name = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    #expect(fields("\(name): x") == [.init(name: name, value: "x")])
  }

  @Test(arguments: UInt8.min ... .max) func everyByteInAName(byte: UInt8) {
    let transcript = read(Array("HTTP/1.1 200 OK\r\nX-".utf8) + [byte] + Array("Y: z\r\n\r\n".utf8))
    let isToken =
      (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
      || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    let expected: ResponseError? =
      switch byte {
      case UInt8(ascii: ":"): nil
      case _ where isToken: nil
      case UInt8(ascii: " "), UInt8(ascii: "\t"): .whitespaceInFieldName
      case UInt8(ascii: "\n"): .bareLF
      default: .fieldNameInvalid
      }
    #expect(transcript.error == expected)
  }

  @Test(arguments: UInt8.min ... .max) func everyByteInAValue(byte: UInt8) {
    let transcript = read(Array("HTTP/1.1 200 OK\r\nX: a".utf8) + [byte] + Array("b\r\n\r\n".utf8))
    let expected: ResponseError? =
      switch byte {
      case UInt8(ascii: "\t"): nil
      case UInt8(ascii: "\r"): .bareCR
      case UInt8(ascii: "\n"): .bareLF
      case 0..<0x20, 0x7f: .fieldValueInvalid
      default: nil
      }
    #expect(transcript.error == expected)
  }

  @Test(arguments: ["X : y", "X\t: y", "X Y: z", "X y", "Content-Length : 3"]) func whitespaceInAName(line: String) {
    #expect(error(line) == .whitespaceInFieldName)
    #expect(error("A: b\r\n\(line)") == .whitespaceInFieldName)
  }

  @Test(arguments: [": y", "X", "X\0: y", "X(y): z", "\"X\": y", "Grö: y", "X@y: z", "X/y: z"]) func otherNames(
    line: String
  ) {
    #expect(error(line) == .fieldNameInvalid)
    #expect(error("A: b\r\n\(line)") == .fieldNameInvalid)
  }

  @Test(arguments: [" X: y", "\tX: y", " ", "\t", " \r\nX: y"]) func whitespaceBeforeTheFirstField(line: String) {
    #expect(error(line) == .whitespaceBeforeFirstField)
  }

  @Test func valuesThatAreNotUTF8AreLatin1() {
    let line = Array("X: caf".utf8) + [0xe9] + Array("\r\nY: café\r\n\r\n".utf8)
    #expect(
      read(Array("HTTP/1.1 200 OK\r\n".utf8) + line).heads.first?.fields == [
        .init(name: "X", value: "café"), .init(name: "Y", value: "café"),
      ])
  }

  // MARK: - Folded lines

  @Test(arguments: [
    ("X: a\r\n b", "a b"), ("X: a\r\n\tb", "a b"), ("X: a \t\r\n \t b \r\n c", "a b c"), ("X:\r\n a", "a"),
    ("X:\r\n \r\n\t\r\n a", "a"), ("X: a\r\n ", "a"), ("X: a\r\n \r\n b", "a b"), ("X:\r\n ", ""),
    ("X: a\r\n : b", "a : b"),
    ("X: a\r\n Y: b", "a Y: b"),
  ])
  func aFoldIsOneSpace(lines: String, value: String) {
    #expect(fields("\(lines)\r\nZ: z") == [.init(name: "X", value: value), .init(name: "Z", value: "z")])
  }

  @Test func aFoldIsHeldToTheSameRules() {
    #expect(error("X: a\r\n b\0") == .fieldValueInvalid)
    #expect(error("X: a\r\n \u{b}b") == .fieldValueInvalid)
    #expect(error("X: a\r\n b\nc") == .bareLF)
    #expect(error("X: a\r\n b\rc") == .bareCR)
  }

  @Test func aFoldedLengthIsRead() {
    #expect(read("HTTP/1.1 200 OK\r\nContent-Length:\r\n 2\r\n\r\nhi").lines.suffix(2) == ["body hi", "end"])
    #expect(error("Content-Length: 1\r\n 2") == .contentLengthInvalid)
    #expect(error("Transfer-Encoding: chunked\r\n abc") == .transferCodingUnsupported)
  }

  @Test func aFoldAfterAFoldableNothing() {
    // The empty line is CRLF and nothing else.
    #expect(read("HTTP/1.1 200 OK\r\nX: a\r\n \r\n").error == .truncated(.head))
  }

  // MARK: - The table

  @Test func fieldsAreFoundInAnyLetterCase() throws {
    let bytes = Array("HTTP/1.1 200 OK\r\nSET-cookie: a\r\nSet-Cookie: b\r\n\r\n".utf8)
    var parser = ResponseParser()
    _ = parser.start(.get)
    var consumed = 0
    _ = try parser.next(in: bytes.span, consumed: &consumed)
    let found = parser.head.fields.first(named: "set-cookie", in: bytes.span)
    let missing = parser.head.fields.first(named: "set-cooki", in: bytes.span)
    let value = try #require(found).value
    #expect(String(decoding: bytes[value], as: UTF8.self) == "a")
    #expect(missing == nil)
  }
}
