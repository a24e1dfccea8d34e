import Testing

/// Comments and pages are in plain English: the subject of a sentence is a thing of the code, and each comment can be
/// read alone.
@Suite struct StyleTests {
  private static let folders = ["Sources", "Tests", "Benchmarks", "Fuzz"]
  private static let persons = ["who", "whom", "whoever", "nobody", "somebody", "everybody", "he", "him", "his"]
  private static let beginnings = ["Nil:", "True:", "False:", "The same ", "It ", "That ", "Those ", "One that "]

  /// Returns what is wrong with the text of a line of a comment or page.
  private static func faults(in text: some StringProtocol) -> [String] {
    let words = text.split { !$0.isLetter && $0 != "_" && $0 != "-" }
    return persons.filter { person in words.contains { $0 == person || $0 == person.capitalized } }
  }

  /// Returns the text of a line that is a comment.
  private static func comment(_ line: Substring) -> Substring? {
    let line = line.drop { $0 == " " }
    guard line.hasPrefix("//") else { return nil }
    return line.drop { $0 == "/" }.drop { $0 == " " }
  }

  @Test(arguments: folders) func comments(folder: String) {
    for file in House.files(under: folder, suffixes: [".swift", ".c", ".h"]) {
      for (number, line) in file.lines.enumerated() {
        guard let text = Self.comment(line) else { continue }
        let faults =
          Self.faults(in: text) + Self.beginnings.filter { text.hasPrefix($0) } + (text.hasPrefix("(") ? ["("] : [])
        #expect(faults.isEmpty, "\(file.path):\(number + 1): \(text)")
      }
    }
  }

  @Test func pages() {
    for file in House.files(under: "Sources", suffixes: [".md"]) + House.files(under: "Benchmarks", suffixes: [".md"]) {
      for (number, line) in file.lines.enumerated() {
        #expect(Self.faults(in: line).isEmpty, "\(file.path):\(number + 1): \(line)")
      }
    }
  }

  @Test func theRulesFindWhatTheyAreFor() {
    #expect(Self.faults(in: "Whoever waits tells him: he is free.") == ["whoever", "he", "him"])
    #expect(Self.faults(in: "Whose turn it is, the others wait; a hero is no he-man.").isEmpty)
    #expect(Self.comment("  /// (Nil: nothing)") == "(Nil: nothing)" && Self.comment("let a = 1 // one") == nil)
  }

  /// A decision page has the four sections in their order, and the index lists it.
  @Test func decisions() throws {
    let folder = "Sources/Larkspur/Larkspur.docc/Decisions"
    let pages = House.files(under: folder, suffixes: [".md"])
    let index = try #require(pages.first { $0.path.hasSuffix("/Decisions.md") })
    for page in pages where page.path != index.path {
      let sections = page.lines.filter { $0.hasPrefix("## ") }.map { $0.dropFirst(3) }
      #expect(sections == ["Context", "Decision", "Consequences", "Status"], "\(page.path)")
      #expect(page.lines.count <= 60, "\(page.path)")
      let name = page.path.dropFirst(folder.count + 1).dropLast(3)
      #expect(index.text.contains(name), "the index lacks \(name)")
    }
  }
}
