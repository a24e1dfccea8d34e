import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// What a session stores, and who has a say in it.
@Suite struct CacheStoringTests {
  // MARK: - willCacheResponse

  @Test func theDelegateRefuses() async throws {
    let delegate = StoringDelegate { _ in nil }
    let world = try CacheWorld(delegate: delegate)
    world.serve("/a", ["Cache-Control": "max-age=10"])
    for _ in 0..<2 { #expect(await delegate.run(world.session.dataTask(with: try world.url("/a"))) == nil) }
    #expect(delegate.proposed.withLock { $0 } == ["v1", "v2"])
    #expect(world.requests == 2)
    #expect(world.cache.currentMemoryUsage == 0)
  }

  /// Of what HTTP says nothing the delegate decides, and without one it is not kept: the cache would be full of it.
  @Test func theDelegateSaysHowLongItIsFresh() async throws {
    let delegate = StoringDelegate { proposed in
      guard let url = proposed.response.url,
        let response = HTTPURLResponse(
          url: url, statusCode: 200, httpVersion: nil, headerFields: ["Cache-Control": "max-age=10"])
      else { return nil }
      return CachedURLResponse(response: response, data: proposed.data)
    }
    let world = try CacheWorld(delegate: delegate)
    world.serve("/a", [:])
    for _ in 0..<2 { #expect(await delegate.run(world.session.dataTask(with: try world.url("/a"))) == nil) }
    #expect(delegate.proposed.withLock { $0 } == ["v1"] && world.requests == 1)
  }

  /// As on Darwin: to return what is proposed is to have it stored, though HTTP says nothing of how long it is fresh.
  @Test func theDelegateReturnsTheProposal() async throws {
    let delegate = StoringDelegate { $0 }
    let world = try CacheWorld(delegate: delegate)
    world.serve("/a", [:])
    for round in 1...2 {
      #expect(await delegate.run(world.session.dataTask(with: try world.url("/a"))) == nil)
      let stored = world.cache.cachedResponse(for: URLRequest(url: try world.url("/a")))
      #expect(stored.map { String(decoding: $0.data, as: UTF8.self) } == "v\(round)")
    }
    #expect(delegate.proposed.withLock { $0 } == ["v1", "v2"] && world.requests == 2)
    let request = URLRequest(url: try world.url("/a"), cachePolicy: .returnCacheDataDontLoad)
    #expect(await delegate.run(world.session.dataTask(with: request)) == nil)
    #expect(world.requests == 2)
  }

  /// What may not be stored at all is not stored for a delegate either.
  @Test(arguments: [("Cache-Control", "no-store"), ("Vary", "*")])
  func theDelegateReturnsWhatMayNotBeStored(name: String, value: String) async throws {
    let delegate = StoringDelegate { $0 }
    let world = try CacheWorld(delegate: delegate)
    world.serve("/a", [name: value])
    #expect(await delegate.run(world.session.dataTask(with: try world.url("/a"))) == nil)
    #expect(world.cache.currentMemoryUsage == 0)
  }

  @Test(arguments: [true, false]) func aDelegateWithoutTheMethodDoesNotDecide(isOwn: Bool) async throws {
    let recorder = SessionRecorder()
    let world = try CacheWorld(delegate: isOwn ? nil : recorder)
    world.serve("/a", [:])
    for count in 1...2 {
      let task = world.session.dataTask(with: try world.url("/a"))
      if isOwn { task.delegate = recorder }
      task.resume()
      await recorder.waitForEnds(count)
    }
    await world.settle()
    #expect(world.requests == 2 && world.cache.currentMemoryUsage == 0)
    #expect(world.session.core.mayDecideStoring == false)
  }

  /// What is not HTTP's is an answer for those who take any.
  @Test func aPlainResponse() async throws {
    let world = try CacheWorld()
    let url = try world.url("/a")
    let plain = URLResponse(url: url, mimeType: "text/plain", expectedContentLength: 5, textEncodingName: "utf-8")
    world.cache.storeCachedResponse(
      CachedURLResponse(response: plain, data: Data("plain".utf8)), for: URLRequest(url: url))
    for policy in [URLRequest.CachePolicy.returnCacheDataElseLoad, .returnCacheDataDontLoad] {
      let loaded = try await world.load("/a", policy: policy)
      #expect(loaded == .init(200, "plain"))
      #expect(loaded.fields["content-type"] == "text/plain; charset=utf-8")
    }
    world.serve("/a", [:])
    #expect(try await world.load("/a") == .init(200, "v1"))
  }

  @Test func theDelegateChangesIt() async throws {
    let delegate = StoringDelegate {
      CachedURLResponse(
        response: $0.response, data: Data("changed".utf8), userInfo: ["by": "me"], storagePolicy: .allowedInMemoryOnly)
    }
    let world = try CacheWorld(delegate: delegate)
    world.serve("/a", ["Cache-Control": "max-age=10"])
    #expect(await delegate.run(world.session.dataTask(with: try world.url("/a"))) == nil)
    #expect(try await world.load("/a") == .init(200, "changed"))
    #expect(world.requests == 1)
    let stored = world.cache.cachedResponse(for: URLRequest(url: try world.url("/a")))
    #expect(stored?.userInfo?["by"] as? String == "me")
    #expect(stored?.storagePolicy == .allowedInMemoryOnly)
    // What is out of the cache is not offered to it again.
    #expect(await delegate.run(world.session.dataTask(with: try world.url("/a"))) == nil)
    #expect(delegate.proposed.withLock { $0.count } == 1)
  }

  /// Nobody is asked about what is not stored in any case, and nothing is stored of a body that was cut short.
  @Test func whatIsNotProposed() async throws {
    let delegate = StoringDelegate { $0 }
    let world = try CacheWorld(capacity: 1 << 20, delegate: delegate)
    world.serve("/secret", ["Cache-Control": "no-store"])
    world.server.route("GET", "/large") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=10"], body: .content(0..<1 << 19))
    }
    world.server.route(
      "GET", "/short",
      script: [.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=10\r\nContent-Length: 10\r\n\r\nhello"), .close])
    #expect(await delegate.run(world.session.dataTask(with: try world.url("/secret"))) == nil)
    #expect(await delegate.run(world.session.dataTask(with: try world.url("/large"))) == nil)
    let error = await delegate.run(world.session.dataTask(with: try world.url("/short"))) as? URLError
    #expect(error?.code == .networkConnectionLost)
    #expect(delegate.proposed.withLock { $0 } == [])
    #expect(world.cache.currentMemoryUsage == 0)
  }

  // MARK: - Policies

  @Test(arguments: [
    (URLCache.StoragePolicy.allowed, true, true), (.allowedInMemoryOnly, true, false), (.notAllowed, false, false),
  ])
  func storagePolicies(_ policy: URLCache.StoragePolicy, isInMemory: Bool, isOnDisk: Bool) async throws {
    let folder = CacheFolder()
    let server = try TestServer()
    server.route("GET", "/a") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=1000"], body: .text("hello"))
    }
    let delegate = StoringDelegate { CachedURLResponse(response: $0.response, data: $0.data, storagePolicy: policy) }
    let configuration = URLSessionConfiguration.ephemeral
    let cache = folder.cache(memory: 1 << 20)
    configuration.urlCache = cache
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    defer { session.invalidateAndCancel() }
    let url = try #require(URL(string: server.url("/a")))
    #expect(await delegate.run(session.dataTask(with: url)) == nil)
    #expect((cache.cachedResponse(for: URLRequest(url: url)) != nil) == isInMemory)
    cache.core.settle()
    // Another one sees the disk only.
    let other = folder.cache(memory: 1 << 20)
    #expect(other.cachedResponse(for: URLRequest(url: url))?.text == (isOnDisk ? "hello" : nil))
  }

  /// What one session has stored on the disk is another's later.
  @Test func anotherSessionFindsItOnDisk() async throws {
    let folder = CacheFolder()
    let server = try TestServer()
    server.route("GET", "/a") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=1000"], body: .text("hello"))
    }
    let url = try #require(URL(string: server.url("/a")))
    for _ in 0..<3 {
      let configuration = URLSessionConfiguration.ephemeral
      let cache = folder.cache()
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
      let folder = CacheFolder()
      let writer = try SiblingProcess("SessionProbe", ["store", server.url("/store"), folder.url.path])
      let lines = Int.random(in: 1...20, using: &generator)
      let last = try #require(writer.read(lines: lines).flatMap { Int($0) })
      writer.kill()
      // What was said to be on the disk is there; of what came after, whatever is there is whole.
      let cache = folder.cache(disk: 1 << 30)
      for number in 0..<last + 40 {
        let url = try #require(URL(string: server.url("/store/\(number)")))
        let found = cache.cachedResponse(for: URLRequest(url: url))
        if number <= last { #expect(found != nil, "\(number) of \(last)") }
        if let found { #expect(found.data == Data(TestServer.content(number..<number + 20_000))) }
      }
    }
  }
}
