import LarkspurBytes

/// Parses an event stream (WHATWG HTML, section 9.2, "Server-sent events").
///
/// Theory of operation. The owner passes the stream in pieces of any size, and takes one event after the other, so
/// nothing is queued: `next` stops behind the blank line that completes an event. A line ends with LF, CR or CR LF. A
/// CR ends its line at once, even as the last byte of a piece, and an LF behind it is skipped when it arrives.
///
/// A line that is complete within one piece is parsed in place. The beginning of a line that spans pieces is copied.
/// Bytes become text only when an event is complete. Line ends are ASCII, so decoding each value by itself gives the
/// text that decoding the whole stream would give.
///
/// The parser does not depend on connections or time. Invariants: the events do not depend on how the stream is cut;
/// the parser holds at most one line and one event, within `EventStreamLimits`; after an error it returns no more
/// events.
package struct EventStreamParser: Sendable {
  /// Buffers up to this size in bytes are kept from one event to the next. Larger ones are released.
  private static let keptBytesMax = 64 * 1024

  private let limits: EventStreamLimits
  /// Number of bytes of a byte-order mark that have begun the stream, or `nil` behind the place for one.
  private var markCount: Int? = 0
  /// Whether the latest line ended with CR, so that an LF belongs to its ending.
  private var skipsLineFeed = false
  /// The beginning of a line that spans pieces.
  private var line: [UInt8] = []

  // The buffers of the standard.
  private var data: [UInt8] = []
  private var hasData = false
  private var type: [UInt8] = []
  private var lastEventIDBuffer: String
  private var retryMilliseconds: UInt64?

  /// The ID to resume from: that of the latest block of lines, with data or without, or the initial one.
  package private(set) var lastEventID: String
  /// The latest reconnection time that the stream has set, in milliseconds.
  package private(set) var reconnectionMilliseconds: UInt64?
  private var failure: EventStreamError?

  /// - Parameter lastEventID: The ID of the latest event of an earlier connection. Events without an ID have this one
  ///   until the stream sets another. The standard starts with an empty ID; browsers keep the ID, and so does this.
  package init(limits: EventStreamLimits = EventStreamLimits(), lastEventID: String = "") {
    self.limits = limits
    self.lastEventID = lastEventID
    lastEventIDBuffer = lastEventID
  }

  /// Returns the next event.
  ///
  /// - Parameters:
  ///   - bytes: A piece of the stream.
  ///   - position: The index of the first unread byte of the piece; moved behind the bytes that have been read.
  /// - Returns: An event, or `nil` if the whole piece has been read.
  package mutating func next(
    in bytes: Span<UInt8>, from position: inout Int
  ) throws(EventStreamError) -> EventStreamEvent? {
    if let failure { throw failure }
    position = max(position, 0)
    if let markCount { skipByteOrderMark(bytes, &position, markCount) }
    while position < bytes.count {
      if skipsLineFeed {
        skipsLineFeed = false
        if bytes[position] == ASCII.lf {
          position += 1
          continue
        }
      }
      let end = Scan.endOfLine(in: bytes, from: position, to: bytes.count)
      guard end - position <= limits.lineBytesMax - line.count else {
        throw fail(.lineTooLong(limit: limits.lineBytesMax))
      }
      let part = bytes.extracting(position..<end)
      guard end < bytes.count else {
        line.append(copying: part)
        position = end
        return nil
      }
      skipsLineFeed = bytes[end] == ASCII.cr
      position = end + 1
      if line.isEmpty {
        if part.isEmpty {
          if let event = dispatch() { return event }
        } else {
          try interpret(part)
        }
      } else {
        try interpretSpanningLine(endingWith: part)
      }
    }
    return nil
  }

  /// Skips a byte-order mark, which is allowed at the start only ("UTF-8 decode" of the Encoding standard).
  private mutating func skipByteOrderMark(_ bytes: Span<UInt8>, _ position: inout Int, _ count: Int) {
    var count = count
    while count < Self.orderMark.count {
      guard position < bytes.count else {
        markCount = count
        return
      }
      guard bytes[position] == Self.orderMark[count] else {
        line.append(contentsOf: Self.orderMark[..<count])
        break
      }
      position += 1
      count += 1
    }
    markCount = nil
  }

  private mutating func interpretSpanningLine(endingWith part: Span<UInt8>) throws(EventStreamError) {
    var whole: [UInt8] = []
    swap(&whole, &line)
    whole.append(copying: part)
    try interpret(whole.span)
    if whole.capacity <= Self.keptBytesMax {
      whole.removeAll(keepingCapacity: true)
      swap(&whole, &line)
    }
  }

  /// Interprets a line that is not empty. Comments, which begin with a colon, and unknown fields have no effect.
  private mutating func interpret(_ line: Span<UInt8>) throws(EventStreamError) {
    switch line[0] {
    case UInt8(ascii: "d"):
      if let start = valueStart(of: line, Name.data, 4) { try appendData(line.extracting(start...)) }
    case UInt8(ascii: "e"):
      guard let start = valueStart(of: line, Name.event, 5) else { return }
      type.assign(copying: line.extracting(start...))
    case UInt8(ascii: "i"):
      if let start = valueStart(of: line, Name.id, 2) { setID(line.extracting(start...)) }
    case UInt8(ascii: "r"):
      if let start = valueStart(of: line, Name.retry, 5) { setRetry(line.extracting(start...)) }
    default: break
    }
  }

  /// Returns the index of the line's value, if the line's field has this name.
  ///
  /// - Parameters:
  ///   - name: The bytes of the name, the first one in the most significant place.
  ///   - count: The length of the name.
  private func valueStart(of line: Span<UInt8>, _ name: UInt64, _ count: Int) -> Int? {
    guard line.count >= count else { return nil }
    var bytes: UInt64 = 0
    for index in 0..<count { bytes = bytes << 8 | UInt64(line[index]) }
    guard bytes == name else { return nil }
    // A line without a colon is a field with an empty value.
    guard line.count > count else { return count }
    guard line[count] == ASCII.colon else { return nil }
    // One space behind the colon does not belong to the value.
    return count + 1 < line.count && line[count + 1] == ASCII.space ? count + 2 : count + 1
  }

  private mutating func appendData(_ value: Span<UInt8>) throws(EventStreamError) {
    guard value.count + (hasData ? 1 : 0) <= limits.eventBytesMax - data.count else {
      throw fail(.eventTooLarge(limit: limits.eventBytesMax))
    }
    if hasData { data.append(ASCII.lf) }
    data.append(copying: value)
    hasData = true
  }

  private mutating func setID(_ value: Span<UInt8>) {
    // An ID with a NUL is ignored.
    for index in value.indices where value[index] == 0 { return }
    lastEventIDBuffer = text(value)
  }

  private mutating func setRetry(_ value: Span<UInt8>) {
    guard !value.isEmpty else { return }
    var number: UInt64 = 0
    for index in value.indices {
      guard ASCII.isDigit(value[index]) else { return }
      // A number that is too large becomes the largest one.
      let (product, overflow) = number.multipliedReportingOverflow(by: 10)
      let (sum, overflow2) = product.addingReportingOverflow(UInt64(value[index] &- UInt8(ascii: "0")))
      number = overflow || overflow2 ? .max : sum
    }
    retryMilliseconds = number
    reconnectionMilliseconds = number
  }

  /// Completes the block of lines that a blank line ends.
  ///
  /// - Returns: The event, or `nil` if the block has no data.
  private mutating func dispatch() -> EventStreamEvent? {
    lastEventID = lastEventIDBuffer
    defer {
      if !type.isEmpty { type = [] }
      retryMilliseconds = nil
    }
    guard hasData else { return nil }
    hasData = false
    let event = EventStreamEvent(
      type: type.isEmpty ? "message" : String(decoding: type, as: UTF8.self),
      data: String(decoding: data, as: UTF8.self), lastEventID: lastEventID, retryMilliseconds: retryMilliseconds)
    data.removeAll(keepingCapacity: data.capacity <= Self.keptBytesMax)
    return event
  }

  private mutating func fail(_ error: EventStreamError) -> EventStreamError {
    failure = error
    line = []
    data = []
    type = []
    return error
  }

  /// Returns the bytes as text, with U+FFFD in place of invalid UTF-8.
  private func text(_ bytes: Span<UInt8>) -> String {
    if let valid = try? UTF8Span(validating: bytes) { return String(copying: valid) }
    var copy: [UInt8] = []
    copy.append(copying: bytes)
    return String(decoding: copy, as: UTF8.self)
  }

  private static let orderMark: [UInt8] = [0xef, 0xbb, 0xbf]

  private enum Name {
    static let data: UInt64 = 0x6461_7461
    static let event: UInt64 = 0x65_7665_6e74
    static let id: UInt64 = 0x6964
    static let retry: UInt64 = 0x72_6574_7279
  }
}
