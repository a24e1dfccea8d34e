import CAllocations
import LarkspurBytes
import TestKit
import Testing

@Suite struct ByteQueueTests {
  /// Returns the segments that a gathered write of at most `limit` segments would send.
  private static func gathered(_ queue: borrowing ByteQueue, atMost limit: Int = .max) -> [[UInt8]] {
    var segments: [[UInt8]] = []
    queue.withSegments(atMost: limit) { list in segments = list.map { Array($0) } }
    return segments
  }

  private static func counts(_ queue: borrowing ByteQueue) -> [Int] { [queue.byteCount, queue.segmentCount] }

  @Test func segmentsLeaveInOrder() {
    var queue = ByteQueue()
    queue.append([1, 2, 3])
    queue.append([])
    queue.append([4])
    queue.append([5, 6])
    #expect(Self.gathered(queue) == [[1, 2, 3], [4], [5, 6]])
    #expect(Self.gathered(queue, atMost: 2) == [[1, 2, 3], [4]])
    #expect(Self.gathered(queue, atMost: 0) == [])
    #expect(Self.counts(queue) == [6, 3])
  }

  @Test func dropAcrossSegments() {
    // Drops every number of bytes out of 3 + 1 + 2, and then every number of the rest.
    for first in 0...6 {
      for second in 0...(6 - first) {
        var queue = ByteQueue()
        queue.append([1, 2, 3])
        queue.append([4])
        queue.append([5, 6])
        queue.drop(first)
        queue.drop(second)
        let left = Array([1, 2, 3, 4, 5, 6].dropFirst(first + second)) as [UInt8]
        #expect(Array(Self.gathered(queue).joined()) == left, "after \(first) and \(second)")
        #expect(Self.counts(queue)[0] == left.count)
        let isEmpty = queue.isEmpty
        #expect(isEmpty == left.isEmpty)
      }
    }
  }

  @Test func dropTooMuchOrLessThanNothing() {
    var queue = ByteQueue()
    queue.append([1, 2])
    queue.drop(-1)
    #expect(Self.gathered(queue) == [[1, 2]])
    queue.drop(99)
    #expect(Self.counts(queue) == [0, 0])
    queue.append([3])
    #expect(Self.gathered(queue) == [[3]])
    queue.removeAll()
    #expect(Self.counts(queue) == [0, 0])
    #expect(Self.gathered(queue) == [])
  }

  @Test func randomScriptsAgainstOneArray() {
    var random = SeededGenerator(for: "ByteQueueTests.randomScripts")
    for round in 0..<200 {
      var queue = ByteQueue()
      var model: [UInt8] = []
      for step in 0..<100 {
        if Int.random(in: 0..<2, using: &random) == 0 {
          let count = Int.random(in: 0...20, using: &random)
          let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
          queue.append(bytes)
          model += bytes
        } else {
          let count = Int.random(in: 0...30, using: &random)
          queue.drop(count)
          model.removeFirst(min(count, model.count))
        }
        let limit = Int.random(in: 0...20, using: &random)
        let part = Array(Self.gathered(queue, atMost: limit).joined())
        let whole = Array(Self.gathered(queue).joined())
        let count = queue.byteCount
        #expect(
          whole == model && count == model.count && whole.starts(with: part),
          "seed \(random.seed), round \(round), step \(step)")
      }
    }
  }

  /// A queue that always holds some bytes does not grow, even if the drops do not end at the borders of segments:
  /// sockets accept any number of bytes.
  @Test(.enabled(if: larkspur_allocations_are_counted(), "a sanitizer owns malloc"), arguments: [0, 1, 5])
  func aQueueThatNeverDrainsDoesNotGrow(offset: Int) {
    let segment = [UInt8](repeating: 7, count: 10)
    var queue = ByteQueue()
    func turn(_ queue: inout ByteQueue) {
      queue.append(segment)
      queue.drop(segment.count)
    }
    queue.append(segment)
    queue.append(segment)
    queue.drop(offset)
    for _ in 0..<100 { turn(&queue) }
    let before = larkspur_allocations()
    for _ in 0..<10_000 { turn(&queue) }
    #expect(larkspur_allocations() - before == 0)
  }
}
