import LarkspurConsole

/// A topic of `larkspur help`.
package enum HelpTopic: String, CaseIterable, Sendable {
  case overview
  case get
  case socket
  case events
  case pins
  case check
  case transfers
  case completions
  case exitStatus = "exit-status"

  /// The topics that are commands.
  static let commands: [HelpTopic] = [.get, .socket, .events, .pins, .check, .transfers, .completions]

  /// The operands and the purpose of a command.
  private var line: (operands: String, summary: String) {
    switch self {
    case .get: ("URL [option ...]", "fetch a URL")
    case .socket: ("URL [option ...]", "send lines to a WebSocket, and show its messages")
    case .events: ("URL [option ...]", "show the events of an event stream")
    case .pins: ("URL [option ...]", "show the keys of a server's certificates, for --pin")
    case .check: ("PROGRAM ...", "tell whether programs still have the toolchain's networking in them")
    case .transfers: ("ACTION", "show and change the transfers that outlive their programs")
    case .completions: ("KIND", "write or install completions for shells, and the page of the manual")
    case .overview, .exitStatus: ("", "")
    }
  }

  /// The command line of a command. `get` may be left out.
  var synopsis: String { "larkspur \(self == .get ? "[get]" : rawValue) \(line.operands)" }

  /// The purpose of a command.
  var summary: String { line.summary }

  /// The options of a command.
  var options: [OptionEntry] {
    switch self {
    case .get: GetOptions.options.map(\.entry)
    case .socket: SocketOptions.options.map(\.entry)
    case .events: EventsOptions.options.map(\.entry)
    case .pins: PinsOptions.options.map(\.entry)
    case .check: CheckOptions.options.map(\.entry)
    case .transfers: TransfersOptions.options.map(\.entry)
    case .completions: CompletionsOptions.options.map(\.entry)
    case .overview, .exitStatus: []
    }
  }

  /// The words that may follow a command's name.
  var words: [String] {
    switch self {
    case .transfers: TransfersOptions.Action.allCases.map(\.rawValue)
    case .completions: CompletionsOptions.Kind.allCases.map(\.rawValue)
    case .overview, .get, .socket, .events, .pins, .check, .exitStatus: []
    }
  }

  private static var topics: String {
    allCases.dropFirst().dropLast().map(\.rawValue).joined(separator: ", ") + " or \(exitStatus.rawValue)"
  }

  package var text: String {
    switch self {
    case .overview:
      """
      larkspur: an HTTP/1.1 client written from the socket up


      """
        + Self.commands.map { "  \(Format.padded($0.synopsis, to: 33)) \($0.summary)\n" }.joined()
          + """
            larkspur help [TOPIC]             TOPIC is \(Self.topics)
            larkspur --version

          """
    case .get:
      """
      larkspur get URL [option ...]
      larkspur get -i LIST [option ...]

      Fetches URL (http or https; `http://` may be left out) and writes the body to standard output. {a,b} and [1-9] in URL
      stand for several.


      """ + GetOptions.optionsHelp + """

        A user and a password in the URL (http://user:password@host/) are sent as Basic authorization. Redirects are
        not followed without -L. The progress is shown if standard error is a terminal: of a download into a file, and
        of an upload of 64 KiB or more.

        """ + "See `larkspur help exit-status` for the numbers that it exits with.\n"
    case .socket: SocketOptions.help
    case .events: EventsOptions.help
    case .pins:
      """
      larkspur pins URL [option ...]

      Makes a TLS connection to the server of URL (`https://` may be left out), verifies its certificates, and prints
      the pin of each in the verified chain, from the server's own to the root:

        sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=  CN=example.org

      A pin goes by the key, and survives the renewal of the certificate as long as the key stays. Pin at least two,
      one of them of a key that is kept in reserve.


      """ + PinsOptions.optionsHelp
    case .check:
      """
      larkspur check [--mend] PROGRAM ...

      Tells whether anything of the toolchain's FoundationNetworking or of curl's library is in a program: an executable,
      a test bundle or a shared library, linked dynamically or statically. `ldd` lists its shared libraries; those of the
      package are looked at as well. The program is not run.

      In a build folder of SwiftPM (.build/debug/PROGRAM) it also names the targets that were compiled against the
      toolchain's module, or before Larkspur was last built. Run it after each change of the package's dependencies, when
      packages that do not know of Larkspur are compiled against it by the product FoundationNetworking. The folder
      itself (.build/debug) will do, if there is no program yet.


      """ + CheckOptions.optionsHelp + """

        It exits with 0 if there is nothing, with 110 if there is something, and with 111 if that cannot be told.

        """
    case .transfers: TransfersOptions.help
    case .completions: CompletionsOptions.help
    case .exitStatus:
      "larkspur exits with\n\n"
        + ExitStatus.allCases.map { "  \(Format.padded("\($0.rawValue)", to: 3, atEnd: false))  \($0.meaning)\n" }
        .joined()
          + """

          After a failure the file of -o is as it was before. Where curl has a number for a failure, it is the same.

          """
    }
  }
}
