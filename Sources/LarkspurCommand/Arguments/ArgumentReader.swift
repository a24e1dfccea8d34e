/// Splits a command line into options and operands by the rules of POSIX and GNU:
///
/// ```
/// -v  -iv  -oFILE  -o FILE  -ivo FILE  --output FILE  --output=FILE  --  -
/// ```
///
/// Options may stand behind operands. Everything behind `--` is an operand, and so is a single `-`.
package struct ArgumentReader {
  package struct Option: Hashable, Sendable {
    /// The letter, or `nil` if the option has only its long name.
    package var short: Character?
    package var long: String
    package var takesValue: Bool

    package init(_ short: Character? = nil, _ long: String, takesValue: Bool = false) {
      self.short = short
      self.long = long
      self.takesValue = takesValue
    }
  }

  package enum Argument: Hashable, Sendable {
    /// An option by its long name. `value` is empty for an option without a value.
    case option(name: String, value: String)
    case operand(String)
  }

  private let options: [Option]
  private var rest: ArraySlice<String>
  /// The short options that are left in the current word.
  private var group = Substring()
  private var isPastOptions = false

  package init(_ arguments: ArraySlice<String>, options: [Option]) {
    rest = arguments
    self.options = options
  }

  /// - Returns: The next option or operand, or `nil` at the end.
  package mutating func next() throws(UsageError) -> Argument? {
    if let letter = group.popFirst() { return try shortOption(letter) }
    guard let word = rest.popFirst() else { return nil }
    if isPastOptions || word == "-" || !word.hasPrefix("-") { return .operand(word) }
    if word == "--" {
      isPastOptions = true
      return try next()
    }
    if word.hasPrefix("--") { return try longOption(word.dropFirst(2)) }
    group = word.dropFirst()
    return try next()
  }

  private mutating func shortOption(_ letter: Character) throws(UsageError) -> Argument {
    guard let option = options.first(where: { $0.short == letter }) else {
      throw UsageError("unknown option -\(letter)")
    }
    guard option.takesValue else { return .option(name: option.long, value: "") }
    if !group.isEmpty {
      defer { group = "" }
      return .option(name: option.long, value: String(group))
    }
    guard let value = rest.popFirst() else { throw UsageError("-\(letter) needs a value") }
    return .option(name: option.long, value: value)
  }

  private mutating func longOption(_ word: Substring) throws(UsageError) -> Argument {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    guard let option = options.first(where: { $0.long == name }) else {
      throw UsageError(
        "unknown option --\(name)" + Suggestion.text(for: name, among: options.map(\.long), prefix: "--"))
    }
    switch (option.takesValue, parts.count > 1) {
    case (true, true): return .option(name: name, value: String(parts[1]))
    case (false, false): return .option(name: name, value: "")
    case (false, true): throw UsageError("--\(name) takes no value")
    case (true, false):
      guard let value = rest.popFirst() else { throw UsageError("--\(name) needs a value") }
      return .option(name: name, value: value)
    }
  }
}
