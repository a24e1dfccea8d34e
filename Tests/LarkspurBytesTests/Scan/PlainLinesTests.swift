import LarkspurBytes
import TestKit
import Testing

/// The fast paths for plain lines accept only plain lines and read them correctly. The parser's tests check that a head
/// reads the same with and without the fast paths, which byte-by-byte input never enters.
@Suite struct PlainLinesTests {
  private struct Line: Equatable {
    var name: String
    var value: String
  }

  private struct Taken {
    var next = 0
    var lines: [Line] = []
  }

  private static func plainLines(
    _ bytes: [UInt8], from start: Int = 0, base: Int = 0, end: Int = .max / 2, lineBytesMax: Int = 1000,
    fieldsMax: Int = 1000
  ) -> Taken {
    var table = FieldTable()
    var taken = Taken()
    taken.next = Scan.plainFieldLines(
      in: bytes.span, from: start, base: base, end: end, lineBytesMax: lineBytesMax, fieldsMax: fieldsMax, into: &table)
    for index in 0..<table.count {
      let section = Array(bytes[base...])
      taken.lines.append(
        Line(
          name: String(decoding: section[table[index].name], as: UTF8.self),
          value: String(decoding: section[table[index].value], as: UTF8.self)))
    }
    return taken
  }

  private static func statusLine(_ text: String, from start: Int = 0) -> [Int]? {
    Scan.plainStatusLine(in: Array(text.utf8).span, from: start).map { [$0.minorVersion, $0.status, $0.reasonEnd] }
  }

  private static let rest = "\r\nand enough behind it to load sixteen and thirty-two bytes"

  // MARK: - Status line

  @Test func plainStatusLines() {
    #expect(Self.statusLine("HTTP/1.1 200 OK\(Self.rest)") == [1, 200, 15])
    #expect(Self.statusLine("HTTP/1.0 999 \(Self.rest)") == [0, 999, 13])
    #expect(Self.statusLine("HTTP/1.9 100 a\tb: größe\(Self.rest)") == [1, 100, 25])
    #expect(Self.statusLine("xxxHTTP/1.1 200 OK\(Self.rest)", from: 3) == [1, 200, 18])
  }

  /// Lines that are not plain are left to the state machine, which may refuse them.
  @Test func otherStatusLines() {
    for line in [
      "HTTP/1.1 200", "HTTP/1.1 099 OK", "HTTP/1.1 2000 OK", "HTTP/1.1 20 OK", "HTTP/1.1  200 OK", "HTTP/1.x 200 OK",
      "HTTP/2.1 200 OK",
      "http/1.1 200 OK", "HTTP/1.1\t200 OK", "HTTP/1.1 200\tOK", "HTTP/1.1 200 O\0K", "HTTP/1.1 200 O\rK",
      "HTTP/1.1 200 O\nK",
      "HTTP/1.1 2/0 OK", "HTTP/1.1 20: OK", "HTTP/1.: 200 OK", "HTTP/1./ 200 OK",
    ] {
      #expect(Self.statusLine("\(line)\(Self.rest)") == nil, "\(line)")
    }
    for count in 0..<17 { #expect(Self.statusLine(String("HTTP/1.1 200 OK\r\n".prefix(count))) == nil) }
    #expect(Self.statusLine("HTTP/1.1 200 OK\(Self.rest)", from: -1) == nil)
    #expect(Self.statusLine("HTTP/1.1 200 OK\(Self.rest)", from: 1000) == nil)
  }

  // MARK: - Field lines

  @Test func plainFieldLines() {
    let text =
      "Server: nginx\r\nEmpty:\r\nBlank: \t \r\nTight:x\r\nWide:  \ta b\t \r\nUnder_score-1: größe\r\n.a'b!|~9: y\(Self.rest)"
    let taken = Self.plainLines(Array(text.utf8))
    #expect(
      taken.lines == [
        Line(name: "Server", value: "nginx"), Line(name: "Empty", value: ""), Line(name: "Blank", value: ""),
        Line(name: "Tight", value: "x"), Line(name: "Wide", value: "a b"), Line(name: "Under_score-1", value: "größe"),
        Line(name: ".a'b!|~9", value: "y"),
      ])
    #expect(taken.next == text.utf8.count - Self.rest.utf8.count + 2)
  }

  @Test(arguments: [
    ": x", "A : x", "A\t: x", "A", "A(b: x", "A\u{e9}: x", "A\0: x", "A: \0", "A: x\ry", "A: x\ny", "A: x\u{7f}",
    "A: x\r\n y",
    "A: x\r\n\ty", "A:\n", "\r\nA: x", "A: x\r",
  ])
  func otherFieldLines(line: String) {
    let text = "First: 1\r\n\(line)\(Self.rest)"
    let taken = Self.plainLines(Array(text.utf8))
    #expect(taken.lines == [Line(name: "First", value: "1")])
    #expect(taken.next == 10)
  }

  /// A line whose next line is a fold is not plain.
  @Test(arguments: [" A: x", "\tA: x", " "]) func folds(line: String) {
    let taken = Self.plainLines(Array("First: 1\r\nSecond: 2\r\n\(line)\(Self.rest)".utf8))
    #expect(taken.lines == [Line(name: "First", value: "1")])
    #expect(taken.next == 10)
    #expect(Self.plainLines(Array("\(line)\(Self.rest)".utf8)).lines == [])
  }

  @Test func limits() {
    let text = Array("First: 1\r\nSecond: 22\r\nThird: 333\(Self.rest)".utf8)
    for (lineBytesMax, count) in [(7, 0), (8, 1), (9, 1), (10, 3), (11, 3)] {
      #expect(Self.plainLines(text, lineBytesMax: lineBytesMax).lines.count == count, "lines of \(lineBytesMax) bytes")
    }
    for fieldsMax in 0..<3 { #expect(Self.plainLines(text, fieldsMax: fieldsMax).lines.count == fieldsMax) }
    // A line is accepted only if a byte follows it before the end of the input.
    let long = Array("A-name-that-is-sixteen-long: 1\r\nB-name-that-is-sixteen-long: 2\r\n\r\n".utf8)
    for end in 0...long.count {
      let count = Self.plainLines(long, end: end).lines.count
      #expect(count == (end > 64 ? 2 : end > 32 ? 1 : 0), "end \(end)")
    }
  }

  /// The fast path agrees with a simple split into lines, from any start to any end.
  @Test func randomLines() {
    var random = SeededGenerator(for: "PlainLinesTests.randomLines")
    let nameLetters = Array("aZ09-_abcdefgh.~!".utf8)
    let valueLetters = Array("aZ 09:;\t=,\"()".utf8) + [0xc3, 0xa9]
    let odd: [UInt8] = [0, 9, 10, 13, 32, 58, 127, 46, 255]
    for round in 0..<3000 {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0...20, using: &random) {
        for _ in 0..<Int.random(in: 1...20, using: &random) {
          bytes.append(nameLetters.randomElement(using: &random) ?? 0)
        }
        bytes.append(0x3a)
        for _ in 0..<Int.random(in: 0...50, using: &random) {
          bytes.append(valueLetters.randomElement(using: &random) ?? 0)
        }
        bytes += [13, 10]
      }
      bytes += [13, 10]
      let base = Int.random(in: 0...5, using: &random)
      bytes = [UInt8](repeating: 0x78, count: base) + bytes
      if round % 2 == 1 {
        bytes[Int.random(in: base..<bytes.count, using: &random)] = odd.randomElement(using: &random) ?? 0
      }
      let end =
        Int.random(in: 0..<8, using: &random) == 0 ? Int.random(in: base...bytes.count, using: &random) : bytes.count
      let fieldsMax = Int.random(in: 0...25, using: &random)
      let lineBytesMax = Int.random(in: 10...100, using: &random)
      let taken = Self.plainLines(
        bytes, from: base, base: base, end: end, lineBytesMax: lineBytesMax, fieldsMax: fieldsMax)

      var start = base
      var expected: [Line] = []
      while expected.count < taken.lines.count {
        guard let cr = bytes[start...].firstIndex(of: 13), cr + 2 < end, bytes[cr + 1] == 10 else { break }
        let line = bytes[start..<cr]
        guard let colon = line.firstIndex(of: 0x3a), colon > start, line.count <= lineBytesMax, bytes[cr + 2] != 32,
          bytes[cr + 2] != 9,
          line[..<colon].allSatisfy(Scan.isToken), line.allSatisfy(Scan.isFieldValueByte)
        else { break }
        let isBlank = { (byte: UInt8) in byte == 32 || byte == 9 }
        let value = line[(colon + 1)...].drop(while: isBlank).reversed().drop(while: isBlank).reversed()
        expected.append(
          Line(
            name: String(decoding: line[..<colon], as: UTF8.self), value: String(decoding: Array(value), as: UTF8.self))
        )
        start = cr + 2
      }
      #expect(
        taken.lines == expected && taken.next == start && taken.lines.count <= fieldsMax,
        "seed \(random.seed), round \(round): \(String(decoding: bytes, as: UTF8.self).debugDescription)")
    }
  }

  /// For any prefix of a head, in an allocation of exactly that size, the fast path reads nothing past the end, and
  /// accepts the first lines of the whole head and no others.
  @Test func everyStartOfAHead() {
    let head = Array(
      "Server: nginx\r\nDate: Fri, 20 Nov 2026 10:00:00 GMT\r\nContent-Length: 13\r\n\r\nHello, world!".utf8)
    let all = Self.plainLines(head)
    #expect(all.lines.count == 3)
    for count in 0...head.count {
      let part = Self.plainLines(Array(head[..<count]))
      #expect(all.lines.starts(with: part.lines))
      #expect(part.next <= count)
    }
  }
}

@Suite struct FieldTableTests {
  @Test func growsAndForgets() {
    var table = FieldTable()
    for round in 0..<2 {
      for index in 0..<100 { table.append(FieldPosition(name: index..<index + 1, value: index + 2..<index + 3)) }
      let count = table.count
      #expect(count == 100, "round \(round)")
      #expect((0..<100).allSatisfy { table[$0].name == $0..<$0 + 1 && table[$0].value == $0 + 2..<$0 + 3 })
      table.removeAll()
      #expect(table.count == 0)
    }
  }

  @Test func aFoldExtendsTheLastValue() {
    var table = FieldTable()
    table.extendLast(from: 1, to: 2)
    #expect(table.count == 0, "there is none")
    table.append(FieldPosition(name: 0..<1, value: 3..<5))
    table.extendLast(from: 8, to: 10)
    #expect(table[0].value == 3..<10)
    table.append(FieldPosition(name: 12..<13, value: 15..<15))
    table.extendLast(from: 18, to: 20)
    #expect(table[1].value == 18..<20, "what was empty starts at the fold")
  }

  @Test func findsByTheLengthOfNames() {
    var table = FieldTable()
    for count in [5, 10, 17, 31, 32, 40, 10] { table.append(FieldPosition(name: 0..<count, value: 0..<0)) }
    #expect(table.index(from: 0, nameLengths: 1 << 10) == 1)
    #expect(table.index(from: 2, nameLengths: 1 << 10) == 6)
    #expect(table.index(from: 2, nameLengths: 1 << 10 | 1 << 17) == 2)
    #expect(table.index(from: 0, nameLengths: 1 << 9) == 7)
    #expect(table.index(from: 7, nameLengths: 1 << 10) == 7)
  }
}
