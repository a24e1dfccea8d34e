import LarkspurConsole

/// An option of a command: its names, its help, and its effect. The lists of options are the only place that knows an
/// option: `OptionList` reads command lines by them, and writes the help.
package struct CommandOption<Options>: Sendable {
  package typealias Effect = @Sendable (inout Options, String) throws(UsageError) -> Void

  package let names: ArgumentReader.Option
  /// The name of the value in the help; empty for an option without a value.
  private let value: String
  private let help: String
  package let effect: Effect

  init(_ short: Character? = nil, _ long: String, _ value: String = "", _ help: String, effect: @escaping Effect) {
    names = .init(short, long, takesValue: !value.isEmpty)
    self.value = value
    self.help = help
    self.effect = effect
  }

  /// Creates an option that sets a switch.
  static func flag(
    _ short: Character? = nil, _ long: String, _ help: String,
    _ path: any WritableKeyPath<Options, Bool> & Sendable
  ) -> Self {
    Self(short, long, "", help) { options, _ throws(UsageError) in options[keyPath: path] = true }
  }

  /// Creates an option that keeps its value.
  static func text(
    _ short: Character? = nil, _ long: String, _ value: String, _ help: String,
    _ path: any WritableKeyPath<Options, String?> & Sendable
  ) -> Self {
    Self(short, long, value, help) { options, value throws(UsageError) in options[keyPath: path] = value }
  }

  /// Creates an option that keeps the name of a file.
  static func file(
    _ short: Character? = nil, _ long: String, _ help: String,
    _ path: any WritableKeyPath<Options, String?> & Sendable
  ) -> Self {
    Self(short, long, "FILE", help) { options, value throws(UsageError) in
      guard !value.isEmpty else { throw UsageError("the file of --\(long) has no name") }
      options[keyPath: path] = value
    }
  }

  /// Creates an option that keeps a time in seconds. 0 means no limit.
  static func seconds(
    _ short: Character? = nil, _ long: String, _ help: String,
    _ path: any WritableKeyPath<Options, Duration?> & Sendable
  ) -> Self {
    Self(short, long, "S", help) { options, value throws(UsageError) in
      options[keyPath: path] = try GetOptions.timeout(value, of: long)
    }
  }

  /// Returns the option for options of which `Options` are a part.
  func within<Whole>(_ path: any WritableKeyPath<Whole, Options> & Sendable) -> CommandOption<Whole> {
    CommandOption<Whole>(names.short, names.long, value, help) { [effect] whole, value throws(UsageError) in
      try effect(&whole[keyPath: path], value)
    }
  }

  // MARK: - Help

  /// The column in which the help begins.
  private static var helpColumn: Int { 28 }
  /// Maximum width of a line.
  private static var lineMax: Int { 118 }

  /// The lines of the help: the names, and the text beside them, or below names that are too long.
  package var helpLines: String {
    let heading = "  \(names.short.map { "-\($0), " } ?? "    ")--\(names.long)\(value.isEmpty ? "" : " \(value)")"
    let indentation = String(repeating: " ", count: Self.helpColumn)
    var lines = [Format.padded(heading, to: Self.helpColumn)]
    if heading.count + 1 >= Self.helpColumn { lines = [heading, indentation] }
    for word in help.split(separator: " ") {
      // A line that begins with an option would look like the next entry.
      if lines[lines.count - 1].count + word.count >= Self.lineMax, !word.hasPrefix("-") { lines.append(indentation) }
      if lines[lines.count - 1].count > Self.helpColumn { lines[lines.count - 1] += " " }
      lines[lines.count - 1] += word
    }
    return lines.map { $0 + "\n" }.joined()
  }
}

extension Array {
  func within<Whole, Part>(
    _ path: any WritableKeyPath<Whole, Part> & Sendable
  ) -> [CommandOption<Whole>] where Element == CommandOption<Part> {
    map { $0.within(path) }
  }
}

/// The options of one command.
protocol OptionList {
  static var options: [CommandOption<Self>] { get }

  init()

  /// Takes a word that is no option.
  mutating func take(_ operand: String) throws(UsageError)

  /// Checks the combination of the options.
  mutating func check() throws(UsageError)
}

extension OptionList {
  /// - Returns: The options, or `nil` if the command line asks for help.
  static func parse(_ arguments: ArraySlice<String>) throws(UsageError) -> Self? {
    var reader = ArgumentReader(arguments, options: options.map(\.names) + [.init("h", "help")])
    var result = Self()
    while let argument = try reader.next() {
      switch argument {
      case .operand(let word): try result.take(word)
      case .option("help", _): return nil
      case .option(let name, let value): try options.first { $0.names.long == name }?.effect(&result, value)
      }
    }
    try result.check()
    return result
  }

  /// The help on all options.
  static var optionsHelp: String { options.map(\.helpLines).joined() + "  -h, --help\n" }
}
