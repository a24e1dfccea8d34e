import Testing

@testable import AFNetworking

@Suite struct JSONPointerTests {
  /// The examples of RFC 6901, section 5, and tokens that a parser by characters would split wrongly.
  @Test(arguments: [
    ("", []), ("/foo", ["foo"]), ("/foo/0", ["foo", "0"]), ("/", [""]), ("/a~1b", ["a/b"]), ("/c%d", ["c%d"]),
    ("/e^f", ["e^f"]), ("/g|h", ["g|h"]), ("/i\\j", ["i\\j"]), ("/k\"l", ["k\"l"]), ("/ ", [" "]), ("/m~0n", ["m~n"]),
    ("//", ["", ""]), ("/a/", ["a", ""]), ("/~01", ["~1"]), ("/~10", ["/0"]), ("/~0~1~0", ["~/~"]),
    // A combining accent behind a slash, which is one character with it, and behind a tilde.
    ("/\u{301}a", ["\u{301}a"]), ("/~0\u{301}", ["~\u{301}"]), ("/é/ü", ["é", "ü"]), ("/\0", ["\0"]),
  ])
  func reads(text: String, tokens: [String]) throws {
    let pointer = try JSONPointer(text)
    #expect(pointer.text == text)
    #expect(pointer.tokens.count == tokens.count)
    #expect(zip(pointer.tokens, tokens).allSatisfy { $0.utf8.elementsEqual($1.utf8) }, "\(pointer.tokens)")
  }

  @Test(arguments: [
    "a", "foo/bar", " /a", "#/a", "#", "~", "/~", "/~2", "/a~", "/a~/b", "/~~0", "\u{301}/a", "/~\u{301}0",
  ])
  func refuses(text: String) {
    #expect(throws: AFJSONPatchError.Reason.invalidPointer(text)) { try JSONPointer(text) }
  }

  /// Section 4: digits, and no leading zero.
  @Test(
    arguments: [
      ("0", 0), ("1", 1), ("10", 10), ("9223372036854775807", .max), ("00", nil), ("01", nil), ("-1", nil), ("+1", nil),
      ("", nil), ("-", nil), ("1e0", nil), (" 1", nil), ("1.0", nil), ("0x1", nil), ("1_000", nil), ("٣", nil),
      ("9223372036854775808", nil), ("99999999999999999999999999", nil),
    ] as [(String, Int?)])
  func indexes(token: String, index: Int?) { #expect(JSONPointer.index(token) == index) }

  @Test func relations() throws {
    let pointers = try ["", "/a", "/a/b", "/ab", "/a~1b", "/a/b/c", "/"].map { text throws in try JSONPointer(text) }
    for outer in pointers {
      for inner in pointers {
        let isWithin = inner.tokens.count > outer.tokens.count && inner.tokens.starts(with: outer.tokens)
        #expect(outer.contains(inner) == isWithin, "\(outer.text) \(inner.text)")
        #expect(outer.isEqual(to: inner) == (outer.text == inner.text))
      }
    }
    // Two names that differ by normalization only.
    #expect(try !JSONPointer("/\u{e9}").isEqual(to: JSONPointer("/e\u{301}")))
    #expect(try !JSONPointer("/\u{e9}").contains(JSONPointer("/e\u{301}/a")))
  }
}
