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
    "{\"event\":\(string(event.event)),\"id\":\(event.id.map(string) ?? "null"),\"data\":\(string(event.data))}\n"
  }

  /// Formats a string (RFC 8259 7). All hidden characters are escaped, also those that JSON allows.
  private static func string(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case _ where Format.isHidden(scalar):
        for unit in String(scalar).utf16 {
          result += "\\u" + Format.padded(String(unit, radix: 16), to: 4, with: "0", atEnd: false)
        }
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
