import LarkspurBytes
import LarkspurHTTP
import Testing

/// The cutting of bytes into lines. `EventStreamParserTests` cut streams at all places.
@Suite struct LineCutterTests {
  /// Cuts pieces into lines; the last one may have no end.
  private func lines(_ pieces: [String], limit: Int = 100) throws -> [String] {
    var cutter = LineCutter(lineBytesMax: limit)
    var lines: [String] = []
    for piece in pieces.map({ Array($0.utf8) }) {
      var position = 0
      while let part = try cutter.next(in: piece.span, from: &position) {
        let line = cutter.take(endingWith: piece.span.extracting(part))
        lines.append(String(decoding: line, as: UTF8.self))
        cutter.reuse(line)
      }
      #expect(position == piece.count)
    }
    return lines + [String(decoding: cutter.beginning, as: UTF8.self)]
  }

  @Test(
    arguments: [
      ([], [""]), (["a\nb\rc\r\nd"], ["a", "b", "c", "d"]), (["\n\r\r\n"], ["", "", "", ""]),
      (["a\r", "\nb"], ["a", "b"]),
      (["a\r", "\n"], ["a", ""]), (["a\r", "", "\n\n"], ["a", "", ""]), (["a", "b", "c\n"], ["abc", ""]),
      (["a\r", "b\r\n"], ["a", "b", ""]),
    ] as [([String], [String])])
  func endings(pieces: [String], expected: [String]) throws {
    #expect(try lines(pieces) == expected)
  }

  @Test func theLimit() throws {
    #expect(try lines(["abc\nde", "f"], limit: 3) == ["abc", "def"])
    for pieces in [["abcd\n"], ["ab", "cd"], ["abcd"]] {
      #expect(throws: LineCutter.TooLong.self) { try lines(pieces, limit: 3) }
    }
  }
}
