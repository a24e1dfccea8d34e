import LarkspurHTTP
import TestKit
import Testing

/// Random challenges, written in every form that the grammar allows, are read back.
@Suite struct ChallengeModelTests {
  struct Made {
    var scheme: String
    var token68: String?
    var parameters: [(name: String, value: String)] = []

    init(using random: inout SeededGenerator) {
      scheme = Self.word("abcdefghijklmnopqrstuvwxyz-", 1...8, &random)
      switch Int.random(in: 0..<4, using: &random) {
      case 0: token68 = Self.word("abcXYZ019-._~+/", 1...12, &random) + String(repeating: "=", count: 2)
      case 1: break
      default:
        for number in 0..<Int.random(in: 1...5, using: &random) {
          let value = Self.word("ab\"\\ ,=;\tz\u{e4}", 0...6, &random)
          parameters.append((Self.word("abcdefghij*", 1...6, &random) + "\(number)", value))
        }
      }
    }

    static func word(_ letters: String, _ length: ClosedRange<Int>, _ random: inout SeededGenerator) -> String {
      let letters = Array(letters)
      let count = Int.random(in: length, using: &random)
      return String((0..<count).map { _ in letters[Int.random(in: 0..<letters.count, using: &random)] })
    }

    /// Returns the challenge's text. A trailing comma without a successor is added where a parameter of the next
    /// challenge could be read as one of this challenge.
    func text(using random: inout SeededGenerator) -> String {
      func space() -> String { Self.word(" \t", 0...2, &random) }
      func anyCase(_ text: String) -> String { Bool.random(using: &random) ? text : text.uppercased() }
      guard token68 != nil || !parameters.isEmpty else { return anyCase(scheme) }
      if let token68 { return "\(anyCase(scheme)) \(space())\(token68)\(space())" }
      let written = parameters.map { name, value in
        let isToken = !value.isEmpty && value.allSatisfy { $0 == "a" || $0 == "b" || $0 == "z" }
        let escaped = value.map { character in
          let mustEscape = character == "\"" || character == "\\"
          return mustEscape || Bool.random(using: &random) ? "\\\(character)" : "\(character)"
        }
        let text = isToken && Bool.random(using: &random) ? value : "\"\(escaped.joined())\""
        return "\(anyCase(name))\(space())=\(space())\(text)\(space())"
      }
      let commas = ["", ",", " , ,"][Int.random(in: 0..<3, using: &random)]
      return "\(anyCase(scheme)) \(commas)" + written.joined(separator: "," + commas)
    }
  }

  @Test func whatIsWrittenIsRead() {
    var random = SeededGenerator(for: "challenges")
    for _ in 0..<2000 {
      let made = (0..<Int.random(in: 1...5, using: &random)).map { _ in Made(using: &random) }
      let field = made.map { $0.text(using: &random) }.joined(separator: ",")
      let read = Challenge.read([field])
      let about: Comment = "\(field): \(read)"
      #expect(read.map(\.scheme) == made.map(\.scheme), about)
      for (challenge, made) in zip(read, made) {
        #expect(challenge.token68 == made.token68, about)
        #expect(challenge.parameters.map(\.name) == made.parameters.map(\.name), about)
        #expect(challenge.parameters.map(\.value) == made.parameters.map(\.value), about)
      }
    }
  }

  /// Any text can be read: every challenge that results has a scheme, and no parameter name occurs twice.
  @Test func noise() {
    var random = SeededGenerator(for: "noise in challenges")
    for _ in 0..<20_000 {
      let field = Made.word("aB=,\"\\ \t;/\u{0}\u{7f}\u{e4}-", 0...24, &random)
      for challenge in Challenge.read([field]) {
        #expect(!challenge.scheme.isEmpty && challenge.scheme == challenge.scheme.lowercased())
        #expect(Set(challenge.parameters.map(\.name)).count == challenge.parameters.count)
        #expect(challenge.token68 == nil || challenge.parameters.isEmpty)
      }
      _ = AuthenticationInfo([field])
      _ = AuthenticationOffer.List([field])
    }
  }
}
