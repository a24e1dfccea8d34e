import LarkspurHTTP

/// Changes that are in memory and are written to disk later: heads from revalidations, times of use, and the removal of
/// files that only another process can have written.
///
/// ```
///  freshened ──► waits ──(interval, headsCostMax, flush, exit)──► written
///                 │ └── freshened again: replaced, and still one write
///                 └── stored, removed or evicted ──► forgotten
/// ```
///
/// The cache's state owns it, and its mutex guards it. The type does not depend on files or clocks.
struct DeferredWrites: Sendable {
  /// Maximum error, in seconds, of the time of last use on disk. Performance: writing each use would cost a system call
  /// for each hit (decision 27).
  static let usedSecondsMax = 600.0
  /// Maximum number of bytes of heads that wait for the interval. When there are more, all are written at once.
  static let headsCostMax = 1 << 20

  private struct Use: Sendable {
    var last: Double
    /// The time that is on the disk, or is going to be written.
    var written: Double
  }

  /// The heads by entry, without bodies.
  private(set) var heads: [CacheEntryName: CachedURLResponse] = [:]
  private(set) var headsCost = 0
  private var uses: [CacheEntryName: Use] = [:]
  /// The entries whose time of last use has not been written yet.
  private var unwrittenUses: Set<CacheEntryName> = []
  /// Whether a write is scheduled for the end of the interval.
  var isScheduled = false

  /// The files of invalidated keys for which no file is known. Another process may have written one since the list of
  /// files was read; a lookup ignores it.
  private(set) var suspects: Set<CacheEntryName> = []
  /// Maximum number of suspects that wait for the interval. When there are more, all are removed at once.
  static let suspectsMax = 64

  var isEmpty: Bool { heads.isEmpty && !hasUses && suspects.isEmpty }

  var hasUses: Bool { !unwrittenUses.isEmpty }

  /// Stores a head, replacing the waiting head of the same entry.
  mutating func keepHead(_ name: CacheEntryName, of entry: CachedURLResponse) {
    let head = entry.withoutBody
    headsCost += head.cost - (heads[name]?.cost ?? 0)
    heads[name] = head
  }

  /// Records a use of an entry on the disk.
  mutating func noteUse(_ name: CacheEntryName, at time: Double) {
    guard var use = uses[name] else {
      uses[name] = Use(last: time, written: time)
      unwrittenUses.insert(name)
      return
    }
    use.last = time
    // `abs`, because a clock that was set back counts too.
    if abs(time - use.written) >= Self.usedSecondsMax {
      use.written = time
      unwrittenUses.insert(name)
    }
    uses[name] = use
  }

  /// Returns the time of an entry's last use in this process, in seconds since 1970.
  func lastUse(of name: CacheEntryName) -> Double? { uses[name]?.last }

  /// Removes and returns the heads, for the caller to write.
  mutating func takeHeads() -> [CacheEntryName: CachedURLResponse] {
    defer {
      heads = [:]
      headsCost = 0
    }
    return heads
  }

  /// Removes and returns at most `count` of the uses to write.
  mutating func takeUses(max count: Int) -> [(name: CacheEntryName, time: Double)] {
    let names = Array(unwrittenUses.prefix(count))
    unwrittenUses.subtract(names)
    return names.compactMap { name in uses[name].map { (name, $0.last) } }
  }

  mutating func suspect(_ name: CacheEntryName) { suspects.insert(name) }

  /// Removes and returns the suspects, for the caller to remove their files.
  mutating func takeSuspects() -> Set<CacheEntryName> {
    defer { suspects = [] }
    return suspects
  }

  /// Drops the changes of an entry that is gone or has another body.
  mutating func forget(_ name: CacheEntryName) {
    uses[name] = nil
    unwrittenUses.remove(name)
    if let head = heads.removeValue(forKey: name) { headsCost -= head.cost }
  }

  /// Drops the changes of all entries except those for which `isKept` returns `true`.
  mutating func forget(except isKept: (CacheEntryName) -> Bool) {
    let names = Set(heads.keys).union(uses.keys)
    for name in names where !isKept(name) { forget(name) }
  }
}
