import LarkspurBytes

/// Parses an event stream (WHATWG HTML, section 9.2, "Server-sent events").
///
/// Theory of operation. The owner passes the stream in pieces of any size, and takes one event after the other, so
/// nothing is queued: `next` stops behind the blank line that completes an event. A line that is complete within one piece is
/// parsed in place. Bytes become text only when an event is complete. Line ends are ASCII, so decoding each value by itself gives the
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
  private var lines: LineCutter

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
    lines = LineCutter(lineBytesMax: limits.lineBytesMax)
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
    while let part = try nextLine(in: bytes, from: &position) {
      if !lines.beginning.isEmpty {
        let whole = lines.take(endingWith: bytes.extracting(part))
        try interpret(whole.span)
        lines.reuse(consume whole)
      } else if !part.isEmpty {
        try interpret(bytes.extracting(part))
      } else if let event = dispatch() {
        return event
      }
    }
    return nil
  }

  private mutating func nextLine(
    in bytes: Span<UInt8>, from position: inout Int
  ) throws(EventStreamError) -> Range<Int>? {
    do throws(LineCutter.TooLong) {
      return try lines.next(in: bytes, from: &position)
    } catch {
      throw fail(.lineTooLong(limit: limits.lineBytesMax))
    }
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
        lines.begin(with: Self.orderMark[..<count])
        break
      }
      position += 1
      count += 1
    }
    markCount = nil
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
    lines.clear()
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
