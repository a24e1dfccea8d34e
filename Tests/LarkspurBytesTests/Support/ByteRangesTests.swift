import LarkspurBytes
import Testing

/// Each operation, compared with a set of positions that holds each one alone.
@Suite struct ByteRangesTests {
  private static let size = 6

  /// All sets of the positions from 0 to 5.
  private static let sets = (0..<(1 << size)).map { bits in Set((0..<size).filter { bits >> $0 & 1 == 1 }) }
  private static let spans = (0...size).flatMap { lower in (lower...size).map { lower..<$0 } }

  private static func ranges(_ set: Set<Int>) -> ByteRanges {
    var ranges = ByteRanges()
    for position in set { ranges.insert(position..<(position + 1)) }
    return ranges
  }

  /// The positions of ranges that are in order and apart, or `nil` if they are not.
  private static func set(_ ranges: [Range<Int>]) -> Set<Int>? {
    let areApart = zip(ranges, ranges.dropFirst()).allSatisfy { $0.upperBound < $1.lowerBound }
    return areApart && !ranges.contains(where: \.isEmpty) ? Set(ranges.joined()) : nil
  }

  @Test func eachSetHasItsRanges() {
    for set in Self.sets {
      let ranges = Self.ranges(set)
      #expect(Self.set(ranges.ranges) == set)
      #expect(ranges.count == set.count && ranges.isEmpty == set.isEmpty)
      #expect(ranges.end == (set.max().map { $0 + 1 } ?? 0))
      #expect(ranges.prefixEnd == (0...Self.size).first { !set.contains($0) })
      #expect(ByteRanges(ranges.ranges) == ranges)
    }
  }

  @Test func insertionsAndRemovals() {
    for set in Self.sets {
      let ranges = Self.ranges(set)
      for span in Self.spans {
        var (more, less) = (ranges, ranges)
        more.insert(span)
        less.remove(span)
        #expect(Self.set(more.ranges) == set.union(span))
        #expect(Self.set(less.ranges) == set.subtracting(span))
        #expect(ranges.contains(span) == set.isSuperset(of: span))
        #expect(Self.set(ranges.gaps(in: span)) == Set(span).subtracting(set))
      }
    }
  }

  @Test func differences() {
    for set in Self.sets {
      for other in Self.sets {
        var ranges = Self.ranges(set)
        ranges.subtract(Self.ranges(other))
        #expect(Self.set(ranges.ranges) == set.subtracting(other))
      }
    }
  }

  @Test(arguments: [[0..<0], [-1..<2], [0..<2, 2..<3], [0..<2, 1..<3], [4..<5, 0..<2]])
  func rangesThatAreOutOfOrderAreRefused(ranges: [Range<Int>]) { #expect(ByteRanges(ranges) == nil) }

  @Test func theLargestPositions() {
    var ranges = ByteRanges()
    ranges.insert(5..<Int.max)
    ranges.insert(0..<5)
    #expect(ranges.ranges == [0..<Int.max] && ranges.count == .max)
    #expect(ByteRanges().gaps(in: 0..<Int.max) == [0..<Int.max])
    ranges.remove(1..<(Int.max - 1))
    #expect(ranges.ranges == [0..<1, (Int.max - 1)..<Int.max])
  }
}
