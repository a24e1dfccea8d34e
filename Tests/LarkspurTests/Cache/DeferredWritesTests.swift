import Foundation
import LarkspurHTTP
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests revalidations and the writes that a cache delays (`DeferredWrites`).
@Suite struct DeferredWritesTests {
  static let a = "http://cache.test/a"
  /// A write delay longer than any test, so that writes happen only on `flush`.
  static let never = DispatchTimeInterval.seconds(36_000)

  private func cache(
    _ files: KillableFiles, memory: Int = 0, disk: Int = 1 << 20, delay: DispatchTimeInterval = never,
    clock: HandClock = HandClock()
  ) -> URLCache {
    URLCache(
      core: CacheCore(
        memoryCapacity: memory, diskCapacity: disk, disk: files.disk, writeDelay: delay, now: { clock.now }))
  }

  private func store(_ text: String, in cache: URLCache, _ url: String = a) {
    cache.storeCachedResponse(entry(url, text, ["ETag": "\"e\""]), for: request(url))
  }

  /// Revalidates the stored response; the server's answer carries `number` in `X-Number`.
  ///
  /// - Returns: The answer to the caller, or `nil` if the cache did not use its stored response.
  @discardableResult private func revalidate(
    _ cache: URLCache, _ number: Int, _ url: String = a, status: Int = 304
  ) async -> CacheAnswer? {
    let plan = await cache.plan(
      for: request(url), fields: [], policy: .reloadRevalidatingCacheData, now: cache.now)
    guard case .validate(let exchange) = plan,
      case .useStored(let answer) = cache.received(
        response(url, ["X-Number": "\(number)"], status: status), for: exchange, now: cache.now)
    else { return nil }
    return answer
  }

  /// The stored body and the number of its latest revalidation, as the cache finds them.
  private func found(_ cache: URLCache, _ url: String = a) -> String? {
    cache.cachedResponse(for: request(url)).map { "\($0.text) \(number(of: $0) ?? "-")" }
  }

  private func number(of found: CachedURLResponse) -> String? {
    (found.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Number")
  }

  private func finish(_ cache: URLCache) {
    cache.core.flush()
    cache.core.settle()
  }

  /// A revalidation that changes the selecting fields: the file of the previous variant does not stay.
  @Test(arguments: [0, 1 << 20]) func anotherSelection(memory: Int) async throws {
    let files = KillableFiles()
    let cache = cache(files, memory: memory)
    store("one", in: cache)
    func renew(_ vary: String, _ user: String) async throws {
      let plan = await cache.plan(
        for: request(Self.a), fields: [Field("A", "1"), Field("B", user)], policy: .reloadRevalidatingCacheData,
        now: cache.now)
      guard case .validate(let exchange) = plan else {
        Issue.record("not validated")
        return
      }
      _ = cache.received(response(Self.a, ["Vary": vary], status: 304), for: exchange, now: cache.now)
      finish(cache)
      #expect(files.files.keys.filter { $0.hasSuffix(".entry") }.count == 1)
    }
    try await renew("A", "1")
    try await renew("B", "2")
    for other in [cache, self.cache(files, memory: memory)] {
      #expect(found(other)?.hasPrefix("one") == true)
      #expect(other.cachedResponse(for: request(Self.a, ["A": "2"])) != nil, "A does not select any more")
      #expect(other.cachedResponse(for: request(Self.a, ["B": "1"])) == nil)
    }
  }

  // MARK: - Written bytes

  /// Ten revalidations are one write of the head alone, whose size does not depend on the size of the body.
  @Test(arguments: [0, 1 << 22]) func revalidationsAreOneWrite(memory: Int) async {
    var sizes: [Int] = []
    for count in [1, 100_000] {
      let files = KillableFiles()
      let cache = cache(files, memory: memory, disk: 1 << 22)
      let text = String(repeating: "x", count: count)
      store(text, in: cache)
      let name = CacheEntryName(key: CacheHash(Self.a), variant: CacheHash())
      #expect(files.placed == [name.fileName])
      let before = files.bytesWritten
      for number in 10..<20 { #expect(await revalidate(cache, number)?.isValidated == true) }
      cache.core.settle()
      #expect(files.placed == [name.fileName] && files.bytesWritten == before)
      #expect(found(cache) == "\(text) 19", "seen at once")
      finish(cache)
      #expect(files.placed == [name.fileName, name.headFileName])
      sizes.append(files.bytesWritten - before)
      #expect(found(self.cache(files)) == "\(text) 19", "by the next process")
      // A second flush has nothing to write.
      finish(cache)
      #expect(files.placed.count == 2)
      await revalidate(cache, 20)
      finish(cache)
      #expect(files.placed.suffix(1) == [name.headFileName] && files.placed.count == 3)
      #expect(found(self.cache(files)) == "\(text) 20")
    }
    #expect(sizes[0] == sizes[1] && sizes[0] > 0)
  }

  /// A revalidation neither writes, renames nor touches the file of the body.
  @Test func theBodysFileStaysAsItIs() async throws {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    store("x", in: cache)
    let name = CacheEntryName(key: CacheHash(Self.a), variant: CacheHash())
    func facts() throws -> [String] {
      let facts = try FileManager.default.attributesOfItem(atPath: directory.path + "/" + name.fileName)
      return [FileAttributeKey.systemFileNumber, .modificationDate, .size].map { "\(String(describing: facts[$0]))" }
    }
    let before = try facts()
    await revalidate(cache, 1)
    finish(cache)
    #expect(try facts() == before)
    #expect(directory.names == [name.fileName, name.headFileName])
    #expect(found(directory.cache()) == "x 1")
    cache.removeAllCachedResponses()
    #expect(directory.names.isEmpty)
  }

  /// A revalidation in memory does not copy the body.
  @Test func bodiesAreNotCopied() async throws {
    let cache = cache(KillableFiles(), memory: 1 << 20)
    store(String(repeating: "x", count: 10_000), in: cache)
    func address(_ data: Data) -> Int { data.withUnsafeBytes { Int(bitPattern: $0.baseAddress) } }
    let before = try #require(cache.cachedResponse(for: request(Self.a)))
    let answer = try #require(await revalidate(cache, 1))
    let after = try #require(cache.cachedResponse(for: request(Self.a)))
    #expect(number(of: after) == "1" && number(of: before) == nil)
    #expect(address(after.data) == address(before.data) && address(answer.data) == address(before.data))
  }

  // MARK: - Invalidations

  /// An invalidated URL for which no file is known costs no access to the disk. A file that another process has written
  /// since the list was read is neither found nor kept.
  @Test(arguments: [false, true]) func anInvalidatedURLOfAnotherProcess(isFlushed: Bool) {
    let (files, clock) = (KillableFiles(), HandClock())
    let (cache, other) = (self.cache(files, clock: clock), self.cache(files, clock: clock))
    store("kept", in: cache, "http://cache.test/b")
    #expect(found(cache) == nil)
    store("old", in: other)
    finish(other)
    let name = CacheEntryName(key: CacheHash(Self.a), variant: CacheHash())
    #expect(files.files[name.fileName] != nil)
    clock.advance(seconds: 1)
    let steps = files.stepsLeft
    cache.core.invalidate(Self.a, now: clock.now.timeIntervalSince1970)
    cache.core.settle()
    #expect(files.stepsLeft == steps)
    if isFlushed { finish(cache) }
    clock.advance(seconds: Double(CacheCore.scanSeconds) + 1)
    #expect(found(cache) == nil)
    cache.core.settle()
    #expect(found(cache) == nil)
    #expect(files.files[name.fileName] == nil)
    #expect(found(cache, "http://cache.test/b") == "kept -")
  }

  /// A response that is stored after the invalidation stays.
  @Test func aResponseStoredAfterAnInvalidation() {
    let (files, clock) = (KillableFiles(), HandClock())
    let cache = cache(files, clock: clock)
    store("other", in: cache, "http://cache.test/b")
    #expect(found(cache) == nil)
    cache.core.invalidate(Self.a, now: clock.now.timeIntervalSince1970)
    clock.advance(seconds: 1)
    store("new", in: cache)
    finish(cache)
    #expect(found(cache) == "new -")
    #expect(found(self.cache(files, clock: clock)) == "new -", "by the next process")
  }

  /// Suspects above the limit are removed at once, so that their number is bounded.
  @Test func manyInvalidations() {
    let (files, clock) = (KillableFiles(), HandClock())
    let cache = cache(files, clock: clock)
    store("other", in: cache, "http://cache.test/b")
    #expect(found(cache) == nil)
    for number in 0..<1_000 {
      cache.core.invalidate("http://cache.test/\(number)", now: clock.now.timeIntervalSince1970)
      #expect(cache.core.state.withLock { $0.behind.suspects.count } <= DeferredWrites.suspectsMax)
    }
  }

  /// A revalidation is written when the write delay ends, without a call of `flush`.
  @Test func theIntervalEnds() async {
    let files = KillableFiles()
    let cache = cache(files, delay: .milliseconds(1))
    store("x", in: cache)
    for number in 1...3 {
      await revalidate(cache, number)
      await Wait.until("the head is written") { found(self.cache(files)) == "x \(number)" }
    }
    #expect(found(cache) == "x 3")
  }

  /// The memory for unwritten heads is bounded by `headsCostMax`: beyond it, heads are written before the delay ends.
  @Test func manyHeads() async {
    let files = KillableFiles()
    let cache = cache(files, disk: 1 << 30)
    let count = DeferredWrites.headsCostMax / 256
    for number in 0..<count {
      store("x", in: cache, "\(Self.a)\(number)")
      await revalidate(cache, number, "\(Self.a)\(number)")
    }
    cache.core.settle()
    #expect(files.placed.contains { CacheEntryName(headFileName: $0) != nil })
    #expect(cache.core.state.withLock { $0.behind.headsCost } <= DeferredWrites.headsCostMax)
    finish(cache)
    #expect(cache.core.state.withLock { $0.behind.headsCost } == 0)
    #expect(files.placed.count { CacheEntryName(headFileName: $0) != nil } == count)
  }

  // MARK: - Sessions

  private func heads(_ directory: CacheDirectory) -> Int {
    directory.names.count { CacheEntryName(headFileName: $0) != nil }
  }

  /// Unwritten heads are written by `flush`, at the end of a session, and when the cache is released.
  @Test(arguments: ["flush", "invalidate", "release"]) func sessionsWriteAtTheirEnd(way: String) async throws {
    let server = try TestServer()
    server.route("GET", "/a") { request in
      let isKnown = request.fields["If-None-Match"] != nil
      return TestServer.Response(
        status: isKnown ? 304 : 200, fields: ["ETag": "\"e\"", "Cache-Control": "no-cache", "X-Number": "7"],
        body: .text(isKnown ? "" : "x"))
    }
    let directory = CacheDirectory()
    let url = try #require(URL(string: server.url("/a")))
    var cache: URLCache? = URLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: directory.url)
    let core = try #require(cache).core
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = cache
    let session = URLSession(configuration: configuration)
    for _ in 0..<3 { #expect(try await session.data(from: url).0 == Data("x".utf8)) }
    core.settle()
    switch way {
    case "flush": await session.flush()
    case "invalidate": session.finishTasksAndInvalidate()
    default:
      configuration.urlCache = nil
      session.finishTasksAndInvalidate()
      cache = nil
    }
    await Wait.until("a head is written") { heads(directory) > 0 }
    #expect(directory.cache().cachedResponse(for: URLRequest(url: url))?.text == "x")
  }

  // MARK: - Body file and head file

  /// A process that is killed at any step of writing a head leaves the entry with its old head or its new one.
  @Test func killedWhileAHeadIsWritten() async {
    for steps in 0..<12 {
      let files = KillableFiles()
      let killed = cache(files)
      store("body", in: killed)
      await revalidate(killed, 1)
      finish(killed)
      await revalidate(killed, 2)
      files.stepsLeft = steps
      finish(killed)
      files.stepsLeft = .max
      let after = cache(files)
      let text = found(after)
      #expect(["body 1", "body 2"].contains(text), "\(steps) steps: \(text ?? "-")")
      if steps == 0 { #expect(text == "body 1") }
      if steps == 11 { #expect(text == "body 2") }
      #expect(await revalidate(after, 3) != nil)
      finish(after)
      #expect(found(cache(files)) == "body 3")
    }
  }

  /// A process that is killed at any step of replacing a body that has a separate head never combines the old head with
  /// the new body, or the reverse.
  @Test func killedWhileAnotherBodyIsStored() async {
    for steps in 0..<30 {
      let files = KillableFiles()
      let killed = cache(files)
      store("before", in: killed)
      await revalidate(killed, 1)
      finish(killed)
      files.stepsLeft = steps
      store("after, and longer", in: killed)
      killed.core.settle()
      files.stepsLeft = .max
      let text = found(cache(files))
      // A failed write also removes the files that it was to replace, which it cannot do after a kill. So the entry is
      // either the old one with its head or the new one without.
      #expect(["before 1", "after, and longer -"].contains(text), "\(steps) steps: \(text ?? "-")")
      if steps == 29 { #expect(text == "after, and longer -") }
    }
  }

  /// A head file of another generation, a torn one and one without an entry are ignored and removed.
  @Test func headsThatAreNotTheEntrys() async throws {
    let files = KillableFiles()
    let first = cache(files)
    let name = CacheEntryName(key: CacheHash(Self.a), variant: CacheHash())
    store("x", in: first)
    await revalidate(first, 1)
    finish(first)
    let head = try #require(files.files[name.headFileName])
    store("y", in: first)
    #expect(files.files[name.headFileName] == nil && found(first) == "y -")
    // Restores the old head file, as another process would that revalidated the earlier entry.
    files.put(name.headFileName, head.bytes, changed: 0)
    #expect(found(cache(files)) == "y -" && files.files[name.headFileName] == nil)
    await revalidate(first, 2)
    finish(first)
    let torn = try #require(files.files[name.headFileName]).bytes.dropLast()
    files.put(name.headFileName, Array(torn), changed: 0)
    let other = cache(files)
    let usage = other.currentDiskUsage
    #expect(found(other) == "y -" && files.files[name.headFileName] == nil)
    #expect(usage == other.currentDiskUsage + torn.count)
    files.put(name.headFileName, head.bytes, changed: 0)
    try files.remove(name.fileName)
    #expect(cache(files).currentDiskUsage == 0 && files.files.isEmpty)
  }

  /// A 304 for a body that was replaced after the request was sent does not change the new entry.
  @Test(arguments: [0, 1 << 20]) func aLate304(memory: Int) async {
    let files = KillableFiles()
    let cache = cache(files, memory: memory)
    store("x", in: cache)
    let plan = await cache.plan(
      for: request(Self.a), fields: [], policy: .reloadRevalidatingCacheData, now: cache.now)
    guard case .validate(let exchange) = plan else {
      Issue.record("no validation")
      return
    }
    store("y", in: cache)
    let verdict = cache.received(response(Self.a, ["X-Number": "1"], status: 304), for: exchange, now: cache.now)
    guard case .useStored(let answer) = verdict else {
      Issue.record("nothing stored")
      return
    }
    #expect(answer.data == Data("x".utf8))
    #expect(found(cache) == "y -")
    finish(cache)
    #expect(found(self.cache(files)) == "y -")
  }

  /// A revalidation gives an entry the time of that revalidation, so `removeCachedResponses(since:)` removes the entry.
  @Test(arguments: [false, true]) func removalsSinceATime(isWritten: Bool) async {
    let clock = HandClock()
    let cache = cache(KillableFiles(), clock: clock)
    store("x", in: cache)
    store("y", in: cache, Self.a + "2")
    clock.advance(seconds: 10)
    let time = clock.now
    clock.advance(seconds: 10)
    await revalidate(cache, 1)
    if isWritten { finish(cache) }
    cache.removeCachedResponses(since: time)
    #expect(found(cache) == nil && found(cache, Self.a + "2") == "y -")
  }

  // MARK: - Time of last use

  /// A hit on disk writes nothing during the lookup. The time of use is written later, and at most once in
  /// `usedSecondsMax`.
  @Test func usesAreWrittenBehind() {
    let files = KillableFiles()
    let clock = HandClock()
    let cache = cache(files, clock: clock)
    store("x", in: cache)
    let name = CacheEntryName(key: CacheHash(Self.a), variant: CacheHash()).fileName
    clock.advance(seconds: 5)
    let first = clock.now.timeIntervalSince1970
    for _ in 0..<10 { #expect(found(cache) == "x -") }
    #expect(files.usesNoted == 0)
    finish(cache)
    #expect(files.usesNoted == 1 && files.files[name]?.used == first)
    clock.advance(seconds: DeferredWrites.usedSecondsMax - 1)
    #expect(found(cache) == "x -")
    finish(cache)
    #expect(files.usesNoted == 1)
    clock.advance(seconds: 1)
    #expect(found(cache) == "x -")
    finish(cache)
    #expect(files.usesNoted == 2 && files.files[name]?.used == clock.now.timeIntervalSince1970)
  }

  /// Eviction takes the least recently used entry, even if its time of use is not written yet.
  @Test func usesCountAtOnce() {
    let files = KillableFiles()
    let clock = HandClock()
    let cache = cache(files, disk: 4000, clock: clock)
    for index in 0..<3 {
      store(String(repeating: "x", count: 1000), in: cache, "\(Self.a)\(index)")
      clock.advance(seconds: 1)
    }
    #expect(found(cache, Self.a + "0") != nil)
    clock.advance(seconds: 1)
    // Reading the usage lists the files again; their dates alone would make entry 0 the oldest.
    #expect(cache.currentDiskUsage > 3000)
    store(String(repeating: "x", count: 1000), in: cache, Self.a + "3")
    #expect(found(cache, Self.a + "0") != nil && found(cache, Self.a + "1") == nil)
  }

  // MARK: - Model

  /// Compares the cache under random scripts with a model: the body stored last and the number of its last
  /// revalidation. The cache finds exactly these. A cache opened after a kill finds the body with the number flushed
  /// last.
  @Test func model() async {
    var seeds = SeededGenerator(for: "cache behind model")
    for _ in 0..<40 {
      let seed = UInt64.random(in: 0...UInt64(UInt32.max), using: &seeds)
      var generator = SeededGenerator(seed: seed)
      let files = KillableFiles()
      let memory = [0, 1500, 1 << 20].randomElement(using: &generator) ?? 0
      var cache = cache(files, memory: memory)
      var model: [String: (text: String, number: String, written: String)] = [:]
      for step in 0..<80 {
        let url = "http://cache.test/\(Int.random(in: 0..<4, using: &generator))"
        switch Int.random(in: 0..<10, using: &generator) {
        case 0, 1:
          store("\(step)", in: cache, url)
          model[url] = ("\(step)", "-", "-")
        case 2, 3, 4:
          let isThere = await revalidate(cache, step, url) != nil
          #expect(isThere == (model[url] != nil), "seed \(seed), step \(step)")
          model[url]?.number = "\(step)"
        case 5:
          cache.removeCachedResponse(for: request(url))
          model[url] = nil
        case 6:
          finish(cache)
          model = model.mapValues { ($0.text, $0.number, $0.number) }
        case 7: _ = cache.currentDiskUsage
        case 8:
          // Simulates a kill: unflushed writes are lost.
          cache.core.settle()
          cache.core.state.withLock { $0.behind = DeferredWrites() }
          cache = self.cache(files, memory: memory)
          model = model.mapValues { ($0.text, $0.written, $0.written) }
        default:
          #expect(found(cache, url) == model[url].map { "\($0.text) \($0.number)" }, "seed \(seed), step \(step)")
        }
      }
    }
  }
}
