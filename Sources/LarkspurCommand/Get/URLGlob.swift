import LarkspurIO

/// A URL with sets and ranges, each of which stands for several texts, as in curl: `{a,b}`, `[1-10]`, `[001-100:2]`,
/// `[a-z]`.
///
/// An IPv6 address in brackets, `[]`, and braces and brackets after a backslash stand for themselves.
package struct URLGlob: Hashable, Sendable {
  /// Maximum number of URLs.
  package static let urlsMax = 100_000

  private enum Part: Hashable {
    case text(String)
    case choices([String])
  }

  private var parts: [Part] = []
  /// The number of URLs.
  package private(set) var count = 1

  package init(_ text: String) throws(CommandFailure) {
    let bytes = Array(text.utf8)
    var literal: [UInt8] = []
    var index = 0
    func failure(_ problem: String, at position: Int) -> CommandFailure {
      // Positions count characters from 1 on, as an editor does.
      let column = String(decoding: bytes[..<position], as: UTF8.self).count + 1
      return CommandFailure(.malformedURL, "the URL, character \(column): \(problem) (-g takes a URL as it is)")
    }
    while index < bytes.count {
      let (byte, rest) = (bytes[index], bytes[index...])
      switch byte {
      case UInt8(ascii: "\\") where rest.dropFirst().first.map("{}[]".utf8.contains) == true:
        literal.append(bytes[index + 1])
        index += 2
      case UInt8(ascii: "[") where Self.literalCount(rest) > 0:
        literal += rest.prefix(Self.literalCount(rest))
        index += Self.literalCount(rest)
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        let isSet = byte == UInt8(ascii: "{")
        var choices: [String] = []
        var end = index
        do throws(Problem) {
          (choices, end) = isSet ? try Self.set(rest) : try Self.range(rest)
        } catch {
          throw failure(error.text, at: error.position)
        }
        let (product, isTooLarge) = count.multipliedReportingOverflow(by: choices.count)
        guard !isTooLarge, product <= Self.urlsMax else {
          throw failure("with this the URL stands for more than \(Self.urlsMax) URLs", at: index)
        }
        count = product
        if !literal.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
        literal = []
        parts.append(.choices(choices))
        index = end
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        throw failure("nothing opens before this \(Character(Unicode.Scalar(byte)))", at: index)
      default:
        literal.append(byte)
        index += 1
      }
    }
    if !literal.isEmpty || parts.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
  }

  /// Returns a URL, and the choices in it. The last set or range changes fastest.
  ///
  /// - Parameter index: From 0 to `count - 1`.
  package subscript(index: Int) -> (url: String, choices: [String]) {
    var rest = index
    var chosen: [String] = []
    var texts: [String] = []
    for part in parts.reversed() {
      switch part {
      case .text(let text): texts.append(text)
      case .choices(let choices):
        let choice = choices[rest % choices.count]
        rest /= choices.count
        chosen.append(choice)
        texts.append(choice)
      }
    }
    return (texts.reversed().joined(), chosen.reversed())
  }

  /// Replaces `#1` in a file's name by the first choice, `#2` by the second, and so on. Other numbers stay.
  package static func name(_ template: String, choices: [String]) -> String {
    template.replacing(/#([0-9]+)/) { match in
      guard let number = Int(match.1), choices.indices.contains(number - 1) else { return String(match.0) }
      return choices[number - 1]
    }
  }

  // MARK: - Parsing

  private struct Problem: Error {
    var text: String
    var position: Int
  }

  private typealias Bytes = ArraySlice<UInt8>

  /// Returns the length of an IPv6 address in brackets, perhaps with a zone, or of `[]`, at the beginning of the bytes.
  private static func literalCount(_ bytes: Bytes) -> Int {
    guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else { return 0 }
    let inner = bytes[..<end].dropFirst()
    let address = String(decoding: inner.prefix { $0 != UInt8(ascii: "%") }, as: UTF8.self)
    if case .ipv6? = SocketAddress(literal: address, port: 0) { return end - bytes.startIndex + 1 }
    return inner.isEmpty ? 2 : 0
  }

  /// Parses a set from its brace on.
  private static func set(_ bytes: Bytes) throws(Problem) -> ([String], Bytes.Index) {
    var choices: [[UInt8]] = [[]]
    var index = bytes.startIndex + 1
    while index < bytes.endIndex {
      switch bytes[index] {
      case UInt8(ascii: "}"):
        guard choices != [[]] else { throw Problem(text: "nothing is in the braces", position: bytes.startIndex) }
        return (choices.map { String(decoding: $0, as: UTF8.self) }, index + 1)
      case UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "]"):
        throw Problem(text: "braces cannot have brackets or braces in them", position: index)
      case UInt8(ascii: ","): choices.append([])
      case UInt8(ascii: "\\") where index + 1 < bytes.endIndex:
        index += 1
        choices[choices.count - 1].append(bytes[index])
      case let byte: choices[choices.count - 1].append(byte)
      }
      index += 1
    }
    throw Problem(text: "the closing brace is missing", position: bytes.startIndex)
  }

  /// Parses a range from its bracket on: `[FIRST-LAST]` or `[FIRST-LAST:STEP]`.
  private static func range(_ bytes: Bytes) throws(Problem) -> ([String], Bytes.Index) {
    let start = bytes.startIndex
    guard let end = bytes.firstIndex(of: UInt8(ascii: "]")) else {
      throw Problem(text: "the closing bracket is missing", position: start)
    }
    let text = String(decoding: bytes[..<end].dropFirst(), as: UTF8.self)
    let invalid = Problem(
      text: "this is no range such as [1-10], [001-100:2] or [a-z]", position: start)
    guard let match = text.wholeMatch(of: /([0-9]+|[A-Za-z])-([0-9]+|[A-Za-z])(?::([0-9]+))?/) else { throw invalid }
    let isNumber = match.1.first?.isNumber == true
    let bounds = [match.1, match.2].map { isNumber ? Int($0) : $0.unicodeScalars.first.map { Int($0.value) } }
    guard isNumber == (match.2.first?.isNumber == true), let first = bounds[0], let last = bounds[1], first <= last,
      let step = match.3.map({ Int($0) }) ?? 1, step > 0, isNumber || last - first <= 25
    else { throw invalid }
    guard (last - first) / step < urlsMax else {
      throw Problem(text: "the range stands for more than \(urlsMax) URLs", position: start)
    }
    // As in curl, leading zeros set the width of all numbers.
    let width = match.1.first == "0" ? match.1.count : 0
    let choices = (0...(last - first) / step).map { index in
      let value = first + index * step
      guard isNumber else { return Unicode.Scalar(UInt32(value)).map { String($0) } ?? "" }
      return String(repeating: "0", count: max(width - "\(value)".count, 0)) + "\(value)"
    }
    return (choices, end + 1)
  }
}
