import LarkspurBytes

/// The bytes of a representation that a body contains (RFC 9110 14.4).
public struct ContentRange: Hashable, Sendable {
  public var bytes: Range<Int>
  /// The size of the whole in bytes, or `nil` if unknown.
  public var total: Int?

  public init(bytes: Range<Int>, total: Int?) {
    self.bytes = bytes
    self.total = total
  }

  /// Reads `bytes 0-499/1234` and `bytes 0-499/*`.
  public init?(_ text: String) {
    guard let halves = Self.suffix(of: text, after: "bytes ")?.split(separator: "/", omittingEmptySubsequences: false),
      halves.count == 2, case .from(let first, let last?)? = RequestedRange(ends: halves[0])
    else { return nil }
    bytes = first..<(last + 1)
    guard halves[1] != "*" else { return }
    guard let total = Self.number(halves[1]), total > last else { return nil }
    self.total = total
  }

  public var text: String { "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(total.map { "\($0)" } ?? "*")" }

  public var isWhole: Bool { bytes.lowerBound == 0 && bytes.upperBound == total }

  /// Whether, as far as known, no bytes follow.
  package var isTail: Bool { bytes.upperBound == total ?? bytes.upperBound }

  /// Reads the total of `bytes */1234`, which a 416 has.
  static func total(ofUnsatisfied text: String) -> Int? { suffix(of: text, after: "bytes */").flatMap(number) }

  /// Returns the text after a unit, whose name is in capital or small letters (RFC 9110 14.1).
  fileprivate static func suffix(of text: String, after unit: String) -> Substring? {
    String(text.prefix(unit.count)).equalsIgnoringCase(unit) ? text.dropFirst(unit.count) : nil
  }

  /// Returns the number, or `nil` if the text contains anything but digits, or more than 18 of them. With 18 digits
  /// sums of two numbers do not overflow.
  static func number(_ text: some StringProtocol) -> Int? {
    guard 1...18 ~= text.utf8.count, text.utf8.allSatisfy(ASCII.isDigit) else { return nil }
    return Int(text)
  }
}

/// The single range of bytes that a request asks for (RFC 9110 14.1.2). A request for several ranges is left to the
/// server.
public enum RequestedRange: Hashable, Sendable {
  case from(Int, through: Int?)
  case suffix(Int)

  public init?(_ text: String) {
    guard let ends = ContentRange.suffix(of: text, after: "bytes=") else { return nil }
    self.init(ends: ends)
  }

  fileprivate init?(ends text: Substring) {
    let ends = text.split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2 else { return nil }
    switch (ContentRange.number(ends[0]), ContentRange.number(ends[1])) {
    case (let first?, let last?) where first <= last: self = .from(first, through: last)
    case (let first?, nil) where ends[1].isEmpty: self = .from(first, through: nil)
    case (nil, let count?) where ends[0].isEmpty: self = .suffix(count)
    default: return nil
    }
  }

  /// Returns the bytes that the range means in a representation of `total` bytes, or `nil` if the range is empty there
  /// or depends on an unknown total.
  public func bytes(ofTotal total: Int?) -> Range<Int>? {
    switch self {
    case .from(let first, let last):
      let end = min(last.map { $0 + 1 } ?? total ?? 0, total ?? .max)
      return first < end ? first..<end : nil
    case .suffix(let count):
      guard let total, count > 0, total > 0 else { return nil }
      return max(0, total - count)..<total
    }
  }
}
