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
    let parts = text.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, String(parts[0]).equalsIgnoringCase("bytes") else { return nil }
    let halves = parts[1].split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2, let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last else {
      return nil
    }
    bytes = first..<(last + 1)
    if halves[1] != "*" {
      guard let total = Self.number(halves[1]), total > last else { return nil }
      self.total = total
    }
  }

  public var text: String { "bytes \(bytes.lowerBound)-\(bytes.upperBound - 1)/\(total.map { "\($0)" } ?? "*")" }

  public var isWhole: Bool { bytes.lowerBound == 0 && bytes.upperBound == total }

  /// Returns the number, or `nil` if the text contains anything but digits, or more than 18 of them. With 18 digits
  /// sums of two numbers do not overflow.
  fileprivate static func number(_ text: some StringProtocol) -> Int? {
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
    guard text.utf8.count > 6, String(text.prefix(6)).equalsIgnoringCase("bytes=") else { return nil }
    let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2 else { return nil }
    if ends[0].isEmpty {
      guard let count = ContentRange.number(ends[1]) else { return nil }
      self = .suffix(count)
      return
    }
    guard let first = ContentRange.number(ends[0]) else { return nil }
    if ends[1].isEmpty {
      self = .from(first, through: nil)
    } else {
      guard let last = ContentRange.number(ends[1]), first <= last else { return nil }
      self = .from(first, through: last)
    }
  }

  /// Returns the bytes that the range means in a representation of `total` bytes, or `nil` if none of them exist, or if
  /// they depend on an unknown total.
  public func bytes(ofTotal total: Int?) -> Range<Int>? {
    switch self {
    case .from(let first, through: let last?):
      let end = min(last + 1, total ?? last + 1)
      return first < end ? first..<end : nil
    case .from(let first, through: nil):
      guard let total, first < total else { return nil }
      return first..<total
    case .suffix(let count):
      guard let total, count > 0, total > 0 else { return nil }
      return max(0, total - count)..<total
    }
  }
}
