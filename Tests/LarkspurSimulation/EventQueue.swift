/// Future events, ordered by time. Events at the same time keep the order in which they were inserted.
struct EventQueue {
  private struct Entry {
    var time: UInt64
    var number: UInt64
    var happen: () -> Void

    func isBefore(_ other: Entry) -> Bool { time == other.time ? number < other.number : time < other.time }
  }

  /// A binary heap.
  private var entries: [Entry] = []
  private var count: UInt64 = 0

  var soonest: UInt64? { entries.first?.time }

  mutating func insert(at time: UInt64, _ happen: @escaping () -> Void) {
    count += 1
    entries.append(Entry(time: time, number: count, happen: happen))
    var index = entries.count - 1
    while index > 0, entries[index].isBefore(entries[(index - 1) / 2]) {
      entries.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  /// Removes and returns the soonest event that is due, or `nil` if none is.
  mutating func popDue(at now: UInt64) -> (() -> Void)? {
    guard let first = entries.first, first.time <= now else { return nil }
    entries.swapAt(0, entries.count - 1)
    entries.removeLast()
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2]
      where child < entries.count && entries[child].isBefore(entries[least]) {
        least = child
      }
      guard least != index else { return first.happen }
      entries.swapAt(index, least)
      index = least
    }
  }

  mutating func removeAll() { entries.removeAll() }
}
