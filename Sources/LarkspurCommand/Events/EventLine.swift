import Larkspur
import LarkspurConsole

/// Formats an event as one line.
package enum EventLine {
  /// Formats an event as `type: data`. Control characters become text such as `\x0a`, so that data of several lines
  /// stay on one line, and a terminal obeys no server.
  package static func text(_ event: ServerSentEvent) -> String {
    "\(Format.visible(event.event.utf8)): \(Format.visible(event.data.utf8))\n"
  }

  /// Formats an event as an object of JSON: `{"event":"message","id":"7","data":"text"}`. An event without an ID has
  /// `null`.
  package static func json(_ event: ServerSentEvent) -> String {
    "{\"event\":\(Format.json(event.event)),\"id\":\(event.id.map(Format.json) ?? "null"),\"data\":\(Format.json(event.data))}\n"
  }
}
