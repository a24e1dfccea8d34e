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

  /// Returns the lower-case words of a line, and an empty one for marks of punctuation: "the task: know that" says
  /// nothing about the task. Code, in backquotes or behind a dot, is not among the words.
  private static func words(_ text: some StringProtocol) -> [[UInt8]] {
    var words: [[UInt8]] = []
    var word: [UInt8] = []
    var isCode = false
    var previous = UInt8(ascii: " ")
    for byte in text.utf8 {
      if byte == UInt8(ascii: "`"), previous != byte { isCode.toggle() }
      if !isCode, (byte | 0x20) &- UInt8(ascii: "a") < 26 {
        // A member's name begins with its dot, and so equals no word.
        if word.isEmpty, previous == UInt8(ascii: ".") { word = [previous] }
        word.append(byte | 0x20)
      } else {
        if !word.isEmpty { words.append(word) }
        word = []
        let isMark = !" -'".utf8.contains(byte)
        if isMark, words.last?.isEmpty == false { words.append([]) }
      }
      previous = byte
    }
    return word.isEmpty ? words : words + [word]
  }

  /// Returns a thing and its verb if a comment's line treats code as a person, or `nil`.
  private static func personified(_ words: [[UInt8]]) -> String? {
    for (index, word) in words.enumerated() where things.contains(word) {
      let rest = words[(index + 1)...].drop { between.contains($0) }
      if let verb = rest.first, verbs.contains(verb) {
        return "\(String(decoding: word, as: UTF8.self)) ... \(String(decoding: verb, as: UTF8.self))"
      }
    }
    return nil
  }

  /// A sequence of words that an English reader has to read twice.
  private struct Phrase {
    private struct Word {
      let isOptional: Bool
      /// The words that fit, or `nil` for any.
      let alternatives: Set<[UInt8]>?
    }

    /// The words to write.
    let instead: String
    private let words: [Word]

    /// - Parameter pattern: The words. `|` separates the alternatives of a word, `?` begins a word that may be absent,
    ///   `_` stands for any word, and `.` for a mark of punctuation.
    init(_ pattern: Substring, instead: String) {
      self.instead = instead
      words = pattern.split(separator: " ").map { text in
        let word = text.drop { $0 == "?" }
        let alternatives = word.split(separator: "|").map { $0 == "." ? [UInt8]() : Array($0.utf8) }
        return Word(isOptional: word != text, alternatives: word == "_" ? nil : Set(alternatives))
      }
    }

    /// The words that can begin the phrase.
    var beginnings: Set<[UInt8]> { words.first?.alternatives ?? [] }

    /// Returns whether the phrase, from its word number `index` on, begins `text`.
    func begins(_ text: ArraySlice<[UInt8]>, from index: Int = 0) -> Bool {
      guard index < words.count else { return true }
      let word = words[index]
      if word.isOptional, begins(text, from: index + 1) { return true }
      guard let first = text.first, word.alternatives?.contains(first) ?? !first.isEmpty else { return false }
      return begins(text.dropFirst(), from: index + 1)
    }
  }

  /// The phrases by their first words. Which `what` and which `none` needs a noun in its place is a matter of judgement:
  /// the patterns have the forms in which it always does.
  private static let phrases: [[UInt8]: [Phrase]] = {
    let classes: [(instead: String, patterns: String)] = [
      (
        "has arrived, is available",
        "has|have|had|having ?not|all ?already|yet|just|never|ever|only|also|still come"
      ),
      ("report, notify, send, distinguish", "tell|tells|told|telling"),
      ("the current", "the|a|its|their|this present"),
      (
        "its own, private, dedicated, separate",
        """
        of its|their|your own, of ?the|a|an|each|this|another _ s own .|and|or|that|which|to|is|are|in|on|for
        """
      ),
      ("human-readable", "for people"),
      ("the noun in place of \"what\"", "of|for|by|with|from|and|do|does what"),
      (
        "the noun again",
        """
        another one, the other one, . none, none that|itself, none of it|them|both|its|their, is|was none of,
        have|need|needs|take|takes|get|gets|name|names|sends|holds|with|and none
        """
      ),
      (
        "continue, release, include, delay",
        """
        go|goes|going|gone|went on, give|gives|gave|given|giving ?_ ?_ ?_ up, let|lets|letting ?_ ?_ ?_ go,
        take|takes|took|taken|taking ?_ ?_ along, hold|holds|held|holding ?_ ?_ ?_ up
        """
      ),
      ("should be, must be, will be", "is|are|was|were ?not|still|only|also to be"),
      ("lack of, independent of", "for want of, in terms of"),
    ]
    var phrases: [[UInt8]: [Phrase]] = [:]
    for (instead, patterns) in classes {
      for pattern in patterns.split(separator: ",") {
        let phrase = Phrase(pattern.drop { $0 == "\n" }, instead: instead)
        for word in phrase.beginnings { phrases[word, default: []].append(phrase) }
      }
    }
    return phrases
  }()

  /// Returns what to write in place of a phrase that is in the text, or `nil`.
  private static func phrase(_ words: [[UInt8]]) -> String? {
    for (index, word) in words.enumerated() {
      if let phrase = phrases[word]?.first(where: { $0.begins(words[index...]) }) { return phrase.instead }
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
        let words = Self.words(text)
        if let fault = Self.personified(words) { faults.append(fault) }
        if directory == "Sources", let instead = Self.phrase(words) { faults.append("write: \(instead)") }
        if !faults.isEmpty { Issue.record("\(file.path):\(number + 1): \(faults): \(text)") }
      }
    }
  }

  @Test func pages() {
    for file in Repository.files(under: "Sources", suffixes: [".md"])
      + Repository.files(under: "Benchmarks", suffixes: [".md"])
    {
      for (number, line) in file.lines.enumerated() {
        if !Self.persons(in: line).isEmpty || Self.personified(Self.words(line)) != nil {
          Issue.record("\(file.path):\(number + 1): \(line)")
        }
      }
    }
  }

  @Test func theRulesFindWhatTheyAreFor() {
    #expect(Self.persons(in: "Whoever waits tells him: he is free.") == ["whoever", "him", "he"])
    #expect(Self.persons(in: "Whose turn it is, the others wait; a hero is no he-man.").isEmpty)
    let personified = { (text: String) in Self.personified(Self.words(text)) }
    #expect(personified("What the pool does not know") == "pool ... know")
    #expect(personified("The cache remembers it") == "cache ... remembers")
    #expect(personified("The machine decides for the task: tell no other") == nil)
    #expect(personified("A program that wants the task's name") == nil)
    #expect(Self.comment("  /// (Nil: nothing)") == "(Nil: nothing)" && Self.comment("let a = 1 // one") == nil)
  }

  @Test(arguments: [
    ("has arrived", "Whether a byte has come. The head has not yet come; they have all come"),
    ("report", "Not every change is told. The bytes tell which of the two it is. A response that tells clients"),
    ("the current", "The present request. Its present owner"),
    (
      "its own",
      "A thread of its own. Policies of their own. A class of the program's own. A queue of a view's own, which waits"
    ),
    ("human-readable", "A sentence for people"),
    ("the noun in", "The path of what is there. Does what it is asked for. The status, and what it means"),
    ("the noun again", "In this process or another one. Memory: none. None is empty. Most requests have none"),
    (
      "the noun again",
      "It is none of theirs. Some, and none after the end. There is none that fits. The other one waits"
    ),
    ("continue", "The task goes on. Gives up. Gives the session up. The wait was given up. Lets the runner go"),
    ("continue", "Pipelined calls are held up. Takes it along. A call that holds the task up"),
    ("should be", "The socket is to be closed. Bytes that are still to be sent. A name that is not to be used"),
    ("lack of", "Fails for want of memory. The path in terms of any process"),
  ])
  func phrasesAreFound(instead: String, examples: String) {
    for example in examples.split(separator: ".") {
      // A mark stands before the first word, so that a beginning counts as one.
      let found = Self.phrase(Self.words("First. \(example).")) ?? ""
      #expect(found.hasPrefix(instead), "\(example): \(found)")
    }
  }

  @Test(arguments: [
    "Returns the value, or `nil` if there is none. `nil` for none",
    "Of the cases, `.none` is the default: .none, .some",
    "The key of the server's own certificate, and the current request",
    "Depends on what the word means", "Comes last, and takes up to ten bytes",
    "The host's address has to come first. People read it", "Two bytes of its owner's own text",
  ])
  func otherPhrasesPass(text: String) { #expect(Self.phrase(Self.words(text)) == nil) }

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
