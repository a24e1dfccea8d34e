import Foundation
import Testing

/// Comments and pages are in plain English: the subject of a sentence is a thing of the code, and each comment can be
/// read alone.
@Suite struct StyleTests {
  private static let directories = ["Sources", "Tests", "Benchmarks", "Fuzz", "Examples"]
  private static let persons = Set(
    ["who", "whom", "whoever", "nobody", "somebody", "everybody", "he", "him", "his"].flatMap {
      [Array($0.utf8), Array($0.capitalized.utf8)]
    })
  private static let beginnings = [
    "Nil:", "True:", "False:", "The same ", "It ", "That ", "Those ", "One that ", "the same ", "it ", "it.", "it:",
    "that ", "that.", "those ", "one that ",
  ]

  /// Words for things of the code, and verbs of persons that may not follow them. Machines decide, and peers, users and
  /// programs may want and ask; what a machine has, is stored or has been passed to it.
  private static let things = Set(
    """
    machine parser pool loop connection session task cache channel type decoder transfer load ledger writer handshake \
    slot stream method function struct class object value code kernel engine thread queue library executor service \
    journal router delegate handler resolver jar storage table buffer layer callback exchange response field number \
    identity framing name test
    """.split(separator: " ").flatMap { [Array($0.utf8), Array(($0 + "s").utf8)] })
  private static let verbs = Set(
    """
    know knows want wants remember remembers forget forgets tell tells think thinks hope hopes learn learns hear hears \
    notice notices believe believes mind minds care cares
    """.split(separator: " ").map { Array($0.utf8) })
  private static let between = Set(
    ["does", "do", "not", "cannot", "can", "must", "may", "never", "also"].map { Array($0.utf8) })

  /// Returns a thing and its verb if a comment's line treats code as a person, or `nil`.
  private static func personified(_ text: some StringProtocol) -> String? {
    // Lower-case words, and an empty one for a mark of punctuation: "the task: know that" says nothing about the task.
    var words: [[UInt8]] = [[]]
    for byte in text.utf8 {
      if (byte | 0x20) &- UInt8(ascii: "a") < 26 {
        words[words.count - 1].append(byte | 0x20)
      } else {
        if words[words.count - 1] != [] { words.append([]) }
        if byte != UInt8(ascii: " "), byte != UInt8(ascii: "-") { words.append([]) }
      }
    }
    for (index, word) in words.enumerated() where things.contains(word) {
      let rest = words[(index + 1)...].drop { between.contains($0) }
      if let verb = rest.first, verbs.contains(verb) {
        return "\(String(decoding: word, as: UTF8.self)) ... \(String(decoding: verb, as: UTF8.self))"
      }
    }
    return nil
  }

  /// Returns the words for persons in a line of a comment or page.
  private static func persons(in text: some StringProtocol) -> [String] {
    let words = Array(text.utf8).split { byte in
      !((byte | 0x20) &- UInt8(ascii: "a") < 26) && byte != UInt8(ascii: "_") && byte != UInt8(ascii: "-")
    }
    return words.filter { (2...9).contains($0.count) && persons.contains(Array($0)) }
      .map { String(decoding: $0, as: UTF8.self).lowercased() }
  }

  /// Returns the text of a line that is a comment.
  private static func comment(_ line: Substring) -> Substring? {
    let line = line.drop { $0 == " " }
    guard line.utf8.starts(with: "//".utf8) else { return nil }
    return line.drop { $0 == "/" }.drop { $0 == " " }
  }

  @Test(arguments: directories) func comments(directory: String) {
    for file in Repository.files(under: directory, suffixes: [".swift", ".c", ".h"]) {
      for (number, line) in file.lines.enumerated() {
        guard let text = Self.comment(line) else { continue }
        if line.contains("// ("), !line.contains("///") { Issue.record("\(file.path):\(number + 1): \(text)") }
        var faults = Self.persons(in: text) + Self.beginnings.filter { text.utf8.starts(with: $0.utf8) }
        if let fault = Self.personified(text) { faults.append(fault) }
        if !faults.isEmpty { Issue.record("\(file.path):\(number + 1): \(faults): \(text)") }
      }
    }
  }

  @Test func pages() {
    for file in Repository.files(under: "Sources", suffixes: [".md"])
      + Repository.files(under: "Benchmarks", suffixes: [".md"])
    {
      for (number, line) in file.lines.enumerated() {
        if !Self.persons(in: line).isEmpty || Self.personified(line) != nil {
          Issue.record("\(file.path):\(number + 1): \(line)")
        }
      }
    }
  }

  @Test func theRulesFindWhatTheyAreFor() {
    #expect(Self.persons(in: "Whoever waits tells him: he is free.") == ["whoever", "him", "he"])
    #expect(Self.persons(in: "Whose turn it is, the others wait; a hero is no he-man.").isEmpty)
    #expect(Self.personified("What the pool does not know") == "pool ... know")
    #expect(Self.personified("The cache remembers it") == "cache ... remembers")
    #expect(Self.personified("The machine decides for the task: tell no other") == nil)
    #expect(Self.personified("A program that wants the task's name") == nil)
    #expect(Self.comment("  /// (Nil: nothing)") == "(Nil: nothing)" && Self.comment("let a = 1 // one") == nil)
  }

  /// A decision page has the four sections in their order, and the index lists it.
  @Test func decisions() throws {
    let directory = "Sources/Larkspur/Larkspur.docc/Decisions"
    let pages = Repository.files(under: directory, suffixes: [".md"])
    let index = try #require(pages.first { $0.path.hasSuffix("/Decisions.md") })
    for page in pages where page.path != index.path {
      let sections = page.lines.filter { $0.hasPrefix("## ") }.map { $0.dropFirst(3) }
      #expect(sections == ["Context", "Decision", "Consequences", "Status"], "\(page.path)")
      #expect(page.lines.count <= 60, "\(page.path)")
      let name = page.path.dropFirst(directory.count + 1).dropLast(3)
      #expect(index.text.contains(name), "the index lacks \(name)")
    }
  }
}
