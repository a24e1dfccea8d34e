import LarkspurHTTP

/// Changes that are in memory and go to the disk later: heads that a revalidation has brought, and times of use.
///
/// ```
///  freshened ──► waits ──(interval, flush, exit)──► written
///                 │ └── freshened again: replaced, and still one write
///                 └── stored, removed or evicted ──► forgotten
/// ```
///
/// Owned by the cache's state, and changed under its mutex. The type refuses to know files and clocks.
struct CacheBehind: Sendable {
  /// Seconds for which the disk's word on when an entry was last used may be wrong. To write each use down would cost a
  /// system call for each hit.
  static let usedSecondsMax = 600.0
  /// Bytes of heads that wait for the interval. More are written at once.
  static let headsCostMax = 1 << 20

  private struct Use: Sendable {
    var last: Double
    /// The time that is on the disk, or is about to be.
    var written: Double
  }

  /// By entry, without their bodies.
  private(set) var heads: [CacheEntryName: CachedURLResponse] = [:]
  private(set) var headsCost = 0
  private var uses: [CacheEntryName: Use] = [:]
  /// Entries whose last use is to be written.
  private var unwrittenUses: Set<CacheEntryName> = []
  /// Whether a write is going to begin when the interval is over.
  var isScheduled = false

  var isEmpty: Bool { heads.isEmpty && !hasUses }

  var hasUses: Bool { !unwrittenUses.isEmpty }

  /// Keeps a head in place of the one that waits for the same entry.
  mutating func keepHead(_ name: CacheEntryName, of entry: CachedURLResponse) {
    let head = entry.withoutBody
    headsCost += head.cost - (heads[name]?.cost ?? 0)
    heads[name] = head
  }

  /// Notes that an entry on the disk is used.
  mutating func noteUse(_ name: CacheEntryName, at time: Double) {
    guard var use = uses[name] else {
      uses[name] = Use(last: time, written: time)
      unwrittenUses.insert(name)
      return
    }
    use.last = time
    // A clock that was set back counts as well.
    if abs(time - use.written) >= Self.usedSecondsMax {
      use.written = time
      unwrittenUses.insert(name)
    }
    uses[name] = use
  }

  /// When an entry was last used, as far as that has been here. Seconds since 1970.
  func lastUse(of name: CacheEntryName) -> Double? { uses[name]?.last }

  /// Takes the heads, which the caller writes.
  mutating func takeHeads() -> [CacheEntryName: CachedURLResponse] {
    defer {
      heads = [:]
      headsCost = 0
    }
    return heads
  }

  /// Takes some of the uses that are to be written, at most so many.
  mutating func takeUses(max count: Int) -> [(name: CacheEntryName, time: Double)] {
    let names = Array(unwrittenUses.prefix(count))
    unwrittenUses.subtract(names)
    return names.compactMap { name in uses[name].map { (name, $0.last) } }
  }

  /// The entry is gone, or has another body.
  mutating func forget(_ name: CacheEntryName) {
    uses[name] = nil
    unwrittenUses.remove(name)
    if let head = heads.removeValue(forKey: name) { headsCost -= head.cost }
  }

  /// Forgets all entries but these.
  mutating func forget(except isKept: (CacheEntryName) -> Bool) {
    let names = Set(heads.keys).union(uses.keys)
    for name in names where !isKept(name) { forget(name) }
  }
}
