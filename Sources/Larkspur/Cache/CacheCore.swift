import Foundation
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// The memory and the disk of a cache, and the record of the place of each response.
///
/// One mutex guards the responses in memory and the list of files. It is held only briefly, so any thread may take it,
/// a loop's too. Files are read and written on one queue. A change is put on the queue while the mutex is held, so
/// changes reach the disk in the order of the mutex: a removal never overtakes the write before it.
///
/// The list of files is a hint, because other processes may add and remove files. It is read again from time to time,
/// and a listed file that does not exist is a miss.
final class CacheCore: FinishedAtExit {
  /// Maximum number of variants of one URI. Without it, a server that varies its responses by a field with random
  /// values would fill the cache.
  static let variantsMax = 16
  /// Age in seconds at which the list of files is read again, to see the files of other processes.
  static let scanSeconds: Int64 = 30
  /// The list is also read again after this process has written 1/8 of the capacity in bytes, or as many files as 1/8
  /// of the number of keys, but at least 64. Reading the list takes time proportional to the number of files.
  static let scanShare = 8
  static let scanFilesMin = 64
  /// Maximum number of keys whose invalidation is recorded.
  static let invalidatedMax = 256
  /// Maximum number of bytes that wait to be written. While the disk is too slow, responses stay in memory only.
  static let pendingCostMax = 16 << 20

  struct State: Sendable {
    var memoryCapacity: Int
    var diskCapacity: Int
    var memory: [String: [CachedURLResponse]] = [:]
    var memoryLedger = RecencyLedger<MemoryName>()
    var files: [CacheHash: [CacheEntryName]] = [:]
    var fileLedger = RecencyLedger<CacheEntryName>()
    /// The sizes of the files with later heads.
    var heads: [CacheEntryName: Int] = [:]
    /// The generations of the entries on disk that were stored or read by this process.
    var generations: [CacheEntryName: UInt64] = [:]
    var behind = DeferredWrites()
    var isScanned = false
    /// The number of changes. An entry that was read from disk before a change may differ from the one on disk
    /// after it.
    var changes: UInt64 = 0
    /// The files that the queue still has to write, each with the number of its change. They stay listed, so that a
    /// response that was just stored is found. The number shows whether the file has been removed or stored again
    /// since.
    var pending: [CacheEntryName: UInt64] = [:]
    var pendingCost = 0
    /// The number of changes that the queue has not finished.
    var unfinished = 0
    /// The number of changes that the queue still has to make to each key. Until they are made, the current entries of
    /// the key are not final.
    var changing: [String: Int] = [:]
    /// The times at which keys were last invalidated; `invalidatedBefore` applies to all keys. A response requested
    /// before that time is outdated.
    var invalidated: [String: Double] = [:]
    var invalidatedBefore = -Double.infinity
    /// The number of removals. A change of stored entries that began before a removal is dropped.
    var removals: UInt64 = 0
  }

  struct MemoryName: Hashable, Sendable {
    var key: String
    var variant: CacheHash
  }

  /// State that is used on the queue only.
  struct OnQueue: Sendable {
    var disk: CacheDisk
    var bytesSinceScan = 0
    var filesSinceScan = 0
  }

  let state: Mutex<State>
  let onQueue: Mutex<OnQueue>
  let queue: DispatchQueue
  /// How long changes are collected before they are written.
  let writeDelay: DispatchTimeInterval
  private static let isOnQueue = DispatchSpecificKey<ObjectIdentifier>()
  /// Whether the cache may hold anything. Performance: an empty cache costs one atomic load.
  private let mayHoldSomething: Atomic<Bool>
  /// Seconds since 1970.
  private let lastScan = Atomic<Int64>(0)
  /// Returns the current time, which determines the age of responses.
  let now: @Sendable () -> Date

  init(
    memoryCapacity: Int, diskCapacity: Int, disk: CacheDisk, writeDelay: DispatchTimeInterval = writeDelay,
    now: @escaping @Sendable () -> Date = { Date() }
  ) {
    self.now = now
    self.writeDelay = writeDelay
    state = Mutex(State(memoryCapacity: max(0, memoryCapacity), diskCapacity: max(0, diskCapacity)))
    onQueue = Mutex(OnQueue(disk: disk))
    queue = DispatchQueue(label: "larkspur.cache", qos: .utility)
    mayHoldSomething = Atomic(diskCapacity > 0)
    queue.setSpecific(key: Self.isOnQueue, value: ObjectIdentifier(self))
    if diskCapacity > 0 { ExitHook.register(self) }
  }

  // MARK: - Lookup

  enum Found {
    /// These are all entries.
    case inMemory([CachedURLResponse])
    /// These entries are in memory; the disk may have more.
    case alsoOnDisk([CachedURLResponse])
    /// The entries are not known until a pending change is done.
    case later
  }

  /// Returns the entries that can be found without the disk. Any thread.
  func find(_ makeKey: () -> String?, now: Double) -> Found {
    guard mayHoldSomething.load(ordering: .acquiring) else {
      scanIfOld(now: now)
      return .inMemory([])
    }
    guard let key = makeKey() else { return .inMemory([]) }
    scanIfOld(now: now)
    return state.withLock { state in
      let found = state.memory[key] ?? []
      for entry in found { state.memoryLedger.touch(MemoryName(key: key, variant: entry.variant)) }
      guard state.changing[key] == nil else { return .later }
      guard state.diskCapacity > 0 else { return .inMemory(found) }
      guard state.isScanned else { return .alsoOnDisk(found) }
      let names = state.files[CacheHash(key)] ?? []
      let isAllHere = names.allSatisfy { name in found.contains { $0.variant == name.variant } }
      return isAllHere ? .inMemory(found) : .alsoOnDisk(found)
    }
  }

  /// Returns the entries in memory and on disk. Blocks on the disk.
  func findEverywhere(_ key: String, now: Double) -> [CachedURLResponse] {
    waiting { self.load(key, now: now) }
  }

  private func load(_ key: String, now: Double) -> [CachedURLResponse] {
    onQueue.withLock { onQueue in
      scanIfNeeded(&onQueue, now: now)
      let (found, names, changes) = state.withLock { state in
        (state.memory[key] ?? [], state.files[CacheHash(key)] ?? [], state.changes)
      }
      var entries = found
      for name in names where !found.contains(where: { $0.variant == name.variant }) {
        let (hasHead, latest) = state.withLock { ($0.heads[name] != nil, $0.behind.heads[name]) }
        guard let file = onQueue.disk.read(name, isHeadExpected: hasHead && latest == nil) else {
          state.withLock { $0.forgetUnlessPending(name) }
          continue
        }
        // Two keys may have the same hash.
        guard file.record.key == key else { continue }
        // Another process has written the file, and a request since then has invalidated it.
        let present = self.now().timeIntervalSince1970
        if state.withLock({ $0.isInvalidated(key, requested: file.record.requestedTime, now: present) }) {
          onQueue.disk.remove(name)
          state.withLock { $0.forgetUnlessPending(name) }
          continue
        }
        let isLatest = latest != nil && latest?.origin?.generation == file.record.generation
        guard let entry = isLatest ? latest?.with(file.body) : CachedURLResponse(file.record, file.body) else {
          continue
        }
        entries.append(entry)
        noteUse(name, at: now)
        state.withLock { state in
          if state.pending[name] == nil { state.generations[name] = file.record.generation }
          if hasHead, latest == nil, !file.hasLaterHead { state.keepHead(name, size: nil) }
          // Keep the entry in memory only if nothing has changed: it may have been removed after its file was read.
          if state.changes == changes, state.unfinished == 0 {
            state.keepInMemory(entry, costMax: state.memoryCapacity)
          }
        }
      }
      return entries
    }
  }

  // MARK: - Changes

  /// The maximum cost of an entry in memory and on disk.
  struct Room: Sendable {
    var memoryCostMax = Int.max
    var diskCostMax = Int.max
  }

  /// Stores an entry that has an origin, in place of the entries that it replaces. Any thread; the disk is written
  /// later.
  ///
  /// - Parameters:
  ///   - renewed: The previous variant of a stored entry whose selecting fields have changed, or `nil` if the entry is
  ///     new. The entry replaces it, or is not stored if the body has been replaced meanwhile.
  ///   - requested: The time of the request, in seconds since 1970. A response that was invalidated after that time is
  ///     not stored.
  ///   - removals: The number of removals when the change began, or `nil` if it begins now.
  func store(
    _ entry: CachedURLResponse, room: Room = Room(), renewing renewed: CacheHash? = nil, requested: Double = .infinity,
    removals: UInt64? = nil, now: Double
  ) {
    guard var origin = entry.origin, entry.storagePolicy != .notAllowed else { return }
    // Each stored body gets a new generation, even if its bytes equal those of the previous one.
    let previous = origin.generation
    origin.generation = .random(in: 1...UInt64.max)
    let (entry, stored) = (entry.with(origin), origin)
    let cost = entry.cost
    let name = CacheEntryName(key: CacheHash(origin.key), variant: entry.variant)
    // Not `now`, which is the time of the response's head: the body may have taken long.
    let present = self.now().timeIntervalSince1970
    state.withLock { state in
      guard !state.isOutdated(stored.key, requested: requested, now: present) else { return }
      guard removals == nil || removals == state.removals else { return }
      let old = renewed.map { CacheEntryName(key: name.key, variant: $0) }
      if let old, !state.holds(old, of: stored.key, generation: previous) { return }
      state.changes += 1
      let replaced = state.replaced(by: entry, name) + [old].compactMap(\.self)
      for other in replaced { state.forget(other) }
      state.removeFromMemory(stored.key) { entry.replaces($0) || $0.variant == renewed }
      state.keepInMemory(entry, costMax: room.memoryCostMax)
      let isForDisk =
        entry.storagePolicy == .allowed && state.diskCapacity > 0 && cost <= min(room.diskCostMax, state.diskCapacity)
      if isForDisk, state.pendingCost == 0 || state.pendingCost + cost <= Self.pendingCostMax {
        let change = state.changes
        state.pendingCost += cost
        state.expectFile(name, change)
        state.generations[name] = stored.generation
        noteContent()
        enqueue(&state) {
          self.write(entry, stored, name, replaced, change: change, now: now)
          self.state.withLock { $0.pendingCost -= cost }
        }
      } else if !replaced.isEmpty || !state.isScanned && state.diskCapacity > 0 {
        enqueue(&state) { self.removeFiles(replaced + [name]) }
      }
      if !state.memory.isEmpty { mayHoldSomething.store(true, ordering: .releasing) }
    }
  }

  func enqueue(_ state: inout State, _ change: @escaping @Sendable () -> Void) {
    state.unfinished += 1
    queue.async {
      change()
      self.state.withLock { $0.unfinished -= 1 }
    }
  }

  /// Runs work that may block, on the queue.
  func run(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

  /// Finds the entries of a key and passes them to `body`, on the queue.
  func look(for key: String, now: Double, _ body: @escaping @Sendable ([CachedURLResponse]) -> Void) {
    queue.async { body(self.load(key, now: now)) }
  }

  /// Passes the entries of a key to `body`, on the queue, before any other change of them. Until then, lookups of the
  /// key do not complete from memory. `body` also gets the number of removals at the time of this call.
  func change(_ key: String, now: Double, _ body: @escaping @Sendable ([CachedURLResponse], UInt64) -> Void) {
    state.withLock { state in
      let removals = state.removals
      state.changing[key, default: 0] += 1
      noteContent()
      enqueue(&state) {
        body(self.load(key, now: now), removals)
        self.state.withLock { state in
          let left = (state.changing[key] ?? 1) - 1
          state.changing[key] = left == 0 ? nil : left
        }
      }
    }
  }

  /// Whether there is nothing that could be changed. Any thread.
  var isEmpty: Bool { !mayHoldSomething.load(ordering: .acquiring) }

  /// Records that memory holds something, or that the disk is going to.
  func noteContent() { mayHoldSomething.store(true, ordering: .releasing) }

  /// Removes all entries of the key, and prevents storing and finding responses that were requested before now. Any
  /// thread; the disk is written later.
  ///
  /// Performance: each POST invalidates its URL, for which there is hardly ever a file. If no file is known, the disk
  /// is written with the other delayed changes.
  func invalidate(_ key: String, now: Double) {
    state.withLock { $0.invalidate(key, now: now) }
    remove(key, canWait: true)
  }

  /// Removes all entries of the key. Any thread; the disk is written later.
  func remove(_ key: String) { remove(key, canWait: false) }

  private func remove(_ key: String, canWait: Bool) {
    guard mayHoldSomething.load(ordering: .acquiring) else { return }
    let hash = CacheHash(key)
    // Another process may have stored an entry without selecting fields: its name is known, so its file is removed as
    // well.
    let unknown = CacheEntryName(key: hash, variant: CachedURLResponse.variantOfAll)
    state.withLock { state in
      state.changes += 1
      state.removals += 1
      state.removeFromMemory(key) { _ in true }
      guard state.diskCapacity > 0 else { return }
      let names = state.files[hash] ?? []
      for name in names { state.forget(name) }
      if canWait, names.isEmpty, state.isScanned {
        state.behind.suspect(unknown)
        scheduleWrite(&state)
        guard state.behind.suspects.count > DeferredWrites.suspectsMax else { return }
        let suspects = state.behind.takeSuspects()
        enqueue(&state) { self.onQueue.withLock { self.removeSuspects(suspects, &$0) } }
      } else {
        enqueue(&state) { self.removeFiles(of: hash, names + [unknown]) }
      }
    }
  }

  func removeAll() {
    state.withLock { state in
      state.changes += 1
      state.removals += 1
      state.emptyMemory()
      state.forgetFiles()
      state.behind.forget(except: { _ in false })
      state.pending.removeAll()
      enqueue(&state) { self.removeFiles { _ in true } }
    }
  }

  /// Removes the entries that were stored at this time, in seconds since 1970, or later.
  func removeAll(since time: Double) {
    state.withLock { state in
      state.changes += 1
      state.removals += 1
      for key in Array(state.memory.keys) {
        state.removeFromMemory(key) { ($0.origin?.storedTime ?? time) >= time }
      }
      // A head that is not written yet is newer than its file.
      let fresh = Set(state.behind.heads.filter { ($0.value.origin?.storedTime ?? time) >= time }.keys)
      enqueue(&state) { self.removeFiles { $0.changedTime >= time || fresh.contains($0.name) } }
    }
  }

  var memoryCapacity: Int {
    get { state.withLock { $0.memoryCapacity } }
    set {
      state.withLock { state in
        state.memoryCapacity = max(0, newValue)
        state.trimMemory()
      }
    }
  }

  var diskCapacity: Int {
    get { state.withLock { $0.diskCapacity } }
    set {
      if newValue > 0 { ExitHook.register(self) }
      state.withLock { state in
        // The files of a disk that was not in use are not known.
        if newValue > 0, state.diskCapacity == 0 { state.isScanned = false }
        state.diskCapacity = max(0, newValue)
        if newValue > 0, !state.isScanned { mayHoldSomething.store(true, ordering: .releasing) }
        enqueue(&state) {
          self.onQueue.withLock { onQueue in
            let now = self.now().timeIntervalSince1970
            if newValue > 0, !onQueue.disk.isInUse {
              onQueue.disk.isInUse = true
              self.scan(&onQueue, now: now)
            }
            self.scanIfNeeded(&onQueue, now: now)
            self.trim(&onQueue, now: now)
          }
        }
      }
    }
  }

  var memoryUsage: Int { state.withLock { $0.memoryLedger.cost } }

  /// The bytes in use on disk. Blocks on the disk.
  var diskUsage: Int {
    waiting {
      self.onQueue.withLock { onQueue in
        let now = self.now().timeIntervalSince1970
        self.scan(&onQueue, now: now)
        self.trim(&onQueue, now: now)
        return self.state.withLock { $0.fileLedger.cost }
      }
    }
  }

  /// Blocks until the queue has finished all work.
  func settle() { waiting {} }

  /// Blocks until the disk has all changes.
  func finishChanges() {
    if state.withLock({ $0.unfinished > 0 }) { waiting {} }
  }

  /// Writes all changes. Writing one change may add another, hence the loop.
  func finishAtExit() {
    guard !isCurrent else { return }
    writeSoon()
    while state.withLock({ $0.unfinished > 0 }) { queue.sync {} }
  }

  /// Whether the caller runs on the queue, where waiting for the queue would deadlock.
  private var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.isOnQueue) == ObjectIdentifier(self) }

  private func waiting<T>(_ body: () -> T) -> T { isCurrent ? body() : queue.sync(execute: body) }
}

// MARK: - On the queue

extension CacheCore {
  private func scanIfOld(now: Double) {
    let seconds = Self.wholeSeconds(now)
    let last = lastScan.load(ordering: .relaxed)
    // Zero: the list has never been read. `scanIfNeeded` reads it when it is first needed.
    guard last > 0, seconds - last >= Self.scanSeconds,
      lastScan.compareExchange(expected: last, desired: seconds, ordering: .relaxed).exchanged
    else { return }
    queue.async {
      self.onQueue.withLock { onQueue in
        self.scan(&onQueue, now: now)
        // The budget applies to the files of all processes together.
        self.trim(&onQueue, now: now)
      }
    }
  }

  private static func wholeSeconds(_ time: Double) -> Int64 { time.isNaN ? 0 : Int64(max(0, min(time, 1e15))) }

  private func scanIfNeeded(_ onQueue: inout OnQueue, now: Double) {
    if !state.withLock({ $0.isScanned }) { scan(&onQueue, now: now) }
  }

  private func scan(_ onQueue: inout OnQueue, now: Double) {
    removeSuspects(state.withLock { $0.behind.takeSuspects() }, &onQueue)
    let entries = onQueue.disk.scan(now: now)
    onQueue.bytesSinceScan = 0
    onQueue.filesSinceScan = 0
    lastScan.store(max(1, Self.wholeSeconds(now)), ordering: .relaxed)
    state.withLock { state in
      state.forgetFiles()
      let order = entries.map { (entry: $0, used: max($0.usedTime, state.behind.lastUse(of: $0.name) ?? 0)) }
      for (entry, _) in order.sorted(by: { $0.used < $1.used }) {
        state.keepFile(entry.name, cost: entry.size)
        if let size = entry.headSize { state.heads[entry.name] = size }
      }
      for (name, change) in state.pending { state.expectFile(name, change) }
      state.forgetOthers()
      state.isScanned = true
      let isEmpty = state.memory.isEmpty && state.fileLedger.isEmpty && state.changing.isEmpty
      mayHoldSomething.store(!isEmpty, ordering: .releasing)
    }
  }

  private func write(
    _ entry: CachedURLResponse, _ origin: CachedURLResponse.Origin, _ name: CacheEntryName,
    _ replaced: [CacheEntryName], change: UInt64, now: Double
  ) {
    onQueue.withLock { onQueue in
      scanIfNeeded(&onQueue, now: now)
      // The scan may have found more files that the entry replaces.
      let alsoReplaced = state.withLock { state in
        let names = state.replaced(by: entry, name).filter { $0 != name && state.pending[$0] == nil }
        for other in names { state.forget(other) }
        return names
      }
      for other in Set(replaced + alsoReplaced) where other != name { onQueue.disk.remove(other) }
      guard let size = onQueue.disk.write(name, CacheRecord(entry, origin), entry.data, now: now) else {
        // The write failed. Remove the old file too: for the program it is replaced already.
        onQueue.disk.remove(name)
        state.withLock { state in
          if state.pending[name] == change { state.forget(name) }
        }
        return
      }
      onQueue.bytesSinceScan += size
      onQueue.filesSinceScan += 1
      var hasOldHead = false
      state.withLock { state in
        // A different change is pending if the entry has been removed or stored again; its work follows on the queue.
        guard state.pending[name] == change else { return }
        state.pending[name] = nil
        state.keepFile(name, cost: size)
        hasOldHead = state.heads.removeValue(forKey: name) != nil
        noteContent()
      }
      // Remove the later head of the previous entry: it is of another generation and would be ignored.
      if hasOldHead || replaced.contains(name) { onQueue.disk.removeHead(name) }
      trim(&onQueue, now: now)
    }
  }

  private func removeFiles(_ names: [CacheEntryName]) {
    onQueue.withLock { onQueue in
      for name in names {
        onQueue.disk.remove(name)
        state.withLock { $0.forgetUnlessPending(name) }
      }
    }
  }

  /// Removes the files of a key, including files that only a scan finds.
  private func removeFiles(of key: CacheHash, _ names: [CacheEntryName]) {
    onQueue.withLock { onQueue in
      scanIfNeeded(&onQueue, now: self.now().timeIntervalSince1970)
      let all = Set(state.withLock { $0.files[key] ?? [] }).union(names)
      for name in all {
        onQueue.disk.remove(name)
        state.withLock { $0.forgetUnlessPending(name) }
      }
    }
  }

  private func removeFiles(where isGone: (CacheDisk.Listed) -> Bool) {
    onQueue.withLock { onQueue in
      for entry in onQueue.disk.scan(now: self.now().timeIntervalSince1970) where isGone(entry) {
        onQueue.disk.remove(entry.name)
        state.withLock { $0.forgetUnlessPending(entry.name) }
      }
    }
  }

  /// Removes the least recently used files until the rest fits.
  func trim(_ onQueue: inout OnQueue, now: Double) {
    let (capacity, isOver, count) = state.withLock {
      ($0.diskCapacity, $0.fileLedger.cost > $0.diskCapacity, $0.files.count)
    }
    let isUnsure =
      onQueue.bytesSinceScan > capacity / Self.scanShare
      || onQueue.filesSinceScan >= max(Self.scanFilesMin, count / Self.scanShare)
    if isUnsure || isOver && onQueue.filesSinceScan > 0 && onQueue.bytesSinceScan > capacity / (Self.scanShare * 8) {
      scan(&onQueue, now: now)
    }
    while true {
      let oldest: CacheEntryName? = state.withLock { state in
        // A pending file is the newest. When it is written, `trim` runs again.
        guard state.fileLedger.cost > state.diskCapacity, let name = state.fileLedger.oldest,
          state.pending[name] == nil
        else { return nil }
        state.forget(name)
        return name
      }
      guard let oldest else { return }
      onQueue.disk.remove(oldest)
    }
  }
}
