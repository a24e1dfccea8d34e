import Dispatch
import Foundation
import LarkspurHTTP
import Synchronization

/// Revalidations and delayed writes. A 304 does not wait for the disk: its head is written later, together with other
/// changes of the same interval, and its body is not written again (decision 27).
extension CacheCore {
  /// How long changes are collected. A process that is killed loses at most the heads of this time, and keeps the
  /// entries as they were before.
  static let writeDelay = DispatchTimeInterval.seconds(5)
  /// Maximum number of uses that are written at a time, so that a lookup on the disk does not wait long.
  private static let usesAtOnce = 64

  /// Replaces an entry's head with that of a 304 or a HEAD. Does nothing if the entry's body has been replaced. Any
  /// thread; the disk is written within ``writeDelay``.
  ///
  /// - Parameters:
  ///   - requested: The time of the request in seconds since 1970. An entry that was invalidated after that time is not
  ///     changed.
  ///   - removals: The number of removals when the change began, or `nil` if it begins now.
  func freshen(_ entry: CachedURLResponse, requested: Double, removals: UInt64? = nil) {
    guard let origin = entry.origin, entry.storagePolicy != .notAllowed else { return }
    let name = CacheEntryName(key: CacheHash(origin.key), variant: entry.variant)
    let present = now().timeIntervalSince1970
    state.withLock { state in
      guard !state.isOutdated(origin.key, requested: requested, now: present),
        removals == nil || removals == state.removals
      else { return }
      guard state.holds(name, of: origin.key, generation: origin.generation) else { return }
      state.changes += 1
      state.keepInMemory(entry, costMax: state.memoryCapacity)
      if !state.memory.isEmpty { noteContent() }
      guard entry.storagePolicy == .allowed, state.diskCapacity > 0, state.fileLedger.contains(name) else { return }
      state.fileLedger.touch(name)
      state.behind.keepHead(name, of: entry)
      if state.behind.headsCost > DeferredWrites.headsCostMax {
        enqueueWrite(&state)
      } else {
        scheduleWrite(&state)
      }
    }
  }

  /// Records a use of an entry on the disk.
  func noteUse(_ name: CacheEntryName, at time: Double) {
    state.withLock { state in
      guard state.fileLedger.contains(name) else { return }
      state.fileLedger.touch(name)
      state.behind.noteUse(name, at: time)
      scheduleWrite(&state)
    }
  }

  /// Writes the delayed heads and all changes before them. Then `completion` is called on the queue.
  func flush(_ completion: @escaping @Sendable () -> Void = {}) {
    state.withLock { enqueueWrite(&$0) }
    run(completion)
  }

  /// Starts writing the delayed changes. Does not block.
  func writeSoon() { state.withLock { enqueueWrite(&$0) } }

  func scheduleWrite(_ state: inout State) {
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
      self.onQueue.withLock { self.removeSuspects(self.state.withLock { $0.behind.takeSuspects() }, &$0) }
      self.writeHeads()
      self.writeUses()
    }
  }

  private func enqueueUses(_ state: inout State) {
    if state.behind.hasUses { enqueue(&state) { self.writeUses() } }
  }

  /// Removes files of invalidated keys. An entry that has been stored since is known, and stays.
  func removeSuspects(_ suspects: Set<CacheEntryName>, _ onQueue: inout OnQueue) {
    let names = state.withLock { state in
      suspects.filter { !state.fileLedger.contains($0) && state.pending[$0] == nil }
    }
    for name in names { onQueue.disk.remove(name) }
  }

  private func writeHeads() {
    let heads = state.withLock { $0.behind.takeHeads() }
    guard !heads.isEmpty else { return }
    onQueue.withLock { onQueue in
      for (name, entry) in heads {
        // If the entry was stored again, its pending file contains the head and is written next.
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
    // Write the rest after the work that has been queued meanwhile.
    state.withLock { enqueueUses(&$0) }
  }
}
