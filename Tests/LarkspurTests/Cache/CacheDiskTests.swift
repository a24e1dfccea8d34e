import Foundation
import LarkspurHTTP
import LarkspurIO
import Synchronization
import TestKit
import Testing

@testable import Larkspur

@Suite struct CacheDiskTests {
  static let a = "http://cache.test/a"

  private func cache(_ files: KillableFiles, memory: Int = 0, disk: Int = 1 << 20) -> URLCache {
    URLCache(core: CacheCore(memoryCapacity: memory, diskCapacity: disk, disk: files.disk))
  }

  /// A process that is killed at any step of storing, replacing or removing an entry leaves the old entry or the new
  /// state, whole, and a later process can store again.
  @Test func killedAtEveryStep() throws {
    for steps in 0..<30 {
      for isRemoval in [false, true] {
        let files = KillableFiles()
        let before = cache(files)
        before.storeCachedResponse(entry(Self.a, "before"), for: request(Self.a))
        before.core.settle()
        files.stepsLeft = steps
        let killed = cache(files)
        if isRemoval {
          killed.removeCachedResponse(for: request(Self.a))
        } else {
          killed.storeCachedResponse(entry(Self.a, "after, and longer"), for: request(Self.a))
        }
        killed.core.settle()
        files.stepsLeft = .max
        let after = cache(files)
        let found = after.cachedResponse(for: request(Self.a))?.text
        #expect(
          isRemoval ? [nil, "before"].contains(found) : ["before", "after, and longer"].contains(found),
          "\(steps) steps: \(found ?? "-")")
        if steps == 0 { #expect(found == "before") }
        if steps == 29 { #expect(found == (isRemoval ? nil : "after, and longer")) }
        after.storeCachedResponse(entry(Self.a, "again"), for: request(Self.a))
        #expect(after.cachedResponse(for: request(Self.a))?.text == "again")
      }
    }
  }

  /// The queue of writes for a slow disk is bounded by `pendingCostMax`: entries beyond it are not kept on the disk.
  @Test func aDiskThatCannotKeepUp() {
    let files = KillableFiles()
    let cache = cache(files, disk: 1 << 30)
    let gate = DispatchSemaphore(value: 0)
    cache.core.run { gate.wait() }
    let large = String(repeating: "x", count: 1 << 20)
    let stored = (0..<40).map { number in
      entry("\(Self.a)\(number)", large).prepared(key: "\(Self.a)\(number)", now: Date().timeIntervalSince1970)
    }
    for entry in stored { cache.core.store(entry, now: Date().timeIntervalSince1970) }
    gate.signal()
    cache.core.settle()
    let written = files.files.values.count { $0.bytes.count > 1 << 20 }
    #expect(written > 8 && written <= CacheCore.pendingCostMax >> 20)
    // The queue is empty again, so new entries are written.
    cache.storeCachedResponse(entry(Self.a, large), for: request(Self.a))
    #expect(cache.cachedResponse(for: request(Self.a))?.text == large)
    #expect(cache.cachedResponse(for: request("\(Self.a)39")) == nil)
  }

  /// The number of directory listings does not grow in proportion to the number of stored entries.
  @Test func manyFiles() {
    let files = KillableFiles()
    let cache = cache(files, disk: 1 << 30)
    for number in 0..<2_000 {
      cache.core.store(
        entry("\(Self.a)\(number)", "x").prepared(key: "\(Self.a)\(number)", now: Date().timeIntervalSince1970),
        now: Date().timeIntervalSince1970)
    }
    cache.core.settle()
    #expect(files.files.count == 2_000 && files.lists < 26)
  }

  /// A temporary file of a killed writer is removed once it is older than `orphanSecondsMax`, or if the writer's clock
  /// was ahead by as much. A younger one stays,
  /// since another process may be writing it.
  @Test func orphans() {
    let files = KillableFiles()
    let now = Date().timeIntervalSince1970
    files.put("9-1.part", [1], changed: now - CacheDisk.orphanSecondsMax - 100)
    files.put("9-2.part", [1], changed: now - CacheDisk.orphanSecondsMax + 100)
    files.put("9-3.part", [1], changed: now + CacheDisk.orphanSecondsMax + 100)
    let cache = cache(files)
    #expect(cache.cachedResponse(for: request(Self.a)) == nil && cache.currentDiskUsage == 0)
    #expect(files.files.keys.sorted() == ["9-2.part"])
  }

  /// A temporary name that exists already (a former process had the same process number) is skipped.
  @Test func takenTemporaryNames() {
    let files = KillableFiles()
    let now = Date().timeIntervalSince1970
    for number in 1...7 { files.put("1-\(number).part", [1], changed: now) }
    let cache = cache(files)
    cache.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    #expect(cache.cachedResponse(for: request(Self.a))?.text == "x")
    files.put("1-9.part", [1], changed: now)
    for number in 10...16 { files.put("1-\(number).part", [1], changed: now) }
    cache.storeCachedResponse(entry(Self.a, "y"), for: request(Self.a))
    // Eight taken names in a row are more than the cache tries. The new entry is not stored, and the old entry is not
    // returned in its place.
    #expect(cache.cachedResponse(for: request(Self.a)) == nil)
  }

  /// A torn file, a file of another key and a missing file are misses and do not count towards the disk usage.
  @Test func filesThatAreNotWhatTheyWere() throws {
    let files = KillableFiles()
    let first = cache(files)
    first.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    first.core.settle()
    let (name, file) = try #require(files.files.first)
    files.put(name, Array(file.bytes.dropLast()), changed: 0)
    #expect(first.cachedResponse(for: request(Self.a)) == nil && files.files.isEmpty && first.currentDiskUsage == 0)
    let other = CacheEntryName(key: CacheHash("http://cache.test/b"), variant: CacheHash())
    files.put(other.fileName, file.bytes, changed: 0)
    #expect(cache(files).cachedResponse(for: request("http://cache.test/b")) == nil, "two keys of one hash")
    files.put(name, file.bytes, changed: 0)
    let last = cache(files)
    #expect(last.currentDiskUsage > 0)
    try files.remove(name)
    #expect(last.cachedResponse(for: request(Self.a)) == nil)
  }

  /// A cache with no disk capacity neither reads nor changes the files of its directory, which another cache may own.
  @Test func filesOfOthers() {
    let directory = CacheDirectory()
    let owner = directory.cache()
    owner.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    let diskless = directory.cache(memory: 1 << 20, disk: 0)
    #expect(diskless.currentDiskUsage == 0 && diskless.cachedResponse(for: request(Self.a)) == nil)
    diskless.storeCachedResponse(entry(Self.a, "y"), for: request(Self.a))
    diskless.removeCachedResponse(for: request(Self.a))
    diskless.removeCachedResponses(since: .distantPast)
    diskless.removeAllCachedResponses()
    #expect(directory.names.count == 1 && owner.cachedResponse(for: request(Self.a))?.text == "x")
    // With a disk capacity, the second cache uses the directory.
    diskless.diskCapacity = 1 << 20
    #expect(diskless.cachedResponse(for: request(Self.a))?.text == "x")
    diskless.removeAllCachedResponses()
    #expect(directory.names.isEmpty)
  }

  /// Setting the disk capacity to zero removes the entries on disk, even if the cache has not listed them yet.
  @Test func aCapacityThatIsTakenAway() {
    let directory = CacheDirectory()
    directory.cache().storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    let next = directory.cache()
    next.diskCapacity = 0
    next.core.settle()
    #expect(directory.names.isEmpty)
  }

  @Test func aDirectoryThatIsRemoved() throws {
    let directory = CacheDirectory()
    let cache = directory.cache()
    cache.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    try FileManager.default.removeItem(at: directory.url)
    cache.storeCachedResponse(entry(Self.a, "y"), for: request(Self.a))
    #expect(cache.cachedResponse(for: request(Self.a))?.text == "y")
    #expect(directory.names.count == 1)
  }

  /// A cache whose disk fails works like a cache with an empty disk.
  @Test func brokenDisks() {
    let files = KillableFiles()
    files.stepsLeft = 0
    let cache = cache(files, memory: 1 << 20)
    cache.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    #expect(cache.cachedResponse(for: request(Self.a))?.text == "x", "the memory still works")
    #expect(cache.currentDiskUsage == 0)
    let disk = CacheDisk(isInUse: true) { (_) throws(Errno) in throw .readOnlyFileSystem }
    let none = URLCache(core: CacheCore(memoryCapacity: 0, diskCapacity: 1 << 20, disk: disk))
    none.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    none.removeAllCachedResponses()
    #expect(none.cachedResponse(for: request(Self.a)) == nil && none.currentDiskUsage == 0)
  }

  /// Compares two caches over one set of files, under random scripts, with the entries stored last. A lookup finds that
  /// entry or nothing.
  @Test func model() {
    var seeds = SeededGenerator(for: "cache disk model")
    for _ in 0..<60 {
      let seed = UInt64.random(in: 0...UInt64(UInt32.max), using: &seeds)
      var generator = SeededGenerator(seed: seed)
      let files = KillableFiles()
      let isShared = Bool.random(using: &generator)
      let memory = isShared ? 0 : [0, 2000, 1 << 20].randomElement(using: &generator) ?? 0
      let capacity = [3000, 1 << 20].randomElement(using: &generator) ?? 0
      var caches = (0..<(isShared ? 2 : 1)).map { _ in cache(files, memory: memory, disk: capacity) }
      var model: [String: String] = [:]
      for step in 0..<80 {
        let which = Int.random(in: 0..<caches.count, using: &generator)
        let url = "http://cache.test/\(Int.random(in: 0..<6, using: &generator))"
        switch Int.random(in: 0..<12, using: &generator) {
        case 0..<5:
          let text = "\(step) " + String(repeating: "x", count: Int.random(in: 0..<900, using: &generator))
          caches[which].storeCachedResponse(entry(url, text), for: request(url))
          model[url] = text
        case 5:
          // A cache removes only entries that it has listed, so make it list the files.
          if isShared { _ = caches[which].currentDiskUsage }
          caches[which].removeCachedResponse(for: request(url))
          model[url] = nil
        case 6:
          caches[which].core.settle()
          caches[which] = cache(files, memory: memory, disk: capacity)
        case 7:
          #expect(caches[which].currentDiskUsage <= capacity, "seed \(seed)")
          #expect(caches[which].currentMemoryUsage <= memory, "seed \(seed)")
        default:
          let found = caches[which].cachedResponse(for: request(url))?.text
          #expect(found == nil || found == model[url], "seed \(seed), step \(step)")
          // A cache that does not share its files finds every entry that fits.
          if capacity == 1 << 20, !isShared { #expect(found == model[url], "seed \(seed), step \(step)") }
        }
        // Waits for the writes: a cache finds an entry while it is being written, but another cache does not.
        if isShared || Bool.random(using: &generator) {
          for cache in caches { cache.core.settle() }
        }
      }
    }
  }

  /// Listing the files while other tasks store and remove entries neither hides a stored entry nor restores a removed
  /// one.
  @Test func looksWhileItWrites() async {
    let files = KillableFiles()
    for memory in [0, 1 << 20] {
      let cache = cache(files, memory: memory)
      await withTaskGroup(of: Void.self) { group in
        group.addTask {
          for _ in 0..<200 { _ = cache.currentDiskUsage }
        }
        for worker in 0..<3 {
          group.addTask {
            let url = "http://cache.test/\(worker)"
            for step in 0..<200 {
              cache.storeCachedResponse(entry(url, "\(step)"), for: request(url))
              if step % 3 == 0 {
                #expect(cache.cachedResponse(for: request(url))?.text == "\(step)")
              }
              if step % 7 == 0 {
                cache.removeCachedResponse(for: request(url))
                #expect(cache.cachedResponse(for: request(url)) == nil)
              }
            }
          }
        }
      }
    }
  }

  @Test func severalProcesses() {
    let directory = CacheDirectory()
    let first = directory.cache()
    let second = directory.cache()
    #expect(second.cachedResponse(for: request(Self.a)) == nil)
    first.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    first.core.settle()
    // The second cache finds the entry when it lists the files: on a call of `currentDiskUsage`, or after
    // `scanSeconds`.
    #expect(second.currentDiskUsage == first.currentDiskUsage)
    #expect(second.cachedResponse(for: request(Self.a))?.text == "x")
    second.storeCachedResponse(entry(Self.a, "y"), for: request(Self.a))
    second.core.settle()
    #expect(first.cachedResponse(for: request(Self.a))?.text == "y")
    second.removeAllCachedResponses()
    second.core.settle()
    #expect(first.cachedResponse(for: request(Self.a)) == nil)
  }

  /// A cache lists the files again after `scanSeconds`, and so finds entries that other caches stored.
  @Test func timeShowsWhatOthersStore() {
    let directory = CacheDirectory()
    let first = directory.cache()
    let second = directory.cache()
    let now = Date().timeIntervalSince1970
    func isKnown(after seconds: Double) -> Bool {
      if case .alsoOnDisk = second.core.find({ Self.a }, now: now + seconds) { true } else { false }
    }
    _ = second.cachedResponse(for: request(Self.a))
    #expect(!isKnown(after: 0))
    first.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    first.core.settle()
    #expect(!isKnown(after: 1))
    // Adds 1,000 s to the interval, since the real clock runs during the test.
    _ = isKnown(after: Double(CacheCore.scanSeconds) + 1000)
    second.core.settle()
    #expect(isKnown(after: 0))
  }

  /// Concurrent stores, lookups and removals, with budgets that force evictions, never return a wrong body or exceed
  /// the budgets.
  @Test func manyThreads() async {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 4000, disk: 8000)
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<4 {
        group.addTask {
          for step in 0..<100 {
            let url = "http://cache.test/\((worker + step) % 7)"
            switch step % 5 {
            case 0, 1: cache.storeCachedResponse(entry(url, url), for: request(url))
            case 2: cache.removeCachedResponse(for: request(url))
            default:
              let found = cache.cachedResponse(for: request(url))
              #expect(found == nil || found?.text == url)
            }
          }
        }
      }
    }
    #expect(cache.currentDiskUsage <= 8000 && cache.currentMemoryUsage <= 4000)
  }
}
