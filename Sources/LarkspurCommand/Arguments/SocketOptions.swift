import LarkspurBytes

/// The options of `larkspur socket`.
package struct SocketOptions: Hashable, Sendable {
  /// The URL and the options of the opening request.
  package var request = GetOptions(url: "")
  /// Whether lines are sent as binary messages.
  package var isBinary = false
  /// The interval of pings, or `nil` for no pings.
  package var pingInterval: Duration?
  /// The subprotocols to offer, the preferred one first.
  package var protocols: [String] = []
  package var offersCompression = true

  package init() {}

  private static let options: [ArgumentReader.Option] =
    [
      .init(nil, "binary"), .init(nil, "ping", takesValue: true), .init(nil, "protocol", takesValue: true),
      .init(nil, "no-compression"), .init(nil, "max-time", takesValue: true),
    ] + GetOptions.optionsOfRequests + TLSOptions.optionsOfSessions

  /// - Returns: The options, or `nil` if the command line asks for help.
  static func parse(_ arguments: ArraySlice<String>) throws(UsageError) -> SocketOptions? {
    var reader = ArgumentReader(arguments, options: options, topic: .socket)
    var result = SocketOptions()
    while let argument = try reader.next() {
      switch argument {
      case .operand(let word): try result.request.take(url: word, topic: .socket)
      case .option("help", _): return nil
      case .option(let name, let value):
        if try !result.request.takeOfRequest(name, value, topic: .socket) { try result.take(name, value) }
      }
    }
    try result.request.checkRequest(topic: .socket)
    return result
  }

  private mutating func take(_ name: String, _ value: String) throws(UsageError) {
    switch name {
    case "binary": isBinary = true
    case "ping": pingInterval = try GetOptions.timeout(value, of: name, topic: .socket)
    case "protocol":
      // RFC 6455 4.1: subprotocols are tokens, and unique.
      guard !value.isEmpty, value.utf8.allSatisfy({ Scan.isToken($0) }) else {
        throw UsageError(
          "--protocol wants a name without blanks and commas, not \(value.debugDescription)", topic: .socket)
      }
      guard !protocols.contains(value) else { throw UsageError("--protocol \(value) is given twice", topic: .socket) }
      protocols.append(value)
    case "no-compression": offersCompression = false
    case "max-time": request.maxTime = try GetOptions.timeout(value, of: name, topic: .socket)
    default: throw UsageError("unknown option --\(name)", topic: .socket)
    }
  }

  static let help =
    """
    larkspur socket URL [option ...]

    Opens a WebSocket to URL (ws or wss; `ws://` may be left out), sends each line of standard input as a text message,
    and writes the messages of the server to standard output: a text as a line, other bytes as they are. On a terminal
    other bytes are shown in hexadecimal, and control characters in a text as \\x1b.

    At the end of standard input the WebSocket is closed with code 1000, on Ctrl-C with 1001. Messages are shown until
    the server has closed its side. A line or a message may have 64 MiB.

          --binary              Send each line as a binary message, whatever its bytes.
          --ping S              Send a ping every S seconds, and give up when nothing comes for S seconds after it.
          --protocol NAME       Offer this subprotocol. Repeatable, the preferred one first.
          --no-compression      Do not offer to compress messages (permessage-deflate).
          --max-time S          Give up when the WebSocket is not closed after S seconds.
      -v, --verbose             Tell on standard error how the WebSocket opens and closes, and of messages and pings.
      -H, --header 'Name: value'
                                Send the field with the opening request. Repeatable.

    """ + HelpTopic.proxyHelp + TLSOptions.helpOfSessions + """
        -h, --help

      A user and a password in the URL are sent as Basic authorization. Redirects are not followed.

      """ + "See `larkspur help exit-status` for the numbers that it exits with.\n"
}
