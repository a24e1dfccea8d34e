/// The options of `larkspur events`.
package struct EventsOptions: Hashable, Sendable {
  /// The URL and the options of each request.
  package var request: GetOptions
  package var isJSON = false
  package var reconnects = true
  /// The ID of the event to resume after, or `nil` to begin with the next event.
  package var lastEventID: String?
  /// The number of events after which the command ends, or `nil` for no limit.
  package var eventsMax: Int?

  package init() {
    request = GetOptions(url: "")
    // As the standard of event streams says.
    request.session.followsRedirects = true
  }

  private static let options: [ArgumentReader.Option] =
    [
      .init(nil, "json"), .init(nil, "no-reconnect"), .init(nil, "last-event-id", takesValue: true),
      .init(nil, "max-events", takesValue: true),
    ] + GetOptions.optionsOfRequests + TLSOptions.optionsOfSessions

  /// - Returns: The options, or `nil` if the command line asks for help.
  static func parse(_ arguments: ArraySlice<String>) throws(UsageError) -> EventsOptions? {
    var reader = ArgumentReader(arguments, options: options, topic: .events)
    var result = EventsOptions()
    while let argument = try reader.next() {
      switch argument {
      case .operand(let word): try result.request.take(url: word, topic: .events)
      case .option("help", _): return nil
      case .option(let name, let value):
        if try !result.request.takeOfRequest(name, value, topic: .events) { try result.take(name, value) }
      }
    }
    try result.request.checkRequest(topic: .events)
    return result
  }

  private mutating func take(_ name: String, _ value: String) throws(UsageError) {
    switch name {
    case "json": isJSON = true
    case "no-reconnect": reconnects = false
    case "last-event-id":
      // RFC 9110 5.5: no field can have these characters.
      guard !value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7f }) else {
        throw UsageError("--last-event-id has a control character: \(value.debugDescription)", topic: .events)
      }
      lastEventID = value
    case "max-events":
      guard value.utf8.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains), let number = Int(value), number > 0
      else { throw UsageError("--max-events wants a number from 1 on, not \(value.debugDescription)", topic: .events) }
      eventsMax = number
    default: throw UsageError("unknown option --\(name)", topic: .events)
    }
  }

  static let help =
    """
    larkspur events URL [option ...]

    Reads server-sent events from URL (http or https; `http://` may be left out), and writes each to standard output as
    a line: `type: data`, where control characters, line breaks included, are shown as \\x0a.

    When the connection ends or fails, the command connects again, and asks for the events that it has missed. It ends
    when the server answers with status 204, or in a way that another try would not mend.

          --json                Write each event as an object of JSON: {"event":"...","id":"...","data":"..."}.
          --no-reconnect        Make one connection, and end with it.
          --last-event-id ID    Ask for the events behind the one with this ID.
          --max-events N        End after N events.
      -v, --verbose             Tell on standard error of each try, its response and the waits between them.
      -H, --header 'Name: value'
                                Send the field with each request. Repeatable.

    """ + HelpTopic.proxyHelp + TLSOptions.helpOfSessions + """
        -h, --help

      A user and a password in the URL are sent as Basic authorization. Redirects are followed.

      """ + "See `larkspur help exit-status` for the numbers that it exits with.\n"
}
