import LarkspurBytes
import TestKit
import Testing

@Suite struct DeadlineHeapTests {
  @Test func anEmptyHeapIsNeverDue() {
    var heap = DeadlineHeap()
    let (count, soonest, due) = (heap.count, heap.soonest, heap.popDue(at: .never))
    #expect((count, soonest) == (0, .never))
    #expect(due == nil)
  }

  @Test func dueMeansNowOrBefore() {
    var heap = DeadlineHeap()
    let entry = DeadlineHeap.Entry(deadline: Deadline(nanoseconds: 10), slot: 1, registration: 2)
    heap.insert(entry)
    let before = heap.popDue(at: Deadline(nanoseconds: 9))
    let now = heap.popDue(at: Deadline(nanoseconds: 10))
    let again = heap.popDue(at: Deadline(nanoseconds: 10))
    #expect([before, now, again] == [nil, entry, nil])
  }

  /// The heap agrees with a sorted array under random scripts.
  @Test func randomScriptsAgainstASortedArray() {
    var random = SeededGenerator(for: "DeadlineHeapTests.randomScripts")
    for round in 0..<200 {
      var heap = DeadlineHeap()
      var model: [DeadlineHeap.Entry] = []
      // Few distinct deadlines, so that equal ones occur.
      let moments = UInt64.random(in: 1...50, using: &random)
      for step in 0..<200 {
        if Int.random(in: 0..<5, using: &random) < 3 {
          let entry = DeadlineHeap.Entry(
            deadline: Deadline(nanoseconds: UInt64.random(in: 0..<moments, using: &random)), slot: UInt32(step),
            registration: UInt32.random(in: 0...9, using: &random))
          heap.insert(entry)
          model.append(entry)
          model.sort { $0.deadline < $1.deadline }
        } else {
          let now = Deadline(nanoseconds: UInt64.random(in: 0..<moments, using: &random))
          let popped = heap.popDue(at: now)
          let expected = model.first { $0.deadline <= now }
          // The order of entries with equal deadlines is unspecified.
          #expect(popped?.deadline == expected?.deadline, "seed \(random.seed), round \(round), step \(step)")
          if let popped {
            let index = model.firstIndex(of: popped)
            #expect(index != nil, "seed \(random.seed), round \(round), step \(step): \(popped) was not inserted")
            if let index { model.remove(at: index) }
          }
        }
        let (count, soonest) = (heap.count, heap.soonest)
        #expect(
          count == model.count && soonest == model.first?.deadline ?? .never,
          "seed \(random.seed), round \(round), step \(step)")
      }
    }
  }
}

extension DeadlineHeapTests {
  @Test func whatIsStaleGoesAtOnce() {
    var heap = DeadlineHeap()
    for number in 0..<100 {
      heap.insert(
        .init(deadline: Deadline(nanoseconds: UInt64(997 * number % 100)), slot: 0, registration: UInt32(number)))
    }
    heap.removeAll { $0.registration % 3 != 0 }
    var left: [UInt64] = []
    while let due = heap.popDue(at: .never) {
      #expect(due.registration % 3 == 0)
      left.append(due.deadline.nanoseconds)
    }
    #expect(left == left.sorted() && left.count == 34)
  }
}
