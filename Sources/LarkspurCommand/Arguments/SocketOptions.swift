import LarkspurBytes

/// The options of `larkspur socket`.
package struct SocketOptions: OptionList, Hashable, Sendable {
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

  static let options: [CommandOption<SocketOptions>] =
    [
      .flag(nil, "binary", "Send each line as a binary message, whatever its bytes.", \.isBinary),
      .seconds(
        nil, "ping", "Send a ping every S seconds, and give up when nothing comes for S seconds after it.",
        \.pingInterval),
      .init(nil, "protocol", "NAME", "Offer this subprotocol. Repeatable, the preferred one first.") {
        options, value throws(UsageError) in
        // RFC 6455 4.1: subprotocols are tokens, and unique.
        guard !value.isEmpty, value.utf8.allSatisfy({ Scan.isToken($0) }) else {
          throw UsageError("--protocol wants a name without blanks and commas, not \(value.debugDescription)")
        }
        guard !options.protocols.contains(value) else { throw UsageError("--protocol \(value) is given twice") }
        options.protocols.append(value)
      },
      .init(nil, "no-compression", "", "Do not offer to compress messages (permessage-deflate).") {
        options, _ throws(UsageError) in options.offersCompression = false
      },
      .seconds("m", "max-time", "Give up when the WebSocket is not closed after S seconds.", \.request.maxTime),
    ] + GetOptions.optionsOfRequests.within(\.request) + TLSOptions.optionsOfSessions.within(\.request.tls)

  mutating func take(_ word: String) throws(UsageError) { try request.take(word) }

  mutating func check() throws(UsageError) { try request.checkRequest() }

  static let help =
    """
    larkspur socket URL [option ...]

    Opens a WebSocket to URL (ws or wss; `ws://` may be left out), sends each line of standard input as a text message,
    and writes the messages of the server to standard output: a text as a line, other bytes as they are. On a terminal
    other bytes are shown in hexadecimal, and control characters in a text as \\x1b.

    At the end of standard input the WebSocket is closed with code 1000, on Ctrl-C with 1001. Messages are shown until
    the server has closed its side. A line or a message may have 64 MiB.


    """ + optionsHelp + """

      A user and a password in the URL are sent as Basic authorization. Redirects are not followed.

      """ + "See `larkspur help exit-status` for the numbers that it exits with.\n"
}
