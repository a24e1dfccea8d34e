import Foundation
import Larkspur
import TestKit

/// An event stream drawn at random, with the effects that a client has to see.
struct DrawnEventStream {
  enum Effect: Equatable {
    /// An event is complete: a numbered one, or one that cannot be resumed behind.
    case event(ServerSentEvent, number: Int?)
    /// A block of lines without data has set the last event ID.
    case lastEventID(String)
    /// A line has set the reconnection time, in milliseconds.
    case reconnectionTime(UInt64)
    /// A limit of the client is exceeded.
    case tooLarge
  }

  private enum Line {
    case id(String)
    case type(String)
    case data(String)
    /// The value of `retry`, and the number that it means, in milliseconds.
    case retry(String, UInt64?)
    case ignored(String)
  }

  /// The limit of the client for lines and events in limited streams.
  static let bytesMax = 1000

  private(set) var bytes: [UInt8] = []
  /// The effects, each with the number of bytes that lead to it.
  private(set) var effects: [(end: Int, effect: Effect)] = []
  /// The value of the latest `id` line.
  private var id: String
  private var endsWithCR = false
  private let isLimited: Bool

  /// - Parameters:
  ///   - lastEventID: The ID that the client begins with.
  ///   - isLimited: Whether the client refuses lines and events of more than `bytesMax` bytes.
  init(lastEventID: String, isLimited: Bool, using random: inout SeededGenerator) {
    id = lastEventID
    self.isLimited = isLimited
    if random.chance(30) { bytes = [0xef, 0xbb, 0xbf] }
  }

  var isTooLarge: Bool { effects.last?.effect == .tooLarge }

  // MARK: - Blocks

  /// Appends an event whose data begins with a number, and which has this number as its ID.
  mutating func appendEvent(_ number: Int, using random: inout SeededGenerator) {
    var lines = [Line.id("\(number)"), .data("\(number) \(text(&random))")]
    if random.chance(30) { lines.append(.data(text(&random))) }
    if !isLimited, random.chance(2) { lines.append(.data(String(repeating: "long ä", count: 3000))) }
    appendBlock(lines, number, using: &random)
  }

  /// Appends an event without an ID.
  mutating func appendNote(using random: inout SeededGenerator) {
    appendBlock((0..<Int.random(in: 1...3, using: &random)).map { _ in .data(text(&random)) }, using: &random)
  }

  /// Appends a block that only sets the ID.
  mutating func appendID(_ id: String, using random: inout SeededGenerator) { appendBlock([.id(id)], using: &random) }

  /// Appends comments, blank lines, and lines without an effect on events.
  mutating func appendSilence(using random: inout SeededGenerator) { appendBlock([], using: &random) }

  /// Appends a line or an event that is larger than a limited client accepts.
  mutating func appendTooLarge(using random: inout SeededGenerator) {
    if random.chance(50) {
      let start = bytes.count
      bytes += Array((random.chance(50) ? ":" : "data:").utf8)
      bytes += [UInt8](repeating: 0x61, count: Int.random(in: Self.bytesMax...3 * Self.bytesMax, using: &random))
      effects.append((start + Self.bytesMax + 1, .tooLarge))
    } else {
      for number in 1...3 {
        appendLine(
          Array("data:\(String(repeating: "b", count: 400))".utf8), number == 3 ? .tooLarge : nil, using: &random)
      }
    }
  }

  /// Appends many comments at once.
  mutating func appendFlood(_ count: Int) {
    let line = Array(": \(String(repeating: "f", count: 97))\n".utf8)
    for _ in 0..<count / line.count { bytes += line }
    endsWithCR = false
  }

  private mutating func appendBlock(_ needed: [Line], _ number: Int? = nil, using random: inout SeededGenerator) {
    var lines = needed
    // The mark that begins a line is none of the stream's only if the stream has begun.
    let ignored = bytes.isEmpty ? Self.ignored.dropLast() : Self.ignored[...]
    for _ in 0..<3 where random.chance(20) { lines.append(.ignored(random.pick(Array(ignored)))) }
    if random.chance(10) { lines.append(.type(random.pick(["greeting", "", "ä"]))) }
    if random.chance(10) { lines.append(random.pick(Self.retries)) }
    lines.shuffle(using: &random)
    var data: [String] = []
    var (type, retry): (String, UInt64?) = ("", nil)
    for line in lines {
      switch line {
      case .id(let value):
        id = value
        appendField("id", value, using: &random)
      case .type(let value):
        type = value
        appendField("event", value, using: &random)
      case .data(let value):
        data.append(value)
        appendField("data", value, using: &random)
      case .retry(let value, let number):
        retry = number ?? retry
        appendField("retry", value, number.map { .reconnectionTime($0) }, using: &random)
      case .ignored(let line): appendLine(Array(line.utf8), using: &random)
      }
    }
    let event = ServerSentEvent(
      id: id.isEmpty ? nil : id, event: type.isEmpty ? "message" : type, data: data.joined(separator: "\n"),
      retry: retry.map { .milliseconds($0) })
    appendLine([], data.isEmpty ? .lastEventID(id) : .event(event, number: number), using: &random)
    if random.chance(10) { appendLine([], using: &random) }
  }

  private static let ignored = [
    ":", ": comment", "unknown: x", "id: 7\0", "dat: x", "Data: x", " data: x", "x",
    "\u{feff}data: x",
  ]

  private static let retries: [Line] = [
    .retry("0", 0), .retry("10", 10), .retry("2500", 2500), .retry("007", 7), .retry("86400000", 86_400_000),
    .retry("99999999999999999999", .max), .retry("", nil), .retry("12x", nil), .retry("-1", nil), .retry("1.5", nil),
  ]

  private static let words = ["a", "event", "ä", "€", "😀", " ", "  ", ":", "data: x", "\u{fffd}", "\0", ""]

  private func text(_ random: inout SeededGenerator) -> String {
    (0..<Int.random(in: 0...4, using: &random)).map { _ in random.pick(Self.words) }.joined()
  }

  // MARK: - Lines

  private mutating func appendField(
    _ name: String, _ value: String, _ effect: Effect? = nil, using random: inout SeededGenerator
  ) {
    var line = Array(name.utf8)
    if !value.isEmpty || random.chance(50) {
      // One space behind the colon does not belong to the value.
      line += Array((value.utf8.first == 0x20 || random.chance(70) ? ": " : ":").utf8)
      // A byte that is not UTF-8 becomes U+FFFD.
      let isInvalid = random.chance(50)
      for scalar in value.unicodeScalars {
        if isInvalid, scalar == "\u{fffd}" { line.append(0xff) } else { line += Array(String(scalar).utf8) }
      }
    }
    appendLine(line, effect, using: &random)
  }

  private mutating func appendLine(_ line: [UInt8], _ effect: Effect? = nil, using random: inout SeededGenerator) {
    // Behind a CR, an LF would belong to the line before.
    let isBehindCR = line.isEmpty && endsWithCR
    let end: [UInt8] = random.pick(isBehindCR ? [[0x0d], [0x0d, 0x0a]] : [[0x0d], [0x0d, 0x0a], [0x0a]])
    bytes += line
    bytes += end.prefix(1)
    if let effect { effects.append((bytes.count, effect)) }
    bytes += end.dropFirst()
    endsWithCR = end == [0x0d]
  }
}

extension SeededGenerator {
  /// Returns `true` with a probability in percent.
  mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &self) < percent }

  /// Returns an element of a list that is not empty.
  mutating func pick<Element>(_ list: [Element]) -> Element { list[Int.random(in: list.indices, using: &self)] }
}
