import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur

/// Tests the plans of the cache, and the steps that a session's task takes for each of them.
@Suite struct CachePlanTests {
  static let url = "http://cache.test/a"
  static let start = Date(timeIntervalSince1970: 1_800_000_000)

  /// Performs one load against the cache.
  ///
  /// - Returns: A short text with the source, status and body that the caller gets.
  private func load(
    _ cache: URLCache, _ fields: [String: String] = [:], url: String = Self.url, method: String = "GET",
    policy: URLRequest.CachePolicy = .useProtocolCachePolicy, after seconds: Double = 0,
    answer: (status: Int, fields: [String: String], body: String)? = nil
  ) async -> String {
    let now = Self.start + seconds
    let asked = request(url, fields, method: method)
    let sent = fields.sorted { $0.key < $1.key }.map { Field($0.key, $0.value) }
    switch await cache.plan(for: asked, fields: sent, policy: policy, now: now) {
    case .fail(let code): return "fail \(code.rawValue)"
    case .serve(let answer): return "cache \(text(answer))"
    case .load(let exchange), .validate(let exchange):
      let added = exchange.addedFields.map { " +\($0.name)" }.joined()
      guard let answer else {
        return cache.failed(exchange, now: now).map { "stale \(text($0))" } ?? "no answer" + added
      }
      let head = response(url, answer.fields, status: answer.status)
      switch cache.received(head, for: exchange, now: now) {
      case .deliver: return "net \(answer.status) \(answer.body)" + added
      case .reload: return "reload" + added
      case .useStored(let stored): return "\(stored.isValidated ? "valid" : "stale") \(text(stored))" + added
      case .deliverAndStore(let storing):
        cache.store(storing.proposed(Data(answer.body.utf8)), for: storing)
        return "net \(answer.status) \(answer.body) stored" + added
      }
    }
  }

  private func text(_ answer: CacheAnswer) -> String {
    "\(answer.response.statusCode) \(String(decoding: answer.data, as: UTF8.self))"
  }

  private static let fresh = (status: 200, fields: ["Cache-Control": "max-age=60", "ETag": "\"e\""], body: "one")

  @Test func policies() async {
    for memory in [0, 1 << 20] {
      let directory = CacheDirectory()
      let cache = directory.cache(memory: memory)
      let other = (status: 200, fields: ["Cache-Control": "max-age=60", "ETag": "\"f\""], body: "two")
      #expect(await load(cache, policy: .returnCacheDataDontLoad) == "fail -1008")
      #expect(await load(cache, answer: Self.fresh) == "net 200 one stored")
      #expect(await load(cache, after: 59) == "cache 200 one")
      #expect(await load(cache, after: 60) == "no answer +If-None-Match")
      #expect(await load(cache, policy: .returnCacheDataDontLoad, after: 1e6) == "cache 200 one")
      #expect(await load(cache, policy: .returnCacheDataElseLoad, after: 1e6) == "cache 200 one")
      #expect(await load(cache, policy: .reloadRevalidatingCacheData) == "no answer +If-None-Match +Cache-Control")
      #expect(
        await load(cache, policy: .reloadRevalidatingCacheData, answer: (304, [:], ""))
          == "valid 200 one +If-None-Match +Cache-Control")
      #expect(await load(cache, policy: .reloadIgnoringLocalCacheData, answer: other) == "net 200 two stored")
      #expect(await load(cache) == "cache 200 two")
      #expect(
        await load(cache, policy: .reloadIgnoringLocalAndRemoteCacheData, answer: Self.fresh)
          == "net 200 one stored +Cache-Control +Pragma")
      #expect(await load(cache) == "cache 200 one")
      // `only-if-cached` from the request is not joined with the fields that a policy adds: each field occurs once.
      #expect(await load(cache, ["Cache-Control": "only-if-cached"], url: Self.url + "?b") == "cache 504 ")
    }
  }

  /// A response without any freshness information is stored and reused only under a policy that accepts any stored
  /// response.
  @Test func responsesWithoutAWord() async {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    let bare = (status: 200, fields: ["Content-Type": "text/plain"], body: "bare")
    #expect(await load(cache, answer: bare) == "net 200 bare")
    #expect(await load(cache, policy: .returnCacheDataElseLoad, answer: bare) == "net 200 bare stored")
    #expect(await load(cache, policy: .returnCacheDataElseLoad) == "cache 200 bare")
    #expect(await load(cache) == "no answer")
  }

  @Test func validation() async throws {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    _ = await load(cache, answer: Self.fresh)
    let news = (status: 304, fields: ["Cache-Control": "max-age=600", "X": "new"], body: "")
    #expect(await load(cache, after: 60, answer: news) == "valid 200 one +If-None-Match")
    #expect(await load(cache, after: 600) == "cache 200 one")
    cache.core.flush()
    cache.core.settle()
    // The disk has the head of the revalidation, too.
    let found = try #require(directory.cache().cachedResponse(for: request(Self.url)))
    #expect((found.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X") == "new" && found.text == "one")
    // A 304 with a validator that does not match the stored entry is answered from the entry, which is then removed.
    let wrong = (status: 304, fields: ["ETag": "\"x\""], body: "")
    #expect(await load(cache, after: 1e6, answer: wrong) == "valid 200 one +If-None-Match")
    #expect(await load(cache, after: 1e6) == "no answer")
  }

  @Test func failures() async {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    let some = (status: 200, fields: ["Cache-Control": "max-age=60, stale-if-error=60", "ETag": "\"e\""], body: "one")
    _ = await load(cache, answer: some)
    #expect(await load(cache, after: 100) == "stale 200 one")
    #expect(await load(cache, after: 100, answer: (503, [:], "down")) == "stale 200 one +If-None-Match")
    #expect(await load(cache, after: 121, answer: (503, [:], "down")) == "net 503 down +If-None-Match")
    #expect(await load(cache, after: 121) == "no answer +If-None-Match")
  }

  @Test func invalidation() async {
    let directory = CacheDirectory()
    for memory in [0, 1 << 20] {
      let cache = directory.cache(memory: memory)
      let locations = ["http://cache.test/l", "http://cache.test/c", "http://other.test/c"]
      for location in locations + [Self.url] { _ = await load(cache, url: location, answer: Self.fresh) }
      #expect(await load(cache, method: "POST", answer: (500, [:], "")) == "net 500 ")
      #expect(await load(cache) == "cache 200 one")
      _ = await load(cache, method: "PUT", answer: (200, ["Location": "/l", "Content-Location": "c"], ""))
      #expect(await load(cache) == "no answer")
      #expect(await load(cache, url: locations[0]) == "no answer")
      #expect(await load(cache, url: locations[1]) == "no answer")
      for location in locations { _ = await load(cache, url: location, answer: Self.fresh) }
      _ = await load(cache, method: "DELETE", answer: (204, ["Content-Location": locations[2]], ""))
      #expect(await load(cache, url: locations[2]) == "cache 200 one", "another origin's")
      cache.removeAllCachedResponses()
    }
  }

  @Test func heads() async {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    _ = await load(cache, answer: Self.fresh)
    #expect(await load(cache, method: "HEAD") == "cache 200 ")
    let news = (status: 200, fields: ["Cache-Control": "max-age=600", "ETag": "\"e\""], body: "")
    #expect(await load(cache, method: "HEAD", after: 61, answer: news) == "net 200 ")
    #expect(await load(cache, after: 62) == "cache 200 one")
    let other = (status: 200, fields: ["ETag": "\"f\""], body: "")
    #expect(await load(cache, method: "HEAD", after: 1e6, answer: other) == "net 200 ")
    #expect(await load(cache, after: 62) == "no answer")
  }

  @Test func parts() async throws {
    for memory in [0, 1 << 20] {
      let directory = CacheDirectory()
      let cache = directory.cache(memory: memory)
      func part(_ range: String, _ body: String, tag: String = "\"e\"") async -> String {
        let fields = ["Cache-Control": "max-age=60", "ETag": tag, "Content-Range": "bytes \(range)/10"]
        let result = await load(cache, ["Range": "bytes=\(range)"], answer: (206, fields, body))
        cache.core.settle()
        return result
      }
      #expect(await part("0-3", "0123") == "net 206 0123 stored")
      #expect(await part("0-3", "") == "cache 206 0123")
      #expect(await load(cache, ["Range": "bytes=1-2"]) == "cache 206 12")
      #expect(await load(cache) == "no answer")
      #expect(await load(cache, ["Range": "bytes=3-4"]) == "no answer")
      // The body is shorter than `Content-Range` says, so it is not kept.
      #expect(await part("4-5", "4") == "net 206 4 stored")
      #expect(await load(cache, ["Range": "bytes=3-4"]) == "no answer")
      #expect(await part("2-6", "23456") == "net 206 23456 stored")
      #expect(await load(cache, ["Range": "bytes=0-6"]) == "cache 206 0123456")
      #expect(await part("7-9", "789") == "net 206 789 stored")
      #expect(await load(cache) == "cache 200 0123456789")
      #expect(await load(cache, ["Range": "bytes=-2"]) == "cache 206 89")
      // A part of a new representation replaces all stored parts of the old one.
      #expect(await load(cache, ["Range": "bytes=0-1"], policy: .reloadIgnoringLocalCacheData) == "no answer")
      let fields = ["Cache-Control": "max-age=60", "ETag": "\"f\"", "Content-Range": "bytes 0-1/10"]
      _ = await load(
        cache, ["Range": "bytes=0-1"], policy: .reloadIgnoringLocalCacheData, answer: (206, fields, "ab"))
      cache.core.settle()
      #expect(await load(cache) == "no answer")
      #expect(await load(cache, ["Range": "bytes=0-1"]) == "cache 206 ab")
    }
  }

  /// `Data` cut out of a stored body starts at index 0, since many programs assume it.
  @Test func partsStartAtZero() async throws {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    _ = await load(cache, answer: Self.fresh)
    let plan = await cache.plan(
      for: request(Self.url), fields: [Field("Range", "bytes=1-2")], policy: .useProtocolCachePolicy, now: Self.start)
    guard case .serve(let answer) = plan else {
      Issue.record("not served")
      return
    }
    #expect(answer.data.startIndex == 0 && answer.data == Data("ne".utf8))
    #expect(answer.response.value(forHTTPHeaderField: "Content-Range") == "bytes 1-2/3")
    #expect(answer.response.value(forHTTPHeaderField: "Content-Length") == "2")
    #expect(answer.response.value(forHTTPHeaderField: "Age") == "0")
  }

  @Test func conditionsOfTheCaller() async {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    _ = await load(cache, answer: Self.fresh)
    #expect(await load(cache, ["If-None-Match": "\"e\""]) == "cache 304 ")
    #expect(await load(cache, ["If-None-Match": "\"x\""], answer: (304, [:], "")) == "net 304 ")
    let news = (status: 304, fields: ["Cache-Control": "max-age=600", "ETag": "\"e\""], body: "")
    #expect(await load(cache, ["If-None-Match": "\"e\""], after: 61, answer: news) == "net 304 ")
    cache.core.settle()
    #expect(await load(cache, after: 62) == "cache 200 one", "what the caller learned, the cache has learned")
  }

  /// A body of the largest permitted size is stored, and one that is one byte longer is not.
  @Test func sizes() async throws {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 0, disk: 100_000)
    func storing(_ length: Int?) async throws -> CacheStoring? {
      let plan = await cache.plan(
        for: request(Self.url), fields: [], policy: .useProtocolCachePolicy, now: Self.start)
      let exchange = try #require(plan.exchange)
      var fields = ["Cache-Control": "max-age=60"]
      fields["Content-Length"] = length.map { "\($0)" }
      guard
        case .deliverAndStore(let storing) = cache.received(response(Self.url, fields), for: exchange, now: Self.start)
      else { return nil }
      return storing
    }
    #expect(try await storing(5001) == nil)
    let limited = try #require(try await storing(nil))
    #expect(limited.bodyBytesMax == 5000)
    cache.store(limited.proposed(Data(count: 5001)), for: limited)
    #expect(cache.currentDiskUsage == 0)
    let room = 5000 - limited.proposed(Data()).prepared(key: Self.url, now: 0).cost - 400
    cache.store(limited.proposed(Data(count: room)), for: limited)
    #expect(cache.currentDiskUsage > room)
    cache.diskCapacity = 0
    #expect(try await storing(nil) == nil, "there is no room for anything")
  }

  /// The delegate can change the data and the storage policy of a response before it is stored.
  @Test func whatTheDelegateMakesOfIt() async throws {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    func store(_ change: (CachedURLResponse) -> CachedURLResponse) async throws {
      cache.removeAllCachedResponses()
      let plan = await cache.plan(
        for: request(Self.url), fields: [], policy: .useProtocolCachePolicy, now: Self.start)
      let head = response(Self.url, Self.fresh.fields)
      guard case .deliverAndStore(let storing) = cache.received(head, for: try #require(plan.exchange), now: Self.start)
      else {
        Issue.record("not to be stored")
        return
      }
      cache.store(change(storing.proposed(Data("one".utf8))), for: storing)
      cache.core.settle()
    }
    try await store { CachedURLResponse(response: $0.response, data: Data("two".utf8), storagePolicy: .allowed) }
    #expect(await load(cache) == "cache 200 two")
    #expect(directory.names.count == 1)
    try await store { CachedURLResponse(response: $0.response, data: $0.data, storagePolicy: .allowedInMemoryOnly) }
    #expect(await load(cache) == "cache 200 one")
    #expect(directory.names.isEmpty)
    try await store { CachedURLResponse(response: $0.response, data: $0.data, storagePolicy: .notAllowed) }
    #expect(await load(cache) == "no answer")
    let brief = response(Self.url, ["Cache-Control": "max-age=1"])
    try await store { CachedURLResponse(response: brief, data: $0.data) }
    #expect(await load(cache, after: 0.5) == "cache 200 one")
    #expect(await load(cache, after: 1) == "no answer")
  }

  @Test func refreshing() async throws {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    let some = (
      status: 200, fields: ["Cache-Control": "max-age=60, stale-while-revalidate=60", "ETag": "\"e\""], body: "one"
    )
    _ = await load(cache, answer: some)
    let plan = await cache.plan(
      for: request(Self.url), fields: [], policy: .useProtocolCachePolicy, now: Self.start + 61)
    guard case .serve(let answer) = plan, let refresh = answer.refresh else {
      Issue.record("not served with a refresh")
      return
    }
    #expect(answer.isStale && refresh.addedFields.map(\.name) == ["If-None-Match"])
    let head = response(Self.url, ["Cache-Control": "max-age=60"], status: 304)
    guard case .useStored = cache.received(head, for: refresh, now: Self.start + 61) else {
      Issue.record("not validated")
      return
    }
    #expect(await load(cache, after: 120) == "cache 200 one")
  }

  /// Requests with different credentials in one process do not get each other's responses.
  @Test func credentials() async {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    #expect(await load(cache, ["Authorization": "a"], answer: Self.fresh) == "net 200 one stored")
    #expect(await load(cache, ["Authorization": "a"]) == "cache 200 one")
    #expect(await load(cache, ["Authorization": "b"]) == "no answer")
    #expect(await load(cache) == "no answer")
  }

  /// A subclass that keeps its responses in a dictionary of its own.
  private final class Elsewhere: URLCache, @unchecked Sendable {
    nonisolated(unsafe) var kept: [URL: CachedURLResponse] = [:]
    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? { request.url.flatMap { kept[$0] } }
    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
      if let url = request.url { kept[url] = cachedResponse }
    }
    override func removeCachedResponse(for request: URLRequest) {
      if let url = request.url { kept[url] = nil }
    }
  }

  @Test func subclasses() async {
    let cache = Elsewhere(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    #expect(await load(cache, answer: Self.fresh) == "net 200 one stored")
    cache.core.settle()
    #expect(cache.kept.count == 1 && cache.currentMemoryUsage == 0)
    #expect(await load(cache) == "cache 200 one")
    #expect(await load(cache, after: 61, answer: (304, ["X": "y"], "")) == "valid 200 one +If-None-Match")
    _ = await load(cache, method: "POST", answer: (200, [:], ""))
    cache.core.settle()
    #expect(cache.kept.isEmpty)
  }

  /// A request without a URL, or with one that has no cache key, is loaded as if there were no cache.
  @Test func requestsWithoutKeys() async {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    var none = request(Self.url)
    none.url = nil
    let load = await cache.plan(for: none, fields: [], policy: .useProtocolCachePolicy, now: Self.start)
    let only = await cache.plan(for: none, fields: [], policy: .returnCacheDataDontLoad, now: Self.start)
    guard case .load = load, case .fail(.resourceUnavailable) = only else {
      Issue.record("\(load), \(only)")
      return
    }
    #expect(cache.cachedResponse(for: none) == nil)
    cache.storeCachedResponse(entry(Self.url, "x"), for: none)
    cache.removeCachedResponse(for: none)
    #expect(cache.currentMemoryUsage == 0)
  }

  /// A cache that is known to hold nothing for a key makes the plan synchronously.
  @Test func emptyCachesAnswerAtOnce() async {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    func now(_ seconds: Double = 0) -> CachePlan? {
      cache.planNow(for: request(Self.url), fields: [], policy: .useProtocolCachePolicy, now: Self.start + seconds)
    }
    #expect(now() == nil, "nobody has looked yet")
    #expect(await load(cache) == "no answer")
    #expect(now() != nil)
    _ = await load(cache, url: Self.url + "?other", answer: Self.fresh)
    #expect(now() != nil, "what is not listed is not looked for")
  }
}
