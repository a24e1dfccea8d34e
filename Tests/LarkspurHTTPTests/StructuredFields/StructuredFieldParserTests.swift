import LarkspurHTTP
import TestKit
import Testing

@Suite struct StructuredFieldParserTests {
  @Test(
    arguments: [
      ("0", .integer(0)), ("-0", .integer(0)), ("42", .integer(42)), ("-7", .integer(-7)), ("007", .integer(7)),
      ("999999999999999", .integer(StructuredItem.integerMax)), ("  5  ", .integer(5)),
      ("5;a;b=?0;c=\"x\"", .integer(5)),
      ("5; a=1", .integer(5)), ("1.5", .decimal(thousandths: 1500)), ("-0.125", .decimal(thousandths: -125)),
      ("123456789012.1", .decimal(thousandths: 123_456_789_012_100)), ("?1", .boolean(true)), ("?0", .boolean(false)),
      ("\"a\\\"b\\\\\"", .string("a\"b\\")), ("\"\"", .string("")), ("*a:/b", .token("*a:/b")),
      ("Abc!", .token("Abc!")),
      (":aGk=:", .byteSequence([104, 105])), (":aGk:", .byteSequence([104, 105])), ("::", .byteSequence([])),
      ("@1659578233", .date(1_659_578_233)), ("%\"f%c3%bc\"", .displayString("fü")),
    ] as [(String, StructuredItem)])
  func items(text: String, item: StructuredItem) { #expect(StructuredFieldParser.item([text]) == item) }

  @Test(arguments: [
    "", " ", "-", "--1", "+1", "1-", "1 2", "1,", "1, 2", "\t1", "1\t", "1000000000000000", "1.", ".5", "1.2345",
    "1234567890123.1", "1.2.3", "0x10", "١", "1;", "1;A", "1;a=", "?2", "?", "?true", "\"a", "\"a\\x\"", "\"\u{1}\"",
    "\"é\"", ":a:", ":a b:", ":aGk=", "@1.5", "@", "%\"%C3\"", "%\"%c3\"", "%\"a", "%a", "é", "(1 2)", "a b", "{",
    "1\0", "\u{7f}",
  ])
  func noItems(text: String) { #expect(StructuredFieldParser.item([text]) == nil) }

  @Test func severalLines() {
    #expect(StructuredFieldParser.item([]) == nil && StructuredFieldParser.dictionary([]) == nil)
    #expect(StructuredFieldParser.item(["1", "1"]) == nil)
    #expect(StructuredFieldParser.dictionary(["a=1", "b, a=2"]) == ["a": .integer(2), "b": .boolean(true)])
  }

  @Test(
    arguments: [
      ("", [:]), ("a", ["a": .boolean(true)]), ("a=1,b=2", ["a": .integer(1), "b": .integer(2)]),
      ("a=1 \t,\t b;x=2, a=3", ["a": .integer(3), "b": .boolean(true)]), ("a=1 ", ["a": .integer(1)]),
      ("a=(1 \"b\";q  ?0 );x", ["a": .innerList([.integer(1), .string("b"), .boolean(false)])]),
      ("a=()", ["a": .innerList([])]), ("*k-_.9=t", ["*k-_.9": .token("t")]),
    ] as [(String, [String: StructuredItem])])
  func dictionaries(text: String, members: [String: StructuredItem]) {
    #expect(StructuredFieldParser.dictionary([text]) == members)
  }

  @Test(arguments: [
    "a=1,", ",a=1", "a=1,,b=2", "A=1", "a =1", "a= 1", "a=", "1=1", "a=1 b=2", "a=(1", "a=(1,2)", "a=((1))",
    "a=(1\"b\")",
    "a;", "é=1", "a=1, b=é",
  ])
  func noDictionaries(text: String) { #expect(StructuredFieldParser.dictionary([text]) == nil) }

  /// Any text has a value or none, and an Integer is within the range.
  @Test func randomText() {
    var random = SeededGenerator(for: "StructuredFieldParserTests.randomText")
    let alphabet = Array("019.-?:\"%\\@()*;=, \tab/\u{e9}")
    for _ in 0..<20_000 {
      let text = String(
        (0..<Int.random(in: 0...12, using: &random)).compactMap { _ in alphabet.randomElement(using: &random) })
      if case .integer(let value)? = StructuredFieldParser.item([text]) {
        #expect(abs(value) <= StructuredItem.integerMax && text.contains(where: \.isNumber))
      }
      if let members = StructuredFieldParser.dictionary([text]) {
        #expect(members.keys.allSatisfy { text.contains($0) })
      }
    }
  }
}
