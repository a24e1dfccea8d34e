import Dispatch
import Foundation
import LarkspurHTTP
import Synchronization

/// Revalidations, and what is written behind. A 304 takes no time on a disk: its head is written later, in one write with those that
/// come meanwhile, and the body is not written again.
extension CacheCore {
  /// The time for which changes are collected. A process that is killed loses the heads of so many seconds at most, and keeps
  /// the entries as they were before.
  static let writeDelay = DispatchTimeInterval.seconds(5)
  /// Uses that are written at a time: a look at the disk does not wait for more.
  private static let usesAtOnce = 64

  /// Gives an entry the head that a 304 or a HEAD has brought. Nothing happens to an entry whose body is another by now. Any
  /// thread; the disk follows within ``writeDelay``.
  ///
  /// - Parameters:
  ///   - requested: The time of the request in seconds since 1970. What has been invalidated since is not changed.
  ///   - removals: The number of removals when the change was begun, or `nil` if it begins now.
  func freshen(_ entry: CachedURLResponse, requested: Double, removals: UInt64? = nil) {
    guard let origin = entry.origin, entry.storagePolicy != .notAllowed else { return }
    let name = CacheEntryName(key: CacheHash(origin.key), variant: entry.variant)
    let present = now().timeIntervalSince1970
    state.withLock { state in
      guard !state.isOutdated(origin.key, requested: requested, now: present),
        removals == nil || removals == state.removals
      else { return }
      let held = state.memory[origin.key]?.first { $0.variant == entry.variant }
      guard held == nil || held?.origin?.generation == origin.generation,
        state.generations[name, default: origin.generation] == origin.generation
      else { return }
      state.changes += 1
      state.keepInMemory(entry, costMax: state.memoryCapacity)
      if !state.memory.isEmpty { noteContent() }
      guard entry.storagePolicy == .allowed, state.diskCapacity > 0, state.fileLedger.contains(name) else { return }
      state.fileLedger.touch(name)
      state.behind.keepHead(name, of: entry)
      if state.behind.headsCost > CacheBehind.headsCostMax {
        enqueueWrite(&state)
      } else {
        scheduleWrite(&state)
      }
    }
  }

  /// Notes that an entry on the disk is used.
  func noteUse(_ name: CacheEntryName, at time: Double) {
    state.withLock { state in
      guard state.fileLedger.contains(name) else { return }
      state.fileLedger.touch(name)
      state.behind.noteUse(name, at: time)
      scheduleWrite(&state)
    }
  }

  /// Writes the heads that are written behind, and all that is to be written before them; then `completion` is called on the queue.
  func flush(_ completion: @escaping @Sendable () -> Void = {}) {
    state.withLock { enqueueWrite(&$0) }
    run(completion)
  }

  /// Begins to write what is written behind. Waits for nothing.
  func writeSoon() { state.withLock { enqueueWrite(&$0) } }

  private func scheduleWrite(_ state: inout State) {
    guard !state.behind.isScheduled, !state.behind.isEmpty else { return }
    state.behind.isScheduled = true
    queue.asyncAfter(deadline: .now() + writeDelay) { [weak self] in
      guard let self else { return }
      self.state.withLock { state in
        state.behind.isScheduled = false
        self.enqueueWrite(&state)
      }
    }
  }

  private func enqueueWrite(_ state: inout State) {
    guard !state.behind.isEmpty else { return }
    enqueue(&state) {
      self.writeHeads()
      self.writeUses()
    }
  }

  private func enqueueUses(_ state: inout State) {
    if state.behind.hasUses { enqueue(&state) { self.writeUses() } }
  }

  private func writeHeads() {
    let heads = state.withLock { $0.behind.takeHeads() }
    guard !heads.isEmpty else { return }
    onQueue.withLock { onQueue in
      for (name, entry) in heads {
        // An entry that was stored again has its file and its head in one, and is written next.
        let isThere = state.withLock { $0.fileLedger.contains(name) && $0.pending[name] == nil }
        guard isThere, let origin = entry.origin,
          let size = onQueue.disk.writeHead(
            name, CacheRecord(entry, origin), bodyCount: origin.stored?.bodyCount ?? 0)
        else { continue }
        onQueue.bytesSinceScan += size
        state.withLock { $0.keepHead(name, size: size) }
      }
      trim(&onQueue, now: now().timeIntervalSince1970)
    }
  }

  private func writeUses() {
    let uses = state.withLock { $0.behind.takeUses(max: Self.usesAtOnce) }
    guard !uses.isEmpty else { return }
    onQueue.withLock { onQueue in
      for (name, time) in uses { onQueue.disk.setUsed(name, at: time) }
    }
    // The rest goes behind what is asked for meanwhile.
    state.withLock { enqueueUses(&$0) }
  }
}
