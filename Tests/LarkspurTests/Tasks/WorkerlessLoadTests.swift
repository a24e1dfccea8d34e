import Foundation
import LarkspurTestServer
import LarkspurTransport
import TestKit
import Testing

@testable import Larkspur

/// Loads of common kinds over an idle connection need no Swift task: with content codings, validators, a filled cache
/// and cookies.
@Suite(.timeLimit(.minutes(2))) struct WorkerlessLoadTests {
  let server: TestServer
  let session: URLSession

  init() throws {
    server = try TestServer()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
    session = URLSession(configuration: configuration)
  }

  private func load(
    _ path: String, by session: URLSession? = nil
  ) async throws -> (data: Data, status: Int?, hasWorker: Bool) {
    let session = session ?? self.session
    let url = try #require(URL(string: server.url(path)))
    let load = try session.core.load(for: URLRequest(url: url), session, nil)
    try await session.core.run(load)
    let hasWorker = await load.engine.loop.run { load.hasWorker }
    let (data, response) = try load.takeData()
    return (data, (response as? HTTPURLResponse)?.statusCode, hasWorker)
  }

  @Test(arguments: ["/bytes/10", "/gzip", "/cookies/set?a=b", "/status/404"]) func responses(path: String) async throws
  {
    if path.hasPrefix("/cookies") { server.route("GET", "/cookies/set") { _ in Self.cookie } }
    let first = try await load(path)
    #expect(first.hasWorker, "the route has to be found first")
    for _ in 0..<3 {
      let next = try await load(path)
      #expect(next.data.count == first.data.count && next.status == first.status && !next.hasWorker)
    }
    #expect(server.requestsReceived == 4)
  }

  private static let cookie = TestServer.Response(fields: ["Set-Cookie": "a=b"], body: .bytes(Array("ok".utf8)))

  @Test func revalidations() async throws {
    let first = try await load("/etag/a")
    for _ in 0..<3 {
      let next = try await load("/etag/a")
      #expect(next.data == first.data && next.status == 200 && !next.hasWorker)
    }
    #expect(server.requests.map { $0.fields["If-None-Match"] != nil } == [false, true, true, true])
  }

  @Test func storedResponses() async throws {
    server.route("GET", "/stored") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=60"], body: .bytes(Array("ok".utf8)))
    }
    let first = try await load("/stored")
    for _ in 0..<3 {
      let next = try await load("/stored")
      #expect(next.data == first.data && next.status == 200 && !next.hasWorker)
    }
    #expect(server.requestsReceived == 1)
  }

  /// Runs a closure with a session whose cache is on disk only, in a temporary directory.
  private func withDiskSession(_ body: (URLSession, URLCache) async throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent("larkspur-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: directory) }
    server.route("GET", "/stored") { _ in
      TestServer.Response(fields: ["Cache-Control": "max-age=60"], body: .bytes(Array("ok".utf8)))
    }
    let configuration = URLSessionConfiguration.ephemeral
    let cache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: directory)
    configuration.urlCache = cache
    let session = URLSession(configuration: configuration)
    try await body(session, cache)
    session.invalidateAndCancel()
  }

  @Test func storedResponsesOnDisk() async throws {
    try await withDiskSession { session, cache in
      _ = try await load("/stored", by: session)
      cache.core.settle()
      for _ in 0..<3 {
        let next = try await load("/stored", by: session)
        #expect(next.data == Data("ok".utf8) && next.status == 200 && !next.hasWorker)
      }
      #expect(server.requestsReceived == 1)
    }
  }

  /// A cancelled load does not wait for the disk, and a late result of the disk has no effect.
  @Test func aDiskThatHangs() async throws {
    try await withDiskSession { session, cache in
      _ = try await load("/stored", by: session)
      cache.core.settle()
      let disk = DispatchSemaphore(value: 0)
      cache.core.run { disk.wait() }
      let url = try #require(URL(string: server.url("/stored")))
      let task = Task { try await session.data(from: url) }
      await Wait.until("the task has begun") { !session.core.tasks.isEmpty }
      task.cancel()
      let error = await #expect(throws: URLError.self) { try await task.value }
      #expect(error?.code == .cancelled)
      let late = Task { try await session.data(from: url) }
      disk.signal()
      #expect(try await late.value.0 == Data("ok".utf8))
      #expect(server.requestsReceived == 1)
    }
  }

  /// A load that is interrupted while the disk hangs is released before the disk answers.
  @Test func aHungDiskKeepsNoLoad() async throws {
    try await withDiskSession { session, cache in
      _ = try await load("/stored", by: session)
      cache.core.settle()
      let disk = DispatchSemaphore(value: 0)
      defer { disk.signal() }
      cache.core.run { disk.wait() }
      let url = try #require(URL(string: server.url("/stored")))
      weak var left: Load?
      do {
        let load = try session.core.load(for: URLRequest(url: url), session, nil)
        left = load
        let run = Task { try await session.core.run(load) }
        await Wait.until("the load waits") {
          await load.engine.loop.run { load.cancelWait != nil }
        }
        run.cancel()
        _ = await run.result
        #expect(throws: URLError.self) { try load.takeData() }
      }
      // The loop may hold it for the rest of a tick.
      await Wait.until("the load is released") { left == nil }
    }
  }

  /// A response in many pieces needs no Swift task.
  @Test func piecesOfAResponse() async throws {
    let pieces: TestServer.Script = [
      .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n", inPiecesOf: 1),
      .serveRoutes,
    ]
    server.route("GET", "/pieces", script: pieces)
    #expect(try await load("/bytes/10").hasWorker)
    for _ in 0..<3 {
      let next = try await load("/pieces")
      #expect(next.data == Data("onetwo".utf8) && !next.hasWorker)
    }
    let large = try await load("/bytes/3000000")
    #expect(large.data.count == 3_000_000 && !large.hasWorker)
  }

  /// A redirection needs a Swift task, since the delegate may have to be asked.
  @Test func redirections() async throws {
    _ = try await load("/bytes/10")
    let redirected = try await load("/redirect-to?url=/bytes/10")
    #expect(redirected.data.count == 10 && redirected.hasWorker)
  }
}
