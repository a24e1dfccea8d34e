import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests which responses a session stores, and how the delegate influences this.
@Suite struct CacheStoringTests {
  // MARK: - willCacheResponse

  @Test func theDelegateRefuses() async throws {
    let delegate = StoringDelegate { _ in nil }
    let fixture = try CacheFixture(delegate: delegate)
    fixture.serve("/a", ["Cache-Control": "max-age=10"])
    for _ in 0..<2 { #expect(await delegate.run(fixture.session.dataTask(with: try fixture.url("/a"))) == nil) }
    #expect(delegate.proposed.withLock { $0 } == ["v1", "v2"])
    #expect(fixture.requests == 2)
    #expect(fixture.cache.currentMemoryUsage == 0)
  }

  /// A response without freshness information is stored if the delegate adds such information.
  @Test func theDelegateSaysHowLongItIsFresh() async throws {
    let delegate = StoringDelegate { proposed in
      guard let url = proposed.response.url,
        let response = HTTPURLResponse(
          url: url, statusCode: 200, httpVersion: nil, headerFields: ["Cache-Control": "max-age=10"])
      else { return nil }
      return CachedURLResponse(response: response, data: proposed.data)
    }
    let fixture = try CacheFixture(delegate: delegate)
    fixture.serve("/a", [:])
    for _ in 0..<2 { #expect(await delegate.run(fixture.session.dataTask(with: try fixture.url("/a"))) == nil) }
    #expect(delegate.proposed.withLock { $0 } == ["v1"] && fixture.requests == 1)
  }

  /// A response without freshness information is stored if the delegate returns the proposal unchanged, as on Darwin.
  @Test func theDelegateReturnsTheProposal() async throws {
    let delegate = StoringDelegate { $0 }
    let fixture = try CacheFixture(delegate: delegate)
    fixture.serve("/a", [:])
    for round in 1...2 {
      #expect(await delegate.run(fixture.session.dataTask(with: try fixture.url("/a"))) == nil)
      let stored = fixture.cache.cachedResponse(for: URLRequest(url: try fixture.url("/a")))
      #expect(stored.map { String(decoding: $0.data, as: UTF8.self) } == "v\(round)")
    }
    #expect(delegate.proposed.withLock { $0 } == ["v1", "v2"] && fixture.requests == 2)
    let request = URLRequest(url: try fixture.url("/a"), cachePolicy: .returnCacheDataDontLoad)
    #expect(await delegate.run(fixture.session.dataTask(with: request)) == nil)
    #expect(fixture.requests == 2)
  }

  /// A response that HTTP forbids to store is not stored, even if the delegate returns the proposal.
  @Test(arguments: [("Cache-Control", "no-store"), ("Vary", "*")])
  func theDelegateReturnsWhatMayNotBeStored(name: String, value: String) async throws {
    let delegate = StoringDelegate { $0 }
    let fixture = try CacheFixture(delegate: delegate)
    fixture.serve("/a", [name: value])
    #expect(await delegate.run(fixture.session.dataTask(with: try fixture.url("/a"))) == nil)
    #expect(fixture.cache.currentMemoryUsage == 0)
  }

  /// A delegate that replaces the fields does not undo the server's distinction between requests.
  @Test func theDelegateLeavesVaryOut() async throws {
    let delegate = StoringDelegate { proposed in
      guard let url = proposed.response.url,
        let head = HTTPURLResponse(
          url: url, statusCode: 200, httpVersion: nil, headerFields: ["Cache-Control": "max-age=60"])
      else { return nil }
      return CachedURLResponse(response: head, data: proposed.data)
    }
    let fixture = try CacheFixture(delegate: delegate)
    fixture.serve("/a", ["Vary": "X-Kind", "ETag": "\"tag\""])
    var request = URLRequest(url: try fixture.url("/a"))
    for kind in ["one", "two"] {
      request.setValue(kind, forHTTPHeaderField: "X-Kind")
      #expect(await delegate.run(fixture.session.dataTask(with: request)) == nil)
    }
    #expect(fixture.requests == 2)
    #expect(try await fixture.load("/a", ["X-Kind": "two"]) == .init(200, "v2"))
    #expect(fixture.requests == 2)
  }

  /// The program's own responses answer only requests that have the values of the request they are stored for.
  @Test func theProgramStoresAVariant() async throws {
    let fixture = try CacheFixture()
    fixture.serve("/a", ["Cache-Control": "max-age=60"])
    let url = try fixture.url("/a")
    func store(_ vary: String) throws {
      let fields = ["Cache-Control": "max-age=60", "Vary": vary]
      let head = try #require(
        HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: fields))
      var request = URLRequest(url: url)
      request.setValue("one", forHTTPHeaderField: "X-Kind")
      fixture.cache.removeAllCachedResponses()
      fixture.cache.storeCachedResponse(CachedURLResponse(response: head, data: Data("mine".utf8)), for: request)
    }
    try store("X-Kind, Accept-Encoding, User-Agent")
    #expect(try await fixture.load("/a", ["X-Kind": "one"]) == .init(200, "mine"))
    #expect(try await fixture.load("/a", ["X-Kind": "two"]) == .init(200, "v1"))
    try store("*")
    #expect(try await fixture.load("/a", ["X-Kind": "one"]) == .init(200, "v2"))
  }

  @Test(arguments: [true, false]) func aDelegateWithoutTheMethodDoesNotDecide(isOwn: Bool) async throws {
    let recorder = SessionRecorder()
    let fixture = try CacheFixture(delegate: isOwn ? nil : recorder)
    fixture.serve("/a", [:])
    for count in 1...2 {
      let task = fixture.session.dataTask(with: try fixture.url("/a"))
      if isOwn { task.delegate = recorder }
      task.resume()
      await recorder.waitForEnds(count)
    }
    await fixture.settle()
    #expect(fixture.requests == 2 && fixture.cache.currentMemoryUsage == 0)
    #expect(fixture.session.core.mayDecideStoring == false)
  }

  /// A stored `URLResponse` that is not an HTTP response is served under the policies that accept any stored response,
  /// and not under the protocol's policy.
  @Test func aPlainResponse() async throws {
    let fixture = try CacheFixture()
    let url = try fixture.url("/a")
    let plain = URLResponse(url: url, mimeType: "text/plain", expectedContentLength: 5, textEncodingName: "utf-8")
    fixture.cache.storeCachedResponse(
      CachedURLResponse(response: plain, data: Data("plain".utf8)), for: URLRequest(url: url))
    for policy in [URLRequest.CachePolicy.returnCacheDataElseLoad, .returnCacheDataDontLoad] {
      let loaded = try await fixture.load("/a", policy: policy)
      #expect(loaded == .init(200, "plain"))
      #expect(loaded.fields["content-type"] == "text/plain; charset=utf-8")
    }
    fixture.serve("/a", [:])
    #expect(try await fixture.load("/a") == .init(200, "v1"))
  }

  @Test func theDelegateChangesIt() async throws {
    let delegate = StoringDelegate {
      CachedURLResponse(
        response: $0.response, data: Data("changed".utf8), userInfo: ["by": "me"], storagePolicy: .allowedInMemoryOnly)
    }
    let fixture = try CacheFixture(delegate: delegate)
    fixture.serve("/a", ["Cache-Control": "max-age=10"])
    #expect(await delegate.run(fixture.session.dataTask(with: try fixture.url("/a"))) == nil)
    #expect(try await fixture.load("/a") == .init(200, "changed"))
    #expect(fixture.requests == 1)
    let stored = fixture.cache.cachedResponse(for: URLRequest(url: try fixture.url("/a")))
    #expect(stored?.userInfo?["by"] as? String == "me")
    #expect(stored?.storagePolicy == .allowedInMemoryOnly)
    // A response that came from the cache is not proposed to the delegate again.
    #expect(await delegate.run(fixture.session.dataTask(with: try fixture.url("/a"))) == nil)
    #expect(delegate.proposed.withLock { $0.count } == 1)
  }

  /// The delegate gets no proposal for a response that cannot be stored, or for a body that was cut short.
  @Test func whatIsNotProposed() async throws {
    let delegate = StoringDelegate { $0 }
    let fixture = try CacheFixture(capacity: 1 << 20, delegate: delegate)
    fixture.serve("/secret", ["Cache-Control": "no-store"])
    fixture.server.route("GET", "/large") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=10"], body: .content(0..<1 << 19))
    }
    fixture.server.route(
      "GET", "/short",
      script: [.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=10\r\nContent-Length: 10\r\n\r\nhello"), .close])
    #expect(await delegate.run(fixture.session.dataTask(with: try fixture.url("/secret"))) == nil)
    #expect(await delegate.run(fixture.session.dataTask(with: try fixture.url("/large"))) == nil)
    let error = await delegate.run(fixture.session.dataTask(with: try fixture.url("/short"))) as? URLError
    #expect(error?.code == .networkConnectionLost)
    #expect(delegate.proposed.withLock { $0 } == [])
    #expect(fixture.cache.currentMemoryUsage == 0)
  }

  // MARK: - Policies

  @Test(arguments: [
    (URLCache.StoragePolicy.allowed, true, true), (.allowedInMemoryOnly, true, false), (.notAllowed, false, false),
  ])
  func storagePolicies(_ policy: URLCache.StoragePolicy, isInMemory: Bool, isOnDisk: Bool) async throws {
    let directory = CacheDirectory()
    let server = try TestServer()
    server.route("GET", "/a") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=1000"], body: .text("hello"))
    }
    let delegate = StoringDelegate { CachedURLResponse(response: $0.response, data: $0.data, storagePolicy: policy) }
    let configuration = URLSessionConfiguration.ephemeral
    let cache = directory.cache(memory: 1 << 20)
    configuration.urlCache = cache
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: server.url("/a")))
    #expect(await delegate.run(session.dataTask(with: url)) == nil)
    #expect((cache.cachedResponse(for: URLRequest(url: url)) != nil) == isInMemory)
    cache.core.settle()
    // A second cache on the directory sees the disk only.
    let other = directory.cache(memory: 1 << 20)
    #expect(other.cachedResponse(for: URLRequest(url: url))?.text == (isOnDisk ? "hello" : nil))
  }

  /// A session finds the responses that an earlier session stored on disk.
  @Test func anotherSessionFindsItOnDisk() async throws {
    let directory = CacheDirectory()
    let server = try TestServer()
    server.route("GET", "/a") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=1000"], body: .text("hello"))
    }
    let url = try #require(URL(string: server.url("/a")))
    for _ in 0..<3 {
      let configuration = URLSessionConfiguration.ephemeral
      let cache = directory.cache()
      configuration.urlCache = cache
      let session = URLSession(configuration: configuration)
      let (data, _) = try await session.data(from: url)
      #expect(data == Data("hello".utf8))
      cache.core.settle()
      session.finishTasksAndInvalidate()
    }
    #expect(server.requestsReceived == 1)
  }

  // MARK: - A process that is killed

  @Test func killedWhileStoring() throws {
    var generator = SeededGenerator(for: "a session killed while it stores")
    let server = try TestServer()
    server.route("GET", "/store/{number}") { request in
      let number = request.parameters["number"].flatMap { Int($0) } ?? 0
      return TestServer.Response(fields: ["Cache-Control": "max-age=100000"], body: .content(number..<number + 20_000))
    }
    for _ in 0..<8 {
      let directory = CacheDirectory()
      let writer = try SiblingProcess("session", ["store", server.url("/store"), directory.url.path])
      let lines = Int.random(in: 1...20, using: &generator)
      let last = try #require(writer.read(lines: lines).flatMap { Int($0) })
      writer.kill()
      // Entries that the process reported as written are there. Later entries may be missing, but the ones found are
      // whole.
      let cache = directory.cache(disk: 1 << 30)
      for number in 0..<last + 40 {
        let url = try #require(URL(string: server.url("/store/\(number)")))
        let found = cache.cachedResponse(for: URLRequest(url: url))
        if number <= last { #expect(found != nil, "\(number) of \(last)") }
        if let found { #expect(found.data == Data(TestServer.content(number..<number + 20_000))) }
      }
    }
  }
}
