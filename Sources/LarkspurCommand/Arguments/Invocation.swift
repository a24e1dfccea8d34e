/// The command that a command line asks for, with its options.
package enum Invocation: Hashable, Sendable {
  case get(GetOptions)
  case socket(SocketOptions)
  case events(EventsOptions)
  case pins(PinsOptions)
  case check(CheckOptions)
  case transfers(TransfersOptions)
  case demo
  case help(HelpTopic)
  case version

  /// - Parameter arguments: The command line without the name of the program.
  package init(parsing arguments: ArraySlice<String>) throws(UsageError) {
    guard let command = arguments.first else {
      throw UsageError("a command is missing: get, socket, events, pins, check, transfers, demo or help")
    }
    let rest = arguments.dropFirst()
    switch command {
    case "get":
      self = try GetOptions.parse(rest).map(Self.get) ?? .help(.get)
    case "socket":
      self = try SocketOptions.parse(rest).map(Self.socket) ?? .help(.socket)
    case "events":
      self = try EventsOptions.parse(rest).map(Self.events) ?? .help(.events)
    case "pins":
      self = try PinsOptions.parse(rest).map(Self.pins) ?? .help(.pins)
    case "check":
      self = try CheckOptions.parse(rest).map(Self.check) ?? .help(.check)
    case "transfers":
      self = try TransfersOptions.parse(rest).map(Self.transfers) ?? .help(.transfers)
    case "demo":
      var reader = ArgumentReader(rest, options: [.init("h", "help")], topic: .demo)
      switch try reader.next() {
      case nil: self = .demo
      case .option: self = .help(.demo)
      case .operand(let word): throw UsageError("demo takes no operand: \(word)", topic: .demo)
      }
    case "help", "-h", "--help":
      guard let word = rest.first else {
        self = .help(.overview)
        return
      }
      guard let topic = HelpTopic(rawValue: word), rest.count == 1 else {
        throw UsageError("there is no help on \(rest.joined(separator: " "))")
      }
      self = .help(topic)
    case "version", "-V", "--version":
      self = .version
    default:
      throw UsageError(command.hasPrefix("-") ? "unknown option \(command)" : "unknown command \(command)")
    }
  }
}
