/// The command that a command line asks for, with its options.
package enum Invocation: Hashable, Sendable {
  case get(GetOptions)
  case socket(SocketOptions)
  case events(EventsOptions)
  case pins(PinsOptions)
  case check(CheckOptions)
  case transfers(TransfersOptions)
  case completions(CompletionsOptions)
  case help(HelpTopic)
  case version

  /// Parses a command line. A URL or an option in place of a command stands for `get`.
  ///
  /// - Parameters:
  ///   - arguments: The command line without the name of the program.
  ///   - configuration: The file with options of `get` that come before those of the command line.
  package init(parsing arguments: ArraySlice<String>, configuration: String? = nil) throws(UsageError) {
    guard let word = arguments.first else {
      throw UsageError("a command is missing: \(HelpTopic.commands.map(\.rawValue).joined(separator: ", ")) or help")
    }
    let rest = arguments.dropFirst()
    if let topic = HelpTopic.commands.first(where: { $0.rawValue == word }) {
      try self.init(topic, rest, configuration)
      return
    }
    switch word {
    case "help", "-h", "--help": self = .help(try Self.topic(rest))
    case "version", "-V", "--version": self = .version
    case _ where word.hasPrefix("-") || word.utf8.contains { ".:/".utf8.contains($0) }:
      try self.init(.get, arguments, configuration)
    default:
      let commands = HelpTopic.commands.map(\.rawValue) + ["help", "version"]
      throw UsageError("unknown command \(word)" + Suggestion.text(for: word, among: commands))
    }
  }

  private init(_ topic: HelpTopic, _ arguments: ArraySlice<String>, _ configuration: String?) throws(UsageError) {
    do throws(UsageError) {
      let invocation: Self? =
        switch topic {
        case .get: try GetOptions.parse(arguments, changing: .defaults(configuration, for: arguments)).map(Self.get)
        case .socket: try SocketOptions.parse(arguments).map(Self.socket)
        case .events: try EventsOptions.parse(arguments).map(Self.events)
        case .pins: try PinsOptions.parse(arguments).map(Self.pins)
        case .check: try CheckOptions.parse(arguments).map(Self.check)
        case .transfers: try TransfersOptions.parse(arguments).map(Self.transfers)
        case .completions: try CompletionsOptions.parse(arguments).map(Self.completions)
        case .overview, .exitStatus: nil
        }
      self = invocation ?? .help(topic)
    } catch {
      throw UsageError(error.description, topic: topic)
    }
  }

  private static func topic(_ words: ArraySlice<String>) throws(UsageError) -> HelpTopic {
    guard let word = words.first else { return .overview }
    guard let topic = HelpTopic(rawValue: word), words.count == 1 else {
      let guess = words.count > 1 ? "" : Suggestion.text(for: word, among: HelpTopic.allCases.map(\.rawValue))
      throw UsageError("there is no help on \(words.joined(separator: " "))" + guess)
    }
    return topic
  }
}
