/// The options of `larkspur events`.
package struct EventsOptions: OptionList, Hashable, Sendable {
  /// The URL and the options of each request.
  package var request: GetOptions
  /// Whether each event is written as an object of JSON.
  package var writesJSON = false
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

  static let options: [CommandOption<EventsOptions>] =
    [
      .flag(
        nil, "json-lines", #"Write each event as an object of JSON: {"event":"...","id":"...","data":"..."}."#,
        \.writesJSON),
      .init(
        nil, "no-reconnect", "", "Make one connection, and end with it, as for requests other than GET."
      ) { options, _ throws(UsageError) in options.reconnects = false },
      .init(nil, "last-event-id", "ID", "Ask for the events behind the one with this ID.") {
        options, value throws(UsageError) in
        // RFC 9110 5.5: no field can have these characters.
        guard !value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7f }) else {
          throw UsageError("--last-event-id has a control character: \(value.debugDescription)")
        }
        options.lastEventID = value
      },
      .init(nil, "max-events", "N", "End after N events.") { options, value throws(UsageError) in
        guard let number = Int(digits: value), number > 0 else {
          throw UsageError("--max-events wants a number from 1 on, not \(value.debugDescription)")
        }
        options.eventsMax = number
      },
    ] + (GetOptions.optionsOfRequests + GetOptions.optionsOfContent).within(\.request)
    + TLSOptions.optionsOfSessions.within(\.request.tls)

  mutating func take(_ word: String) throws(UsageError) { try request.take(word) }

  mutating func check() throws(UsageError) { try request.checkRequest() }

  static let help =
    """
    larkspur events URL [option ...]

    Reads server-sent events from URL (http or https; `http://` may be left out), and writes each to standard output as
    a line: `type: data`, where control characters, line breaks included, are shown as \\x0a.

    When the connection ends or fails, the command says so, connects again, and asks for the events that it has missed.
    It ends when the server answers with status 204, or in a way that another try would not mend. A request with another
    method than GET is made once.


    """ + optionsHelp + """

      A user and a password in the URL are sent as Basic authorization. Redirects are followed.

      """ + "See `larkspur help exit-status` for the numbers that it exits with.\n"
}
