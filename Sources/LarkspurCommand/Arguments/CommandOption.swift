/// An option of a command: its names, its help, and its effect. The lists of options are the only place that knows an
/// option: `OptionList` reads command lines by them, and writes the help.
package struct CommandOption<Options>: Sendable {
  package typealias Effect = @Sendable (inout Options, String) throws(UsageError) -> Void

  package private(set) var entry: OptionEntry
  package let effect: Effect

  package var names: ArgumentReader.Option { entry.names }

  init(_ short: Character? = nil, _ long: String, _ value: String = "", _ help: String, effect: @escaping Effect) {
    entry = OptionEntry(names: .init(short, long, takesValue: !value.isEmpty), value: value, help: help)
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
    CommandOption<Whole>(names.short, names.long, entry.value, entry.help) { [effect] whole, value throws(UsageError) in
      try effect(&whole[keyPath: path], value)
    }.in(entry.group)
  }

  /// Returns the option with its purpose.
  func `in`(_ group: OptionGroup) -> Self {
    var option = self
    option.entry.group = group
    return option
  }
}

extension Array {
  func within<Whole, Part>(
    _ path: any WritableKeyPath<Whole, Part> & Sendable
  ) -> [CommandOption<Whole>] where Element == CommandOption<Part> {
    map { $0.within(path) }
  }

  /// Returns the options with their purpose.
  func `in`<Options>(_ group: OptionGroup) -> Self where Element == CommandOption<Options> { map { $0.in(group) } }
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
  ///
  /// - Parameter defaults: The options before the command line changes them.
  static func parse(_ arguments: ArraySlice<String>, changing defaults: Self = .init()) throws(UsageError) -> Self? {
    var reader = ArgumentReader(arguments, options: options.map(\.names) + [.init("h", "help")])
    var result = defaults
    while let argument = try reader.next() {
      switch argument {
      case .operand(let word): try result.take(word)
      case .option("help", _): return nil
      case .option(let name, let value): try result.apply(name, value)
      }
    }
    try result.check()
    return result
  }

  /// Applies an option.
  mutating func apply(_ name: String, _ value: String) throws(UsageError) {
    try Self.options.first { $0.names.long == name }?.effect(&self, value)
  }

  /// The help on all options.
  static var optionsHelp: String { options.map(\.entry).help }
}
