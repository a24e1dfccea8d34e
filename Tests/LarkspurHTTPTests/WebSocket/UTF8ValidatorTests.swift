import LarkspurHTTP
import TestKit
import Testing

@Suite struct UTF8ValidatorTests {
  /// The number of bytes of the longest beginning of valid UTF-8, found by trying all ends of a character.
  static func naiveValidCount(_ bytes: [UInt8]) -> Int {
    let ends: [[UInt8]] = [[]] + [0x80, 0x90, 0xa0].flatMap { [[$0], [$0, 0x80], [$0, 0x80, 0x80]] }
    return (0...bytes.count).last { count in
      ends.contains { String(validating: Array(bytes[..<count]) + $0, as: UTF8.self) != nil }
    } ?? 0
  }

  static func accepts(_ pieces: [[UInt8]]) -> (isValid: Bool, isComplete: Bool) {
    var validator = UTF8Validator()
    var isValid = true
    for piece in pieces { isValid = validator.accept(piece.span) && isValid }
    return (isValid, validator.isComplete)
  }

  static func check(_ bytes: [UInt8]) -> Bool {
    let validCount = naiveValidCount(bytes)
    let isWhole = String(validating: bytes, as: UTF8.self) != nil
    // A bad byte fails at once: the bytes up to it are accepted, and with it they are not.
    var isRight = accepts([Array(bytes[..<validCount])]).isValid
    if validCount < bytes.count { isRight = isRight && !accepts([Array(bytes[...validCount])]).isValid }
    for cut in 0...bytes.count {
      let result = accepts([Array(bytes[..<cut]), Array(bytes[cut...])])
      isRight = isRight && result.isValid == (validCount == bytes.count) && result.isComplete == isWhole
    }
    return isRight
  }

  /// Each lead byte with each second byte, and continuations behind them.
  @Test func everyPairOfBytes() {
    var wrong: [String] = []
    for first in UInt8.min ... .max {
      for second in UInt8.min ... .max {
        for rest: [UInt8] in [[], [0x80], [0x80, 0xbf], [0x80, 0x41]] {
          let bytes = [first, second] + rest
          let result = Self.accepts([bytes])
          let validCount = Self.naiveValidCount(bytes)
          let isWhole = String(validating: bytes, as: UTF8.self) != nil
          if result.isValid != (validCount == bytes.count) || result.isComplete != isWhole { wrong.append("\(bytes)") }
        }
      }
    }
    #expect(wrong == [])
  }

  @Test(arguments: [
    [], Array("κόσμε".utf8), Array("Hello-µ@ßöäüàá-UTF-8!!".utf8), [0xf4, 0x8f, 0xbf, 0xbf], [0xf4, 0x90, 0x80, 0x80],
    [0xc0, 0x80], [0xe0, 0x9f, 0xbf], [0xf0, 0x8f, 0xbf, 0xbf], [0xed, 0x9f, 0xbf], [0xed, 0xa0, 0x80],
    [0xee, 0x80, 0x80],
    [0xef, 0xbf, 0xbf], [0x41, 0xc2], [0xc2, 0x41], [0xe2, 0x82, 0x41], [0xf0, 0x9f, 0x98, 0x41], [0x80], [0xfe],
    [0xff],
    [0xf8, 0x88, 0x80, 0x80, 0x80],
    [UInt8](repeating: 0x61, count: 40) + [0xe2, 0x82, 0xac]
      + [UInt8](repeating: 0x61, count: 40),
    [UInt8](repeating: 0x61, count: 33) + [0xff] + [UInt8](repeating: 0x61, count: 33),
  ])
  func cutEverywhere(bytes: [UInt8]) { #expect(Self.check(bytes)) }

  @Test func randomBytes() {
    var random = SeededGenerator(for: "UTF8ValidatorTests.randomBytes")
    let parts = ["a", "é", "€", "😀", "\u{10ffff}", "\u{7ff}", "\u{800}", "0123456789abcdefghij"].map { Array($0.utf8) }
    for round in 0..<2000 {
      var bytes = (0..<Int.random(in: 0...12, using: &random)).flatMap { _ in
        parts.randomElement(using: &random) ?? []
      }
      if !bytes.isEmpty, Bool.random(using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      #expect(Self.check(bytes), "seed \(random.seed), round \(round): \(bytes)")
    }
  }

  @Test func failsForEver() {
    var validator = UTF8Validator()
    let (bad, good): ([UInt8], [UInt8]) = ([0xff], [0x61])
    let results = [validator.accept(bad.span), validator.accept(good.span), validator.isComplete]
    #expect(results == [false, false, false])
  }
}
