import Foundation
import LarkspurHTTP
import LarkspurIO
import Synchronization

/// Memory and disk of a cache, and which of them a thing is in.
///
/// What is in memory, and which files there are, is under one mutex that is held for a few hundred instructions: any
/// thread may ask, a loop's too. Files are read and written on one queue, in the order in which the mutex was held;
/// who takes the mutex puts the work on the queue before letting go of it. So a removal never overtakes the storing
/// before it.
///
/// The list of files is a hint. Another process may have added some and removed others: it is read again now and
/// then, and a file that is listed and not there is a miss.
final class CacheCore: FinishedAtExit {
  /// Variants of one URI. A server that varies its answers by a field of random values would fill the cache with
  /// them.
  static let variantsMax = 16
  /// Seconds after which the list of files is read again, for the sake of what other processes have added.
  static let scanSeconds: Int64 = 30
  /// Bytes and files of our own after which it is read again before anything is evicted: a share of the capacity, and of the
  /// files that there are. (To read it takes as long as there are files.)
  static let scanShare = 8
  static let scanFilesMin = 64
  /// What has been invalidated is remembered of so many keys.
  static let invalidatedMax = 256
  /// What the queue may have still to write, in bytes. While a disk cannot keep up, responses stay in memory alone.
  static let pendingCostMax = 16 << 20

  struct State: Sendable {
    var memoryCapacity: Int
    var diskCapacity: Int
    var memory: [String: [CachedURLResponse]] = [:]
    var memoryLedger = RecencyLedger<MemoryName>()
    var files: [CacheHash: [CacheEntryName]] = [:]
    var fileLedger = RecencyLedger<CacheEntryName>()
    /// Sizes of the files with later heads.
    var heads: [CacheEntryName: Int] = [:]
    /// Generations of the entries on disk that were stored or read here.
    var generations: [CacheEntryName: UInt64] = [:]
    var behind = CacheBehind()
    var isScanned = false
    /// Counts what changed: an entry that was read from disk before a change may not be what is on disk after it.
    var changes: UInt64 = 0
    /// What the queue has still to write. It is listed all the while, or a response that was just stored would not be
    /// found. The number says which change it was: the file may have been removed since, or stored once more.
    var pending: [CacheEntryName: UInt64] = [:]
    var pendingCost = 0
    /// How many changes the queue has still to make.
    var unfinished = 0
    /// The keys that it has still to change, and how often: what is there now is not what is going to be.
    var changing: [String: Int] = [:]
    /// When keys were last invalidated, and since when this is known of all: what was asked for before then is old.
    var invalidated: [String: Double] = [:]
    var invalidatedBefore = -Double.infinity
    /// How often something has been removed: what was begun before is not stored.
    var removals: UInt64 = 0
  }

  struct MemoryName: Hashable, Sendable {
    var key: String
    var variant: CacheHash
  }

  /// On the queue only.
  struct OnQueue: Sendable {
    var disk: CacheDisk
    var bytesSinceScan = 0
    var filesSinceScan = 0
  }

  let state: Mutex<State>
  let onQueue: Mutex<OnQueue>
  let queue: DispatchQueue
  /// The time for which changes are collected.
  let writeDelay: DispatchTimeInterval
  private static let isOnQueue = DispatchSpecificKey<ObjectIdentifier>()
  /// Whether there may be anything at all: one look for those who only want to know that there is nothing.
  private let mayHoldSomething: Atomic<Bool>
  /// Seconds since 1970.
  private let lastScan = Atomic<Int64>(0)
  /// What time it is: how old a response is depends on it.
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

  // MARK: - Looking

  enum Found {
    /// These, and nothing else.
    case inMemory([CachedURLResponse])
    /// These, and more on disk.
    case alsoOnDisk([CachedURLResponse])
    /// It is not known yet: something is still to be done with it.
    case later
  }

  /// Nothing has been stored here, and the disk has been looked at. Any thread.
  func isCertainlyEmpty(now: Double) -> Bool {
    guard !mayHoldSomething.load(ordering: .acquiring) else { return false }
    scanIfOld(now: now)
    return true
  }

  /// What is known without waiting. Any thread.
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

  /// What there is in memory and on disk. Waits for the disk.
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
        // Two keys may have one hash.
        guard file.record.key == key else { continue }
        let isLatest = latest != nil && latest?.origin?.generation == file.record.generation
        guard let entry = isLatest ? latest?.with(file.body) : CachedURLResponse(file.record, file.body) else {
          continue
        }
        entries.append(entry)
        noteUse(name, at: now)
        state.withLock { state in
          if state.pending[name] == nil { state.generations[name] = file.record.generation }
          if hasHead, latest == nil, !file.hasLaterHead { state.keepHead(name, size: nil) }
          // What is read may have been removed since, and its file not yet.
          if state.changes == changes, state.unfinished == 0 {
            state.keepInMemory(entry, costMax: state.memoryCapacity)
          }
        }
      }
      return entries
    }
  }

  // MARK: - Changing

  /// Where an entry is to go, and what it may take there.
  struct Room: Sendable {
    var memoryCostMax = Int.max
    var diskCostMax = Int.max
  }

  /// Stores an entry that has an origin, in place of what it replaces. Any thread; the disk follows.
  ///
  /// - Parameters:
  ///   - requested: When it was asked for. What has been invalidated since is not stored.
  ///   - removals: How many there had been when it was begun. Nil: it begins now.
  func store(
    _ entry: CachedURLResponse, room: Room = Room(), requested: Double = .infinity, removals: UInt64? = nil, now: Double
  ) {
    guard var origin = entry.origin, entry.storagePolicy != .notAllowed else { return }
    // A body that is stored has a generation of its own, even if its bytes are those of the one before.
    origin.generation = .random(in: 1...UInt64.max)
    let (entry, stored) = (entry.with(origin), origin)
    let cost = entry.cost
    let name = CacheEntryName(key: CacheHash(origin.key), variant: entry.variant)
    // (Not when the response's head came: its body may have taken its time.)
    let present = self.now().timeIntervalSince1970
    state.withLock { state in
      guard !state.isOutdated(stored.key, requested: requested, now: present) else { return }
      guard removals == nil || removals == state.removals else { return }
      state.changes += 1
      let replaced = state.replaced(by: entry, name)
      for other in replaced { state.forget(other) }
      state.removeFromMemory(stored.key) { entry.replaces($0) }
      state.keepInMemory(entry, costMax: room.memoryCostMax)
      let isForDisk =
        entry.storagePolicy == .allowed && state.diskCapacity > 0 && cost <= min(room.diskCostMax, state.diskCapacity)
      if isForDisk, state.pendingCost == 0 || state.pendingCost + cost <= Self.pendingCostMax {
        let change = state.changes
        state.pendingCost += cost
        state.expectFile(name, change)
        state.generations[name] = stored.generation
        mayHoldSomething.store(true, ordering: .releasing)
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

  /// Does something that may take its time, on the queue.
  func run(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

  /// Looks for what is stored under a key, on the queue.
  func look(for key: String, now: Double, _ body: @escaping @Sendable ([CachedURLResponse]) -> Void) {
    queue.async { body(self.load(key, now: now)) }
  }

  /// Does something with what is stored under a key, on the queue, before anything else is done with it there: who looks for
  /// it meanwhile waits. `body` is given the number of removals up to now.
  func change(_ key: String, now: Double, _ body: @escaping @Sendable ([CachedURLResponse], UInt64) -> Void) {
    state.withLock { state in
      let removals = state.removals
      state.changing[key, default: 0] += 1
      mayHoldSomething.store(true, ordering: .releasing)
      enqueue(&state) {
        body(self.load(key, now: now), removals)
        self.state.withLock { state in
          let left = (state.changing[key] ?? 1) - 1
          state.changing[key] = left == 0 ? nil : left
        }
      }
    }
  }

  /// Whether there may be anything that could be changed. Any thread.
  var isEmpty: Bool { !mayHoldSomething.load(ordering: .acquiring) }

  /// Something is in memory, or is going to be on the disk.
  func noteContent() { mayHoldSomething.store(true, ordering: .releasing) }

  /// Removes everything under the key, and keeps out what is still on its way. Any thread; the disk follows.
  func invalidate(_ key: String, now: Double) {
    state.withLock { $0.invalidate(key, now: now) }
    remove(key)
  }

  /// Removes everything under the key. Any thread; the disk follows.
  func remove(_ key: String) {
    guard mayHoldSomething.load(ordering: .acquiring) else { return }
    let hash = CacheHash(key)
    state.withLock { state in
      state.changes += 1
      state.removals += 1
      state.removeFromMemory(key) { _ in true }
      guard state.diskCapacity > 0 else { return }
      let names = state.files[hash] ?? []
      for name in names { state.forget(name) }
      // One that no field chose may have been stored by another process since: its name is known all the same.
      let all = names + [CacheEntryName(key: hash, variant: CachedURLResponse.variantOfAll)]
      enqueue(&state) { self.removeFiles(of: hash, all) }
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

  /// Removes what was stored at that time or later, in seconds since 1970.
  func removeAll(since time: Double) {
    state.withLock { state in
      state.changes += 1
      state.removals += 1
      for key in Array(state.memory.keys) {
        state.removeFromMemory(key) { ($0.origin?.storedTime ?? time) >= time }
      }
      // A head that is not on the disk yet is later than what is there.
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
        // What there is on a disk that was not used is not known.
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

  /// Waits for the disk.
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

  /// Waits until everything that was begun is done.
  func settle() { waiting {} }

  /// Waits until the disk is as it was last said that it should be.
  func finishChanges() {
    if state.withLock({ $0.unfinished > 0 }) { waiting {} }
  }

  /// What is done may lead to more.
  func finishAtExit() {
    guard !isCurrent else { return }
    writeSoon()
    while state.withLock({ $0.unfinished > 0 }) { queue.sync {} }
  }

  /// Whether this is called on the queue: who waits for it there would wait for himself.
  private var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.isOnQueue) == ObjectIdentifier(self) }

  private func waiting<T>(_ body: () -> T) -> T { isCurrent ? body() : queue.sync(execute: body) }
}

// MARK: - On the queue

extension CacheCore {
  private func scanIfOld(now: Double) {
    let seconds = Self.wholeSeconds(now)
    let last = lastScan.load(ordering: .relaxed)
    // Zero: never, and the first one who needs it will see to that.
    guard last > 0, seconds - last >= Self.scanSeconds,
      lastScan.compareExchange(expected: last, desired: seconds, ordering: .relaxed).exchanged
    else { return }
    queue.async {
      self.onQueue.withLock { onQueue in
        self.scan(&onQueue, now: now)
        // All processes together keep to the budget.
        self.trim(&onQueue, now: now)
      }
    }
  }

  private static func wholeSeconds(_ time: Double) -> Int64 { time.isNaN ? 0 : Int64(max(0, min(time, 1e15))) }

  private func scanIfNeeded(_ onQueue: inout OnQueue, now: Double) {
    if !state.withLock({ $0.isScanned }) { scan(&onQueue, now: now) }
  }

  private func scan(_ onQueue: inout OnQueue, now: Double) {
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
      // Others may have come to light since.
      let alsoReplaced = state.withLock { state in
        let names = state.replaced(by: entry, name).filter { $0 != name && state.pending[$0] == nil }
        for other in names { state.forget(other) }
        return names
      }
      for other in Set(replaced + alsoReplaced) where other != name { onQueue.disk.remove(other) }
      guard let size = onQueue.disk.write(name, CacheRecord(entry, origin), entry.data, now: now) else {
        // What was there before is no longer what the program was told is there.
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
        // Else it was removed since, and the file goes next; or stored again, and that is written next.
        guard state.pending[name] == change else { return }
        state.pending[name] = nil
        state.keepFile(name, cost: size)
        hasOldHead = state.heads.removeValue(forKey: name) != nil
        mayHoldSomething.store(true, ordering: .releasing)
      }
      // The later head of the entry before this one, which counts for nothing beside another generation.
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

  /// Before the first scan nobody knows which files a key has.
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

  /// Removes what was used longest ago until the rest fits.
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
        // What is still to be written is the newest there is, and is followed by another look.
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
