import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// A session with a cache in memory, a server, and the clock of the cache.
final class CacheFixture: Sendable {
  let server: TestServer
  let clock: HandClock
  let cache: URLCache
  let session: URLSession

  init(
    capacity: Int = 4 << 20, delegate: (any URLSessionDelegate)? = nil, cache: URLCache? = nil,
    clock: HandClock = HandClock(),
    _ change: (URLSessionConfiguration) -> Void = { _ in }
  ) throws {
    server = try TestServer()
    self.clock = clock
    let cache = cache ?? .inMemory(clock, capacity: capacity)
    self.cache = cache
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = cache
    change(configuration)
    session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
  }

  deinit { session.invalidateAndCancel() }

  struct Loaded: Equatable {
    var status: Int
    var text: String
    var fields: [String: String] = [:]

    init(_ status: Int, _ text: String) { (self.status, self.text) = (status, text) }

    static func == (one: Loaded, two: Loaded) -> Bool { one.status == two.status && one.text == two.text }
  }

  func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  func load(
    _ path: String, _ fields: [String: String] = [:], method: String = "GET",
    policy: URLRequest.CachePolicy = .useProtocolCachePolicy, delegate: (any URLSessionTaskDelegate)? = nil
  ) async throws -> Loaded {
    var request = URLRequest(url: try url(path))
    request.httpMethod = method
    request.cachePolicy = policy
    for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
    let (data, response) = try await session.data(for: request, delegate: delegate)
    await settle()
    let http = try #require(response as? HTTPURLResponse)
    var loaded = Loaded(http.statusCode, String(decoding: data, as: UTF8.self))
    for (name, value) in http.allHeaderFields {
      if let name = name as? String, let value = value as? String { loaded.fields[name.lowercased()] = value }
    }
    return loaded
  }

  /// Waits until all tasks, background revalidations and cache writes have ended.
  func settle() async {
    await Wait.until("the session is at rest") { session.core.tasks.isEmpty && !session.core.isRefreshing }
    cache.core.settle()
  }

  /// Answers GET with the number of the answer (`v1`, `v2`, ...), or with 304 if the request's validator matches.
  func serve(_ path: String, _ fields: TestServer.Fields, status: Int = 200) {
    let counter = Counter()
    server.route("GET", path) { request in
      let tag = "\"tag\""
      if request.fields["If-None-Match"] == tag, fields["ETag"] == tag {
        return TestServer.Response(status: 304, fields: fields)
      }
      return TestServer.Response(status: status, fields: fields, body: .text("v\(counter.next())"))
    }
  }

  private final class Counter: Sendable {
    private let count = Atomic(0)

    func next() -> Int { count.add(1, ordering: .relaxed).newValue }
  }

  /// The number of requests that the server received.
  var requests: Int { server.requestsReceived }
  var latest: TestServer.Request? { server.requests.last }
}

/// A delegate that answers `willCacheResponse` and reports when a task completes.
final class StoringDelegate: NSObject, URLSessionDataDelegate {
  private let answer: @Sendable (CachedURLResponse) -> CachedURLResponse?
  let proposed = Mutex<[String]>([])
  private let waiting = Mutex<CheckedContinuation<(any Error)?, Never>?>(nil)

  init(_ answer: @escaping @Sendable (CachedURLResponse) -> CachedURLResponse?) { self.answer = answer }

  /// Runs a task to its completion.
  ///
  /// - Returns: The task's error, or `nil` if it succeeded.
  func run(_ task: URLSessionTask) async -> (any Error)? {
    await withCheckedContinuation { continuation in
      waiting.withLock { $0 = continuation }
      task.resume()
    }
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
    completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
  ) {
    proposed.withLock { $0.append(proposedResponse.text) }
    completionHandler(answer(proposedResponse))
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let continuation = waiting.withLock { $0.take() }
    continuation?.resume(returning: error)
  }
}
