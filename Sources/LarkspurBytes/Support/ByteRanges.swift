/// A set of byte positions, as ranges that neither overlap nor touch, in order.
public struct ByteRanges: Hashable, Sendable {
  /// The ranges, without empty ones.
  public private(set) var ranges: [Range<Int>] = []

  public init() {}

  /// Reads ranges that a file or a peer has given.
  ///
  /// - Returns: `nil` unless the ranges are in order, not empty, apart from each other, and begin at 0 or later.
  public init?(_ ranges: [Range<Int>]) {
    var end = -1
    for range in ranges {
      guard !range.isEmpty, range.lowerBound > end else { return nil }
      end = range.upperBound
    }
    self.ranges = ranges
  }

  public var isEmpty: Bool { ranges.isEmpty }
  /// Number of positions.
  public var count: Int { ranges.reduce(0) { $0 + $1.count } }
  /// The end of the range that begins at 0, or 0 if there is none.
  public var prefixEnd: Int { ranges.first.map { $0.lowerBound == 0 ? $0.upperBound : 0 } ?? 0 }
  /// The end of the last range, or 0.
  public var end: Int { ranges.last?.upperBound ?? 0 }

  public mutating func insert(_ range: Range<Int>) {
    guard !range.isEmpty else { return }
    // The ranges that overlap or touch the new one.
    let first = ranges.firstIndex { $0.upperBound >= range.lowerBound } ?? ranges.endIndex
    let last = ranges[first...].firstIndex { $0.lowerBound > range.upperBound } ?? ranges.endIndex
    guard first < last else { return ranges.insert(range, at: first) }
    let joined =
      min(range.lowerBound, ranges[first].lowerBound)..<max(range.upperBound, ranges[last - 1].upperBound)
    ranges.replaceSubrange(first..<last, with: CollectionOfOne(joined))
  }

  public mutating func remove(_ range: Range<Int>) {
    guard !range.isEmpty else { return }
    ranges = ranges.flatMap { old in
      [
        old.lowerBound..<max(old.lowerBound, min(old.upperBound, range.lowerBound)),
        min(old.upperBound, max(old.lowerBound, range.upperBound))..<old.upperBound,
      ].filter { !$0.isEmpty }
    }
  }

  public mutating func subtract(_ other: ByteRanges) { for range in other.ranges { remove(range) } }

  /// Whether all positions of a range are in the set.
  public func contains(_ range: Range<Int>) -> Bool {
    range.isEmpty || ranges.contains { $0.lowerBound <= range.lowerBound && range.upperBound <= $0.upperBound }
  }

  /// The ranges of `whole` that are not in the set.
  public func gaps(in whole: Range<Int>) -> [Range<Int>] {
    var rest = ByteRanges()
    rest.insert(whole)
    rest.subtract(self)
    return rest.ranges
  }
}
