import FuzzOracles
import LarkspurBytes
import LarkspurHTTP
import TestKit
import Testing

@Suite struct EventStreamParserTests {
  /// Reads a stream whole, byte by byte, and cut in two at every position. All have to agree with one another and with
  /// the naive reader.
  static func read(
    _ bytes: [UInt8], limits: EventStreamLimits = EventStreamLimits(), sourceLocation: SourceLocation = #_sourceLocation
  ) -> EventStreamOutcome {
    let whole = EventStreamOutcome(of: Cuts.whole(bytes), limits: limits)
    for index in 0...bytes.count {
      let cut = EventStreamOutcome(of: Cuts.two(bytes, at: index), limits: limits)
      if cut != whole { Issue.record("split at \(index): \(cut), but whole: \(whole)", sourceLocation: sourceLocation) }
    }
    let finding = EventStreamOracle.finding(in: bytes, sizes: [2], limits: limits)
    #expect(finding == nil, sourceLocation: sourceLocation)
    return whole
  }

  static func read(
    _ text: String, limits: EventStreamLimits = EventStreamLimits(), sourceLocation: SourceLocation = #_sourceLocation
  ) -> EventStreamOutcome {
    read(Array(text.utf8), limits: limits, sourceLocation: sourceLocation)
  }

  private static func limits(line: Int = 1 << 20, event: Int = 1 << 20) -> EventStreamLimits {
    var limits = EventStreamLimits()
    limits.lineBytesMax = line
    limits.eventBytesMax = event
    return limits
  }

  // MARK: - Line ends

  /// An event whose blank line ends with CR is complete at once, and an LF that comes later belongs to that line.
  @Test func aCarriageReturnEndsALineAtOnce() throws {
    var parser = EventStreamParser()
    var events: [EventStreamEvent] = []
    for (piece, expected) in [("data: 1\r\r", 1), ("\n", 1), ("data: 2\r", 1), ("\n\r", 2), ("\ndata: 3\n\n", 3)] {
      let bytes = Array(piece.utf8)
      var position = 0
      while let event = try parser.next(in: bytes.span, from: &position) { events.append(event) }
      #expect(position == bytes.count)
      #expect(events.count == expected, "after \(piece.debugDescription)")
    }
    #expect(events.map(\.data) == ["1", "2", "3"])
  }

  @Test func oneEventAtATime() throws {
    let bytes = Array("data: 1\n\ndata: 2\n\n".utf8)
    var parser = EventStreamParser()
    var position = 0
    #expect(try parser.next(in: bytes.span, from: &position)?.data == "1")
    #expect(position == 9)
    #expect(try parser.next(in: bytes.span, from: &position)?.data == "2")
    #expect(position == 18)
    #expect(try parser.next(in: bytes.span, from: &position) == nil)
  }

  // MARK: - Fields

  @Test func aWholeEvent() {
    let outcome = Self.read("event: add\nid: 7\nretry: 1500\ndata: one\ndata: two\n\n")
    #expect(
      outcome.events == [
        EventStreamEvent(type: "add", data: "one\ntwo", lastEventID: "7", retryMilliseconds: 1500)
      ])
    #expect(outcome.lastEventID == "7" && outcome.reconnectionMilliseconds == 1500)
  }

  @Test func namesAreWholeAndInLowerCase() {
    let outcome = Self.read("Data: 1\ndata : 2\nda: 3\ndatax: 4\n data: 5\nidx: 6\neventx: 7\nretryx: 8\ndata: 9\n\n")
    #expect(outcome.events == [EventStreamEvent(type: "message", data: "9", lastEventID: "", retryMilliseconds: nil)])
    #expect(outcome.reconnectionMilliseconds == nil)
  }

  /// A block without data is no event. Its type is forgotten, its ID and its reconnection time are not.
  @Test func aBlockWithoutData() {
    let outcome = Self.read("event: add\nid: 1\nretry: 5\n\ndata: x\n\n")
    #expect(outcome.events == [EventStreamEvent(type: "message", data: "x", lastEventID: "1", retryMilliseconds: nil)])
    #expect(outcome.reconnectionMilliseconds == 5)
    #expect(Self.read("id: 1\n\n").lastEventID == "1")
  }

  /// The ID of a block that is not complete is not one to resume from: its event has not been delivered.
  @Test func anIncompleteBlock() {
    let outcome = Self.read("id: 1\ndata: x\n\nid: 2\ndata: y\n")
    #expect(outcome.events.map(\.data) == ["x"] && outcome.lastEventID == "1")
  }

  @Test func emptyIDsResetTheID() {
    #expect(Self.read("id: 1\ndata: x\n\nid\ndata: y\n\n").events.map(\.lastEventID) == ["1", ""])
    #expect(Self.read([0x69, 0x64, 0x3a, 0x31, 0x00, 0x0a, 0x0a]).lastEventID == "")
  }

  @Test func theInitialIDStays() throws {
    var parser = EventStreamParser(lastEventID: "40")
    let bytes = Array("data: x\n\nid: 41\ndata: y\n\n".utf8)
    var position = 0
    #expect(try parser.next(in: bytes.span, from: &position)?.lastEventID == "40")
    #expect(try parser.next(in: bytes.span, from: &position)?.lastEventID == "41")
  }

  @Test(
    arguments: [
      ("0", 0), ("007", 7), ("18446744073709551615", .max), ("18446744073709551616", .max),
      ("99999999999999999999999", .max), ("", nil), ("-1", nil), ("+1", nil), ("1.5", nil), ("1 ", nil), (" 1", nil),
      ("\u{661}", nil),
    ] as [(String, UInt64?)])
  func retry(value: String, expected: UInt64?) {
    #expect(Self.read("retry: \(value)\n\n").reconnectionMilliseconds == expected)
  }

  // MARK: - Text

  @Test func aByteOrderMarkAtTheStartOnly() {
    #expect(Self.read("\u{FEFF}data: 1\n\n\u{FEFF}data: 2\n\n").events.map(\.data) == ["1"])
    #expect(Self.read("\u{FEFF}\u{FEFF}data: 1\n\n").events == [])
    #expect(Self.read("\u{FEFF}\n").events == [])
    // A part of a mark is the beginning of a line.
    #expect(Self.read([0xef, 0xbb] + Array("data: 1\n\n".utf8)).events == [])
    #expect(Self.read([0xef] + Array("\ndata: 1\n\n".utf8)).events.map(\.data) == ["1"])
  }

  @Test(
    arguments: [
      ([0x61, 0xff, 0x62], "a\u{FFFD}b"), ([0xf0, 0x9f, 0x98], "\u{FFFD}"), ([0xc0, 0xaf], "\u{FFFD}\u{FFFD}"),
      ([0xed, 0xa0, 0x80], "\u{FFFD}\u{FFFD}\u{FFFD}"), ([0xe2, 0x82, 0xac], "\u{20AC}"), ([0x00], "\0"),
    ] as [([UInt8], String)])
  func invalidText(value: [UInt8], expected: String) {
    var stream: [UInt8] = []
    for field in ["data:", "event:", "id:"] { stream += Array(field.utf8) + value + [0x0a] }
    let outcome = Self.read(stream + [0x0a])
    #expect(outcome.events.map(\.data) == [expected] && outcome.events.map(\.type) == [expected])
    #expect(outcome.lastEventID == (expected == "\0" ? "" : expected))
  }

  // MARK: - Limits

  @Test func defaults() {
    #expect(EventStreamLimits().lineBytesMax == 16 << 20 && EventStreamLimits().eventBytesMax == 16 << 20)
  }

  @Test(arguments: ["data: ", ": ", "x: ", "id: ", "event: "], ["\n", "\r", ""]) func aLineAtTheLimit(
    field: String, end: String
  ) {
    let line = field + String(repeating: "a", count: 40 - field.utf8.count)
    #expect(Self.read("data: x\n\n" + line + end, limits: Self.limits(line: 40)).error == nil)
    let past = Self.read("data: x\n\n" + line + "a" + end, limits: Self.limits(line: 40))
    #expect(past.error == .lineTooLong(limit: 40))
    #expect(past.events.map(\.data) == ["x"])
  }

  @Test func theByteOrderMarkDoesNotCount() {
    #expect(Self.read("\u{FEFF}data: 1\n\n", limits: Self.limits(line: 7)).error == nil)
    #expect(Self.read([0xef, 0xbb, 0x61], limits: Self.limits(line: 2)).error == .lineTooLong(limit: 2))
  }

  @Test func anEventAtTheLimit() {
    // Three lines of three bytes, and two line feeds between them.
    let lines = "data: abc\ndata: abc\ndata: abc\n"
    let outcome = Self.read(lines + "\ndata: x\n\n", limits: Self.limits(event: 11))
    #expect(outcome.error == nil && outcome.events.map(\.data) == ["abc\nabc\nabc", "x"])
    for past in [lines + "data\n", "data: a\n" + lines, "data: abc\ndata: abc\ndata: abcd\n"] {
      let outcome = Self.read("data: x\n\n" + past + "\n", limits: Self.limits(event: 11))
      #expect(outcome.error == .eventTooLarge(limit: 11) && outcome.events.map(\.data) == ["x"])
    }
    // Comments, types and unknown fields take no room in the event.
    let others = String(repeating: ": comment\nfoo: bar\nevent: a\n", count: 20)
    #expect(Self.read(others + lines + "\n", limits: Self.limits(event: 11)).error == nil)
  }

  @Test func nothingComesBehindAnError() {
    var parser = EventStreamParser(limits: Self.limits(line: 7))
    let bytes = Array("data: 123\n\ndata: 1\n\n".utf8)
    for _ in 0..<2 {
      var position = 0
      #expect(throws: EventStreamError.lineTooLong(limit: 7)) {
        try parser.next(in: bytes.span, from: &position)
      }
    }
  }

  // MARK: - Any stream

  @Test func randomStreams() {
    var random = SeededGenerator(for: "EventStreamParserTests.randomStreams")
    let parts = [
      "data", "id", "event", "retry", ":", ": ", " ", "\n", "\r", "\r\n", "\n\n", "1", "20", "x", "\u{FEFF}", "\0", "é",
    ].map { Array($0.utf8) }
    for round in 0..<3000 {
      var bytes: [UInt8] = []
      for _ in 0..<Int.random(in: 0...40, using: &random) {
        if Int.random(in: 0..<12, using: &random) == 0 {
          bytes.append(.random(in: 0...255, using: &random))
        } else {
          bytes += parts[Int.random(in: 0..<parts.count, using: &random)]
        }
      }
      let sizes = (0..<3).map { _ in UInt8.random(in: 0...9, using: &random) }
      let bound = Int.random(in: 1...30, using: &random)
      let limits = Bool.random(using: &random) ? EventStreamLimits() : Self.limits(line: bound, event: bound)
      let finding = EventStreamOracle.finding(in: bytes, sizes: sizes, limits: limits)
      #expect(finding == nil, "seed \(random.seed), round \(round): \(bytes)")
    }
  }
}
