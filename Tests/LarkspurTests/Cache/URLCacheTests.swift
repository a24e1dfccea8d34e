import Foundation
import LarkspurHTTP
import Testing

@testable import Larkspur

@Suite struct URLCacheTests {
  static let a = "http://cache.test/a"
  static let b = "http://cache.test/b"

  @Test func memoryAlone() throws {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20, disk: 0)
    cache.storeCachedResponse(entry(Self.a, "one", ["X": "y"]), for: request(Self.a))
    let found = try #require(cache.cachedResponse(for: request(Self.a)))
    #expect(found.text == "one" && (found.response as? HTTPURLResponse)?.value(forHTTPHeaderField: "x") == "y")
    #expect(cache.cachedResponse(for: request(Self.b)) == nil)
    #expect(cache.cachedResponse(for: request(Self.a + "#fragment"))?.text == "one")
    #expect(cache.cachedResponse(for: request(Self.a, method: "POST")) == nil)
    #expect(cache.currentMemoryUsage >= 3 && cache.currentDiskUsage == 0 && directory.names.isEmpty)
    cache.storeCachedResponse(entry(Self.a, "two"), for: request(Self.a))
    #expect(cache.cachedResponse(for: request(Self.a))?.text == "two")
    cache.removeCachedResponse(for: request(Self.a))
    #expect(cache.cachedResponse(for: request(Self.a)) == nil && cache.currentMemoryUsage == 0)
  }

  @Test func headsAndGetsAreTwo() {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    cache.storeCachedResponse(entry(Self.a, "one"), for: request(Self.a))
    cache.storeCachedResponse(entry(Self.a, ""), for: request(Self.a, method: "HEAD"))
    #expect(cache.cachedResponse(for: request(Self.a))?.text == "one")
    #expect(cache.cachedResponse(for: request(Self.a, method: "HEAD"))?.text == "")
  }

  @Test(arguments: [0, 1 << 20]) func diskOutlivesTheCache(memory: Int) throws {
    let directory = CacheDirectory()
    do {
      let cache = directory.cache(memory: memory)
      let info: [AnyHashable: Any] = [
        "n": 1, "t": "x", "f": true, "d": 1.5, "l": [1, "y"], "b": Data([1]), "at": Date(timeIntervalSince1970: 5),
      ]
      let response = response(Self.a, ["ETag": "\"e\"", "Set-Cookie": "a=b"], status: 404)
      cache.storeCachedResponse(
        CachedURLResponse(response: response, data: Data("one".utf8), userInfo: info, storagePolicy: .allowed),
        for: request(Self.a))
      let plain = URLResponse(
        url: try #require(URL(string: "x-test:p")), mimeType: "text/plain", expectedContentLength: 3,
        textEncodingName: "utf-8")
      cache.storeCachedResponse(CachedURLResponse(response: plain, data: Data("abc".utf8)), for: request("x-test:p"))
    }
    let cache = directory.cache(memory: memory)
    let found = try #require(cache.cachedResponse(for: request(Self.a)))
    let head = try #require(found.response as? HTTPURLResponse)
    #expect(found.text == "one" && head.statusCode == 404 && head.value(forHTTPHeaderField: "etag") == "\"e\"")
    #expect(
      found.storagePolicy == .allowed && found.userInfo?["n"] as? Int == 1 && found.userInfo?["f"] as? Bool == true)
    #expect(found.userInfo?["t"] as? String == "x" && found.userInfo?["d"] as? Double == 1.5)
    #expect(found.userInfo?["at"] as? Date == Date(timeIntervalSince1970: 5))
    #expect(found.userInfo?["b"] as? Data == Data([1]) && (found.userInfo?["l"] as? [Any])?.count == 2)
    let plain = try #require(cache.cachedResponse(for: request("x-test:p")))
    #expect(plain.text == "abc" && plain.response.mimeType == "text/plain" && plain.response.expectedContentLength == 3)
    #expect(!(plain.response is HTTPURLResponse) && plain.response.textEncodingName == "utf-8")
    #expect(cache.currentDiskUsage > 6)
    cache.removeAllCachedResponses()
    #expect(cache.currentDiskUsage == 0 && cache.currentMemoryUsage == 0 && directory.names.isEmpty)
    #expect(cache.cachedResponse(for: request(Self.a)) == nil)
  }

  /// A store or removal is on the disk when its call returns, since the process may end right after it.
  @Test func anotherCacheSeesItAtOnce() {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    func others() -> String? { directory.cache().cachedResponse(for: request(Self.a))?.text }
    for round in 0..<20 {
      cache.storeCachedResponse(entry(Self.a, "\(round)"), for: request(Self.a))
      #expect(others() == "\(round)")
      switch round % 3 {
      case 0: cache.removeCachedResponse(for: request(Self.a))
      case 1: cache.removeAllCachedResponses()
      default: cache.removeCachedResponses(since: .distantPast)
      }
      #expect(others() == nil)
    }
  }

  /// `userInfo` can hold `NSNumber` values, as in a dictionary read from JSON.
  @Test func userInfoOfFoundationsNumbers() throws {
    let info: [AnyHashable: Any] = [
      "one": NSNumber(value: 1), "large": NSNumber(value: Int64.max), "point": NSNumber(value: 2.5),
      "flag": NSNumber(value: true),
    ]
    let found = try #require(StoredUserInfo.info(of: StoredUserInfo.bytes(of: info)))
    #expect(found["one"] as? Int == 1 && found["large"] as? Int == .max)
    #expect(found["point"] as? Double == 2.5 && found["flag"] as? Bool == true)
  }

  /// A `userInfo` that is not a property list is left out, and the response is stored without it.
  @Test func userInfoThatIsNoPropertyList() throws {
    let directory = CacheDirectory()
    let cache = directory.cache()
    let odd = CachedURLResponse(
      response: response(Self.a), data: Data("x".utf8), userInfo: ["o": NSObject()], storagePolicy: .allowed)
    cache.storeCachedResponse(odd, for: request(Self.a))
    let found = try #require(cache.cachedResponse(for: request(Self.a)))
    #expect(found.text == "x" && found.userInfo == nil)
  }

  /// A part that does not state its bytes answers no request for the whole.
  @Test func partsThatAProgramStores() async throws {
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
    func stores(_ url: String, _ range: String?) async -> Bool {
      let head = response(url, range.map { ["Content-Range": $0] } ?? [:], status: 206)
      cache.storeCachedResponse(CachedURLResponse(response: head, data: Data("01234".utf8)), for: request(url))
      for policy in [URLRequest.CachePolicy.returnCacheDataDontLoad, .useProtocolCachePolicy] {
        if case .serve = await cache.plan(for: request(url), fields: [], policy: policy, now: cache.now) {
          Issue.record("\(range ?? "no range") answers a request for the whole")
        }
      }
      return cache.cachedResponse(for: request(url)) != nil
    }
    #expect(await stores(Self.a, "bytes 0-4/10"))
    for range in [nil, "bytes 4-0/10", "lines 0-4/10", "bytes 0-9/10"] { #expect(await !stores(Self.b, range)) }
  }

  @Test func storagePolicies() {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    cache.storeCachedResponse(entry(Self.a, "x", policy: .notAllowed), for: request(Self.a))
    #expect(cache.cachedResponse(for: request(Self.a)) == nil && cache.currentMemoryUsage == 0)
    cache.storeCachedResponse(entry(Self.a, "x", policy: .allowedInMemoryOnly), for: request(Self.a))
    #expect(cache.cachedResponse(for: request(Self.a))?.text == "x" && cache.currentDiskUsage == 0)
    cache.storeCachedResponse(entry(Self.a, "y"), for: request(Self.a))
    #expect(cache.currentDiskUsage > 0)
    // Storing in memory only also removes the file, which would otherwise reappear once the memory entry is evicted.
    cache.storeCachedResponse(entry(Self.a, "z", policy: .allowedInMemoryOnly), for: request(Self.a))
    #expect(cache.currentDiskUsage == 0 && directory.cache().cachedResponse(for: request(Self.a)) == nil)
  }

  @Test func budgets() {
    let directory = CacheDirectory()
    let body = String(repeating: "x", count: 1000)
    let one = entry(Self.a, body).prepared(key: Self.a, now: 0).cost
    let cache = directory.cache(memory: one * 3, disk: 0)
    for name in ["a", "b", "c"] {
      cache.storeCachedResponse(entry("http://cache.test/\(name)", body), for: request("http://cache.test/\(name)"))
    }
    #expect(cache.currentMemoryUsage == one * 3)
    // The lookup makes `a` the most recently used entry, so `b` is evicted.
    #expect(cache.cachedResponse(for: request(Self.a)) != nil)
    cache.storeCachedResponse(entry("http://cache.test/d", body), for: request("http://cache.test/d"))
    #expect(cache.currentMemoryUsage == one * 3 && cache.cachedResponse(for: request(Self.b)) == nil)
    #expect(cache.cachedResponse(for: request(Self.a)) != nil)
    cache.memoryCapacity = one
    #expect(cache.currentMemoryUsage == one && cache.cachedResponse(for: request(Self.a)) != nil)
    cache.memoryCapacity = one - 1
    #expect(cache.currentMemoryUsage == 0)
    cache.storeCachedResponse(entry(Self.a, body), for: request(Self.a))
    #expect(cache.currentMemoryUsage == 0, "one byte too large")
    cache.memoryCapacity = one
    cache.storeCachedResponse(entry(Self.a, body), for: request(Self.a))
    #expect(cache.currentMemoryUsage == one, "at the limit")
    cache.memoryCapacity = -1
    #expect(cache.memoryCapacity == 0 && cache.currentMemoryUsage == 0)
  }

  @Test func diskBudget() {
    let directory = CacheDirectory()
    let body = String(repeating: "x", count: 1000)
    let cache = directory.cache(disk: 1 << 20)
    cache.storeCachedResponse(entry(Self.a, body), for: request(Self.a))
    let one = cache.currentDiskUsage
    #expect(one > 1000 && one < 1400)
    cache.diskCapacity = one * 3
    for name in ["b", "c", "d", "e"] {
      cache.storeCachedResponse(entry("http://cache.test/\(name)", body), for: request("http://cache.test/\(name)"))
    }
    #expect(cache.currentDiskUsage <= one * 3 && directory.names.count == 3)
    #expect(cache.cachedResponse(for: request(Self.a)) == nil)
    #expect(cache.cachedResponse(for: request("http://cache.test/e")) != nil)
    cache.diskCapacity = one
    #expect(cache.currentDiskUsage == one && directory.names.count == 1)
    cache.diskCapacity = 0
    #expect(cache.currentDiskUsage == 0 && directory.names.isEmpty)
    cache.storeCachedResponse(entry(Self.a, body), for: request(Self.a))
    #expect(cache.currentDiskUsage == 0 && directory.names.isEmpty)
  }

  @Test func since() throws {
    let directory = CacheDirectory()
    let cache = directory.cache(memory: 1 << 20)
    for (url, time) in [(Self.a, 1000.0), (Self.b, 2000.0)] {
      let stored = entry(url, "x").prepared(key: url, now: time)
      cache.core.store(stored, now: time)
    }
    cache.removeCachedResponses(since: Date(timeIntervalSince1970: 2000.5))
    #expect(cache.cachedResponse(for: request(Self.b)) != nil)
    cache.removeCachedResponses(since: Date(timeIntervalSince1970: 1500))
    #expect(cache.cachedResponse(for: request(Self.b)) == nil && cache.cachedResponse(for: request(Self.a)) != nil)
    cache.core.settle()
    #expect(directory.cache().cachedResponse(for: request(Self.b)) == nil)
    #expect(directory.cache().cachedResponse(for: request(Self.a)) != nil)
    cache.removeCachedResponses(since: .distantFuture)
    cache.removeCachedResponses(since: .distantPast)
    #expect(cache.currentDiskUsage == 0 && cache.currentMemoryUsage == 0)
  }

  /// Directory and files are accessible to their owner only, and no file name reveals the requested URL.
  @Test func filesArePrivate() throws {
    let directory = CacheDirectory()
    let cache = directory.cache()
    let url = "http://cache.test/../../../secret?../x"
    cache.storeCachedResponse(entry(url, "x"), for: request(url))
    cache.core.settle()
    let attributes = try FileManager.default.attributesOfItem(atPath: directory.path)
    #expect((attributes[.posixPermissions] as? NSNumber)?.intValue == 0o700)
    let name = try #require(directory.names.first)
    let file = try FileManager.default.attributesOfItem(atPath: directory.path + "/" + name)
    #expect((file[.posixPermissions] as? NSNumber)?.intValue == 0o600 && directory.names.count == 1)
    #expect(
      name.utf8.count == 71 && name.hasSuffix(".entry") && name.allSatisfy { $0.isHexDigit || "-.entry".contains($0) })
  }

  /// The user name of a URL is part of the cache key; the password is not written to the disk.
  @Test func passwordsAreNotWritten() throws {
    let directory = CacheDirectory()
    let cache = directory.cache()
    let url = "http://me:pass-word@cache.test/"
    cache.storeCachedResponse(entry(url, "x"), for: request(url))
    #expect(cache.cachedResponse(for: request(url))?.text == "x")
    #expect(cache.cachedResponse(for: request("http://cache.test/")) == nil)
    let name = try #require(directory.names.first)
    let file = try Data(contentsOf: URL(fileURLWithPath: directory.path + "/" + name))
    #expect(
      file.firstRange(of: Data("me@cache.test".utf8)) != nil && file.firstRange(of: Data("pass-word".utf8)) == nil)
  }

  /// A symbolic link in place of the cache's directory is not followed, since it could lead to foreign files.
  @Test func aLinkIsNoDirectory() throws {
    let directory = CacheDirectory()
    let other = CacheDirectory()
    try FileManager.default.createDirectory(at: directory.url, withIntermediateDirectories: true)
    try FileManager.default.createDirectory(at: other.url, withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(atPath: directory.path, withDestinationPath: other.url.path)
    let cache = directory.cache()
    cache.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    #expect(cache.currentDiskUsage == 0 && cache.cachedResponse(for: request(Self.a)) == nil)
    #expect(try FileManager.default.contentsOfDirectory(atPath: other.url.path).isEmpty)
  }

  /// Foreign files in the directory are neither removed nor taken for entries.
  @Test func otherFilesStay() throws {
    let directory = CacheDirectory()
    let cache = directory.cache()
    cache.storeCachedResponse(entry(Self.a, "x"), for: request(Self.a))
    cache.core.settle()
    let mine = directory.names
    for name in ["notes", "x.entry", String(repeating: "0", count: 65) + ".entry"] {
      try Data("hello".utf8).write(to: URL(fileURLWithPath: directory.path + "/" + name))
    }
    let again = directory.cache()
    #expect(again.cachedResponse(for: request(Self.a))?.text == "x")
    again.removeAllCachedResponses()
    again.core.settle()
    #expect(directory.names.count == 3 && !directory.names.contains { mine.contains($0) })
  }

  @Test func places() throws {
    #expect(CacheLocation.path("/x") == "/x/URLCache" && CacheLocation.path("/x/") == "/x/URLCache")
    let program = try #require(CacheLocation.programDirectory)
    #expect(CacheLocation.path(nil) == program + "/URLCache" && CacheLocation.path("") == program + "/URLCache")
    #expect(CacheLocation.path("mine") == program + "/mine/URLCache")
    #expect(CacheLocation.path("../x") == nil && CacheLocation.path("a/../../x") == nil)
    #expect(CacheLocation.path("../\u{301}x") == nil)
    #expect(CacheLocation.path("a..b") == program + "/a..b/URLCache")
  }

  @Test func variants() {
    let directory = CacheDirectory()
    for memory in [0, 1 << 20] {
      let cache = directory.cache(memory: memory)
      cache.removeAllCachedResponses()
      func store(_ value: String?, _ text: String) {
        let fields: FieldList = [Field("Cache-Control", "max-age=60"), Field("Vary", "Foo")]
        let selection = CacheSelection(response: fields, request: value.map { [Field("Foo", $0)] } ?? [])
        let stored = StoredResponse(
          status: 200, fields: fields, requestTime: 0, responseTime: 0, selection: selection ?? CacheSelection(),
          bodyCount: text.utf8.count)
        let origin = CachedURLResponse.Origin(key: Self.a, stored: stored, storedTime: 0)
        cache.core.store(entry(Self.a, text, ["Vary": "Foo"]).with(origin), now: 0)
      }
      store("1", "one")
      store("2", "two")
      #expect(cache.cachedResponse(for: request(Self.a, ["Foo": "1"]))?.text == "one")
      #expect(cache.cachedResponse(for: request(Self.a, ["Foo": "2"]))?.text == "two")
      #expect(cache.cachedResponse(for: request(Self.a, ["Foo": "3"])) == nil)
      #expect(cache.cachedResponse(for: request(Self.a)) != nil, "a session would add the field")
      // Stores `variantsMax` variants, and one more.
      for index in 3...CacheCore.variantsMax { store("\(index)", "\(index)") }
      cache.core.settle()
      #expect(cache.cachedResponse(for: request(Self.a, ["Foo": "1"]))?.text == "one")
      #expect(directory.names.count == CacheCore.variantsMax)
      store("17", "17")
      cache.core.settle()
      let found = (1...17).compactMap { cache.cachedResponse(for: request(Self.a, ["Foo": "\($0)"]))?.text }
      #expect(found.count == CacheCore.variantsMax && found.last == "17")
      #expect(directory.names.count == CacheCore.variantsMax)
      // A response without `Vary` replaces all variants, and is itself replaced when a response with `Vary` comes.
      cache.storeCachedResponse(entry(Self.a, "all"), for: request(Self.a))
      #expect(cache.cachedResponse(for: request(Self.a, ["Foo": "2"]))?.text == "all")
      cache.core.settle()
      #expect(directory.names.count == 1)
      store("1", "one")
      #expect(cache.cachedResponse(for: request(Self.a, ["Foo": "2"])) == nil)
      cache.core.settle()
      #expect(directory.names.count == 1)
    }
  }

  @Test func equality() {
    let one = entry(Self.a, "x", ["A": "1"])
    #expect(one == entry(Self.a, "x", ["A": "1"]) && one.hash == entry(Self.a, "x", ["A": "1"]).hash)
    #expect(one != entry(Self.a, "y", ["A": "1"]) && one != entry(Self.a, "x", ["A": "2"]))
    #expect(one != entry(Self.a, "x", ["A": "1"], policy: .notAllowed) && !one.isEqual("x"))
    #expect(one.copy() as? CachedURLResponse === one)
  }
}

/// Tests the static members of `URLCache`.
@Suite(.serialized) struct SharedURLCacheTests {
  @Test func sharedCanBeSet() {
    let before = URLCache.shared
    defer { URLCache.shared = before }
    #expect(before === URLCache.shared)
    #expect(before.memoryCapacity == 4 << 20 && before.diskCapacity == 20 << 20)
    let mine = URLCache(memoryCapacity: 1, diskCapacity: 0, diskPath: nil)
    URLCache.shared = mine
    #expect(URLCache.shared === mine)
  }
}
