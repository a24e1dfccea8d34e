import Testing

/// Declared names state facts of the code: no part of a name is a word for a person, or a verb of speech or desire.
@Suite struct NameTests {
  private static let excluded = Set(
    """
    nobody nobodys somebody everybody who whom whose whoever he him his tell tells telling told untold want wants wanting
    """.split { $0 == " " || $0 == "\n" }.map { Array($0.utf8) })

  private static let kinds = Set(
    ["func", "struct", "class", "enum", "actor", "protocol", "typealias", "associatedtype", "var", "let", "case"].map {
      Array($0.utf8)
    })

  private static func isPartOfName(_ byte: UInt8) -> Bool {
    (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte &- UInt8(ascii: "0") < 10 || byte == UInt8(ascii: "_")
  }

  /// Returns the names that a line of code declares: one after each keyword, all of a tuple, and all cases of a list.
  private static func declared(in line: String) -> [[UInt8]] {
    enum Place { case outside, afterKeyword, inTuple, inCases(depth: Int, isNext: Bool) }
    let bytes = Array(line.utf8)
    var (place, names, index) = (Place.outside, [[UInt8]](), 0)
    while index < bytes.count {
      let start = index
      while index < bytes.count, isPartOfName(bytes[index]) { index += 1 }
      if index > start {
        let word = Array(bytes[start..<index])
        if kinds.contains(word) {
          place = word == Array("case".utf8) ? .inCases(depth: 0, isNext: true) : .afterKeyword
          continue
        }
        switch place {
        case .afterKeyword:
          names.append(word)
          place = .outside
        case .inTuple: names.append(word)
        case .inCases(0, isNext: true):
          names.append(word)
          place = .inCases(depth: 0, isNext: false)
        case .outside, .inCases: break
        }
        continue
      }
      switch (place, bytes[index]) {
      case (_, UInt8(ascii: " ")), (_, UInt8(ascii: "`")): break
      case (.afterKeyword, UInt8(ascii: "(")): place = .inTuple
      case (.inTuple, UInt8(ascii: ",")): break
      case (.inCases(let depth, let isNext), UInt8(ascii: "(")): place = .inCases(depth: depth + 1, isNext: isNext)
      case (.inCases(let depth, let isNext), UInt8(ascii: ")")): place = .inCases(depth: depth - 1, isNext: isNext)
      case (.inCases(0, _), UInt8(ascii: ",")): place = .inCases(depth: 0, isNext: true)
      case (.inCases(let depth, isNext: false), _) where depth > 0: break
      default: place = .outside
      }
      index += 1
    }
    return names
  }

  /// Returns the words of a name in lower case, such as `get`, `url` and `text` of `getURLText`.
  private static func words(of name: [UInt8]) -> [[UInt8]] {
    func isUpper(_ index: Int) -> Bool { name[index] &- UInt8(ascii: "A") < 26 }
    func isLower(_ index: Int) -> Bool { name[index] &- UInt8(ascii: "a") < 26 }
    var words: [[UInt8]] = [[]]
    for index in name.indices {
      let isFirst = index == 0 || !isUpper(index - 1) || index + 1 < name.count && isLower(index + 1)
      if isUpper(index) && isFirst || !isUpper(index) && !isLower(index) { words.append([]) }
      if isUpper(index) || isLower(index) { words[words.count - 1].append(name[index] | 0x20) }
    }
    return words.filter { !$0.isEmpty }
  }

  private static func faults(in line: String) -> [String] {
    declared(in: line).filter { words(of: $0).contains { excluded.contains($0) } }
      .map { String(decoding: $0, as: UTF8.self) }
  }

  @Test(arguments: ["Sources", "Tests", "Benchmarks", "Fuzz", "Examples"]) func declarations(directory: String) {
    let files = Repository.files(under: directory)
    #expect(!files.isEmpty)
    for file in files {
      for (number, line) in file.code.enumerated() {
        let faults = Self.faults(in: line)
        if !faults.isEmpty { Issue.record("\(file.path):\(number + 1): \(faults)") }
      }
    }
  }

  /// The names of these texts are forbidden ones, for which the rule is.
  @Test func theRuleFindsNames() {
    #expect(Self.faults(in: "  @Test func whoIsServed() { let told = 1 }") == ["whoIsServed", "told"])
    #expect(Self.faults(in: "  private let (isUntold, count, wantsURL) = value") == ["isUntold", "wantsURL"])
    #expect(Self.faults(in: "  case first(tells: Int), tellAll, `who`, last = 3") == ["tellAll", "who"])
    #expect(Self.faults(in: "class HTTPNobody: Base { var x: Int { told } }") == ["HTTPNobody"])
    #expect(Self.faults(in: "    case .told(let who): tell(whole)") == ["who"])
    #expect(Self.faults(in: "  func wholeThreshold(who: Int) -> Told { let theHistory = told }").isEmpty)
  }
}
