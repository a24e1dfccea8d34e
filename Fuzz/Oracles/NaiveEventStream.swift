import LarkspurHTTP

/// Reads an event stream as the standard is worded (WHATWG HTML 9.2.5 and 9.2.6): decodes everything, splits the text
/// into lines, and applies the steps to each line.
enum NaiveEventStream {
  static func read(_ bytes: [UInt8], limits: EventStreamLimits) -> EventStreamOutcome {
    let mark: [UInt8] = [0xef, 0xbb, 0xbf]
    // A part of a byte-order mark is no line before another byte shows that it is none.
    if bytes.count < mark.count, mark.starts(with: bytes) { return EventStreamOutcome() }
    let bytes = bytes.starts(with: mark) ? Array(bytes[mark.count...]) : bytes
    // The limits count bytes as they are sent, so the lines are needed as bytes, too.
    let sent = lines(bytes, isLineFeed: { $0 == 0x0a }, isCarriageReturn: { $0 == 0x0d })
    let texts = lines(
      Array(String(decoding: bytes, as: UTF8.self).unicodeScalars), isLineFeed: { $0 == "\n" },
      isCarriageReturn: { $0 == "\r" })
    var outcome = EventStreamOutcome()
    var (data, type, id) = ("", "", "")
    var retry: UInt64?
    var dataBytes = 0
    for (index, line) in texts.enumerated() {
      guard index < sent.count, sent[index].count <= limits.lineBytesMax else {
        outcome.error = .lineTooLong(limit: limits.lineBytesMax)
        return outcome
      }
      // What stands behind the last line end is not a line.
      if index == texts.count - 1 { break }
      if line.isEmpty {
        outcome.lastEventID = id
        if !data.isEmpty {
          outcome.events.append(
            EventStreamEvent(
              type: type.isEmpty ? "message" : type, data: text(data.unicodeScalars.dropLast()), lastEventID: id,
              retryMilliseconds: retry))
        }
        (data, type, retry, dataBytes) = ("", "", nil, 0)
        continue
      }
      let colon = line.firstIndex(of: ":") ?? line.count
      var value = line[min(colon + 1, line.count)...]
      if value.first == " " { value = value.dropFirst() }
      switch text(line[..<colon]) {
      case "event": type = text(value)
      case "data":
        // The name is ASCII, so the value begins at the same index of the bytes.
        dataBytes += sent[index].count - value.startIndex + (data.isEmpty ? 0 : 1)
        guard dataBytes <= limits.eventBytesMax else {
          outcome.error = .eventTooLarge(limit: limits.eventBytesMax)
          return outcome
        }
        data += text(value) + "\n"
      case "id": if !value.contains("\0") { id = text(value) }
      case "retry":
        guard !value.isEmpty, value.allSatisfy({ ("0"..."9").contains($0) }) else { break }
        retry = UInt64(text(value)) ?? .max
        outcome.reconnectionMilliseconds = retry
      default: break
      }
    }
    return outcome
  }

  private static func text(_ scalars: some Sequence<Unicode.Scalar>) -> String {
    var text = ""
    text.unicodeScalars.append(contentsOf: scalars)
    return text
  }

  /// Splits at CR LF, LF and CR. The last line is what stands behind the last line end.
  private static func lines<Unit>(
    _ units: [Unit], isLineFeed: (Unit) -> Bool, isCarriageReturn: (Unit) -> Bool
  ) -> [[Unit]] {
    var lines: [[Unit]] = [[]]
    var index = 0
    while index < units.count {
      if isCarriageReturn(units[index]) {
        if index + 1 < units.count, isLineFeed(units[index + 1]) { index += 1 }
        lines.append([])
      } else if isLineFeed(units[index]) {
        lines.append([])
      } else {
        lines[lines.count - 1].append(units[index])
      }
      index += 1
    }
    return lines
  }
}
