/// The pending deadlines of one loop, soonest first: a binary heap in an array.
///
/// The heap is updated lazily. The owner of a deadline inserts one entry, and moves the deadline later without changing
/// the heap. When the entry becomes due, the owner compares it with the current deadline. So a timeout that every
/// request postpones costs nothing for each request.
public struct DeadlineHeap: ~Copyable {
  public struct Entry: Equatable {
    public var deadline: Deadline
    public var slot: UInt32
    public var registration: UInt32

    public init(deadline: Deadline, slot: UInt32, registration: UInt32) {
      self.deadline = deadline
      self.slot = slot
      self.registration = registration
    }
  }

  private var entries: [Entry] = []

  public init() {}

  public var count: Int { entries.count }

  /// The soonest deadline, or `never`.
  public var soonest: Deadline { entries.first?.deadline ?? .never }

  public mutating func insert(_ entry: Entry) {
    var index = entries.count
    entries.append(entry)
    while index > 0 {
      let parent = (index - 1) / 2
      guard entries[index].deadline < entries[parent].deadline else { return }
      entries.swapAt(index, parent)
      index = parent
    }
  }

  /// Removes and returns the soonest entry if it is due at `now`.
  public mutating func popDue(at now: Deadline) -> Entry? {
    guard let top = entries.first, top.deadline <= now else { return nil }
    let last = entries.removeLast()
    guard !entries.isEmpty else { return top }
    entries[0] = last
    var index = 0
    while true {
      var child = 2 * index + 1
      guard child < entries.count else { return top }
      if child + 1 < entries.count, entries[child + 1].deadline < entries[child].deadline { child += 1 }
      guard entries[child].deadline < entries[index].deadline else { return top }
      entries.swapAt(index, child)
      index = child
    }
  }

  /// Removes the entries that are no longer needed, all at once. Until then they cost memory only.
  public mutating func removeAll(where isStale: (Entry) -> Bool) {
    let kept = entries.filter { !isStale($0) }
    entries.removeAll(keepingCapacity: true)
    for entry in kept { insert(entry) }
  }
}
