import Foundation
import TestKit
import Testing

@testable import AFNetworking

/// Tests the order of downloads without any network, and compares the queue with a naive one.
@Suite struct ImageDownloadQueueTests {
  typealias Queue = ImageDownloadQueue<String, Int>

  private func queue(_ activeMax: Int, _ isLastInFirstOut: Bool) -> Queue {
    Queue(activeMax: activeMax, isLastInFirstOut: isLastInFirstOut)
  }

  /// Adds downloads with these priorities, and returns the keys in the order of their starts.
  private func order(_ priorities: [AFImageDownloadPriority], isLastInFirstOut: Bool) -> [Int] {
    var queue = queue(1, isLastInFirstOut)
    for (index, priority) in priorities.enumerated() {
      queue.add(queue.nextNumber(), "\(index)", call: index, 0, priority: priority)
    }
    var order: [Int] = []
    while let number = queue.startNext() {
      #expect(queue.startNext() == nil && queue.activeCount == 1)
      order.append(number - 1)
      _ = queue.finish(number)
    }
    #expect(queue.count == 0 && queue.activeCount == 0)
    return order
  }

  @Test func orders() {
    #expect(order([.normal, .normal, .normal], isLastInFirstOut: false) == [0, 1, 2])
    #expect(order([.normal, .normal, .normal], isLastInFirstOut: true) == [2, 1, 0])
    #expect(order([.low, .normal, .high, .high], isLastInFirstOut: false) == [2, 3, 1, 0])
    #expect(order([.low, .normal, .high, .high], isLastInFirstOut: true) == [3, 2, 1, 0])
  }

  @Test func aJoinRaisesThePriority() {
    var queue = queue(1, false)
    for (call, key) in ["a", "b", "c"].enumerated() {
      queue.add(queue.nextNumber(), key, call: call, 0, priority: .low)
    }
    let joins = [(3, "c", AFImageDownloadPriority.high), (4, "b", .low), (5, "d", .low)].map { call, key, priority in
      queue.join(key, call: call, 1, priority: priority)
    }
    #expect(joins == [true, true, false])
    let number = queue.startNext()
    #expect(number == 3 && queue.receivers(of: 3) == [0, 1])
    #expect(queue.finish(3)?.receivers.values == [0, 1] && queue.finish(3) == nil)
  }

  /// Random scripts, beside a queue that searches arrays.
  @Test(arguments: 0..<20) func model(seed: UInt64) {
    struct Naive {
      var key: String
      var number: Int
      var priority: AFImageDownloadPriority
      var isActive = false
      var calls: [Int]
    }
    var random = SeededGenerator(seed: seed)
    let isLastInFirstOut = seed.isMultiple(of: 2)
    var queue = queue(3, isLastInFirstOut)
    var waiting: [Naive] = []
    var active: [Naive] = []
    for call in 0..<400 {
      let key = "\(Int.random(in: 0..<12, using: &random))"
      let priority = AFImageDownloadPriority.allCases.randomElement(using: &random) ?? .normal
      switch Int.random(in: 0..<4, using: &random) {
      case 0, 1:
        if queue.join(key, call: call, 0, priority: priority) {
          if let index = active.firstIndex(where: { $0.key == key }) { active[index].calls.append(call) }
          if let index = waiting.firstIndex(where: { $0.key == key }) {
            waiting[index].calls.append(call)
            if priority > waiting[index].priority {
              var moved = waiting.remove(at: index)
              moved.priority = priority
              waiting.insert(moved, at: isLastInFirstOut ? 0 : waiting.count)
            }
          }
        } else {
          #expect(!(waiting + active).contains { $0.key == key })
          let number = queue.nextNumber()
          queue.add(number, key, call: call, 0, priority: priority)
          let new = Naive(key: key, number: number, priority: priority, calls: [call])
          waiting.insert(new, at: isLastInFirstOut ? 0 : waiting.count)
        }
      case 2:
        guard let victim = (waiting + active).randomElement(using: &random), let cancelled = victim.calls.first else {
          continue
        }
        #expect(queue.cancel(cancelled)?.cancelled == (victim.calls.count == 1 ? victim.number : nil))
        for index in waiting.indices { waiting[index].calls.removeAll { $0 == cancelled } }
        for index in active.indices { active[index].calls.removeAll { $0 == cancelled } }
        waiting.removeAll { $0.calls.isEmpty }
        active.removeAll { $0.calls.isEmpty }
      default:
        guard let over = active.randomElement(using: &random) else { continue }
        #expect(queue.finish(over.number)?.receivers.count == over.calls.count)
        active.removeAll { $0.number == over.number }
      }
      while active.count < 3, let best = waiting.map(\.priority).max(),
        let index = waiting.firstIndex(where: { $0.priority == best })
      {
        #expect(queue.startNext() == waiting[index].number)
        active.append(waiting.remove(at: index))
      }
      #expect(queue.startNext() == nil && queue.activeCount == active.count)
      #expect(queue.count == waiting.count + active.count)
    }
  }
}
