import LarkspurBytes
import TestKit
import Testing

/// The vector searches agree with a loop over single bytes.
@Suite struct ScanTests {
  private static func plainEnd(_ bytes: [UInt8], _ start: Int, _ end: Int, _ accepts: (UInt8) -> Bool) -> Int {
    var index = start
    while index < min(end, bytes.count), accepts(bytes[index]) { index += 1 }
    return index
  }

  // `#expect` does not accept spans, so these helpers take arrays.

  private static func tokenEnd(_ bytes: [UInt8], _ start: Int, _ end: Int) -> Int {
    Scan.endOfToken(in: bytes.span, from: start, to: end)
  }

  private static func valueEnd(_ bytes: [UInt8], _ start: Int, _ end: Int) -> Int {
    Scan.endOfFieldValue(in: bytes.span, from: start, to: end)
  }

  private static func lineEnd(_ bytes: [UInt8], _ start: Int, _ end: Int) -> Int {
    Scan.endOfLine(in: bytes.span, from: start, to: end)
  }

  private static func matches(_ bytes: [UInt8], _ range: Range<Int>, _ word: StaticString) -> Bool {
    CaseInsensitiveToken(word).matches(bytes.span, range)
  }

  @Test func tokenCharactersAreThoseOfTheGrammar() {
    let others = Set("!#$%&'*+-.^_`|~".utf8)
    for byte in UInt8.min ... .max {
      let isAlphanumeric = (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
      #expect(Scan.isToken(byte) == (isAlphanumeric || others.contains(byte)), "byte \(byte)")
    }
  }

  @Test func fieldValuesHoldAllButControls() {
    for byte in UInt8.min ... .max {
      let isControl = byte < 0x20 || byte == 0x7f
      #expect(Scan.isFieldValueByte(byte) == (!isControl || byte == 0x09), "byte \(byte)")
    }
  }

  /// Every byte value is classified correctly at every distance from the start of the search and at every alignment.
  @Test func everyByteAtEveryPlace() {
    var bytes = [UInt8](repeating: UInt8(ascii: "a"), count: 80)
    var wrong: [String] = []
    for start in 0..<40 {
      for index in start..<(start + 40) {
        for byte in UInt8.min ... .max {
          bytes[index] = byte
          let token = Self.tokenEnd(bytes, start, bytes.count)
          let value = Self.valueEnd(bytes, start, bytes.count)
          let line = Self.lineEnd(bytes, start, bytes.count)
          // All other bytes are token characters.
          if token != (Scan.isToken(byte) ? bytes.count : index)
            || value != (Scan.isFieldValueByte(byte) ? bytes.count : index)
            || line != (byte == 10 || byte == 13 ? index : bytes.count)
          {
            wrong.append("byte \(byte) at \(index) from \(start): \(token), \(value), \(line)")
          }
        }
        bytes[index] = UInt8(ascii: "a")
      }
    }
    #expect(wrong == [])
  }

  /// The first byte outside ASCII is found at every place, from every start and before every end.
  @Test func endOfASCII() {
    func end(_ bytes: [UInt8], _ start: Int, _ end: Int) -> Int {
      Scan.endOfASCII(in: bytes.span, from: start, to: end)
    }
    var wrong: [String] = []
    for index in 0..<60 {
      var bytes = [UInt8](repeating: 0x7f, count: 60)
      bytes[index] = index % 2 == 0 ? 0x80 : 0xff
      for start in 0...60 {
        for limit in [start, min(start + 17, 60), 60, 100] {
          let expected = start <= index && index < limit ? index : min(limit, 60)
          if end(bytes, start, limit) != expected { wrong.append("\(index) in \(start)..<\(limit)") }
        }
      }
    }
    #expect(wrong == [])
    #expect(end([], 0, 16) == 0)
  }

  @Test func nothingBeyondTheEndIsLookedAt() {
    // The search ignores a stop byte at `end` or later, and finds one just before `end`.
    for end in 0..<40 {
      let inside = [UInt8](repeating: UInt8(ascii: "x"), count: end)
      let bytes = inside + [UInt8](repeating: 0, count: 40 - end)
      let lines = inside + [UInt8](repeating: 10, count: 40 - end)
      for start in 0...end {
        #expect(Self.tokenEnd(bytes, start, end) == end)
        #expect(Self.valueEnd(bytes, start, end) == end)
        // An end past the span counts as the span's end.
        #expect(Self.tokenEnd(inside, start, 100) == end)
        #expect(Self.valueEnd(inside, start, 100) == end)
        #expect(Self.lineEnd(lines, start, end) == end)
        #expect(Self.lineEnd(lines, start, 40) == end)
        #expect(Self.lineEnd(inside, start, 100) == end)
      }
    }
    let none: [UInt8] = []
    #expect(Self.tokenEnd(none, 0, 0) == 0)
    #expect(Self.valueEnd(none, 0, 16) == 0)
    #expect(Self.lineEnd(none, 0, 16) == 0)
  }

  @Test func randomBytes() {
    var random = SeededGenerator(for: "ScanTests.randomBytes")
    for round in 0..<20_000 {
      // Most bytes continue the search, so that stops occur at all distances.
      let count = Int.random(in: 0...100, using: &random)
      let stops = Int.random(in: 1...40, using: &random)
      let bytes = (0..<count).map { _ in
        Int.random(in: 0..<stops, using: &random) == 0 ? UInt8.random(in: 0...255, using: &random) : UInt8(ascii: "k")
      }
      let start = Int.random(in: 0...count, using: &random)
      let end = Int.random(in: start...count, using: &random)
      let token = Self.tokenEnd(bytes, start, end)
      let value = Self.valueEnd(bytes, start, end)
      #expect(
        token == Self.plainEnd(bytes, start, end, Scan.isToken)
          && value == Self.plainEnd(bytes, start, end, Scan.isFieldValueByte)
          && Self.lineEnd(bytes, start, end) == Self.plainEnd(bytes, start, end) { !Scan.isLineEnd($0) },
        "seed \(random.seed), round \(round): \(bytes) from \(start) to \(end)")
    }
  }

  @Test func wordsMatchInAnyLetterCase() {
    let text = Array("x: Keep-Alive, keep_alive".utf8)
    #expect(Self.matches(text, 3..<13, "keep-alive"))
    #expect(!Self.matches(text, 3..<12, "keep-alive"))
    #expect(!Self.matches(text, 15..<25, "keep-alive"))
    #expect(Self.matches(text, 4..<4, ""))
    #expect(Self.matches([], 0..<0, ""))
    #expect(!Self.matches(text, 15..<35, "keep-alive-0123456789"), "beyond the bytes")
  }

  /// Letters are compared without regard to case by setting one bit in eight bytes at a time. In words of every length,
  /// no byte that is allowed in a field's name or value may match a letter or a hyphen because of that bit, except the
  /// capital letter itself.
  @Test(arguments: [
    "a", "-z", "close-m", "chunked-", "keep-alive", "content-length", "transfer-encoding",
    "abcdefgh-ijklmnop-qrstuvwxyz",
  ])
  func onlyLettersHaveACase(word: String) {
    let words: [String: StaticString] = [
      "a": "a", "-z": "-z", "close-m": "close-m", "chunked-": "chunked-", "keep-alive": "keep-alive",
      "content-length": "content-length", "transfer-encoding": "transfer-encoding",
      "abcdefgh-ijklmnop-qrstuvwxyz": "abcdefgh-ijklmnop-qrstuvwxyz",
    ]
    guard let lowercase = words[word] else { return #expect(Bool(false)) }
    for start in 0..<9 {
      let bytes = [UInt8](repeating: UInt8(ascii: "x"), count: start) + Array(word.utf8)
      for index in start..<bytes.count {
        for byte in UInt8(0x20) ... .max where byte != 0x7f {
          var other = bytes
          other[index] = byte
          let isCapital = bytes[index] != UInt8(ascii: "-") && byte == bytes[index] - 0x20
          let isSame = byte == bytes[index] || isCapital
          #expect(Self.matches(other, start..<bytes.count, lowercase) == isSame, "byte \(byte) at \(index)")
        }
      }
    }
  }
}
