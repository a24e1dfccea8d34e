import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests a program's own cache class: sessions call its methods that take a task.
@Suite(.timeLimit(.minutes(1))) struct CacheSubclassTests {
  /// A cache that keeps the responses stored by task apart from those stored by request.
  private final class Elsewhere: URLCache, @unchecked Sendable {
    struct Kept {
      var ofTasks: [URL: CachedURLResponse] = [:]
      var ofRequests: [URL: CachedURLResponse] = [:]
      var fields: [String?] = []
    }
    let kept = Mutex(Kept())
    let stored = Event()

    override func getCachedResponse(
      for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
      let found = kept.withLock { kept in
        dataTask.currentRequest?.url.flatMap { kept.ofTasks[$0] ?? kept.ofRequests[$0] }
      }
      completionHandler(found)
      // Calls the completion a second time, which the session has to ignore.
      completionHandler(nil)
    }

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
      guard let request = dataTask.currentRequest, let url = request.url else { return }
      kept.withLock {
        $0.ofTasks[url] = cachedResponse
        $0.fields.append(request.value(forHTTPHeaderField: "X-Own"))
      }
      stored.fire()
    }

    override func removeCachedResponse(for dataTask: URLSessionDataTask) {
      if let url = dataTask.currentRequest?.url { kept.withLock { $0.ofTasks[url] = nil } }
    }

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
      Issue.record("asked by a request")
      return nil
    }

    override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
      guard let url = request.url else { return }
      kept.withLock {
        $0.ofRequests[url] = cachedResponse
        $0.fields.append(request.value(forHTTPHeaderField: "X-Own"))
      }
      stored.fire()
    }
  }

  /// A cache that never calls the completion.
  private final class Silent: URLCache, @unchecked Sendable {
    let isAsked = Event()

    override func getCachedResponse(
      for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) { isAsked.fire() }
  }

  private func session(_ cache: URLCache) -> URLSession {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.urlCache = cache
    return URLSession(configuration: configuration)
  }

  /// The final response is stored by the task. A redirection is stored by its request, since the task is already
  /// loading the next one.
  @Test func byTask() async throws {
    let server = try TestServer()
    server.route("GET", "/moved") { _ in
      .init(status: 301, fields: ["Location": "/here", "Cache-Control": "max-age=1000"])
    }
    server.route("GET", "/here") { _ in .init(fields: ["Cache-Control": "max-age=1000"], body: .bytes(Array("x".utf8)))
    }
    let cache = Elsewhere()
    let session = session(cache)
    let (moved, here) = (
      try #require(URL(string: server.url("/moved"))), try #require(URL(string: server.url("/here")))
    )
    var request = URLRequest(url: moved)
    request.setValue("mine", forHTTPHeaderField: "X-Own")
    for _ in 0..<2 {
      let (data, response) = try await session.data(for: request)
      #expect(data == Data("x".utf8) && response.url == here)
      try await cache.stored.wait(for: 2)
    }
    #expect(server.requestsReceived == 2)
    // Only the first call of the completion counts.
    #expect(await cache.cachedResponse(for: session.dataTask(with: here))?.data == Data("x".utf8))
    let kept = cache.kept.withLock {
      ($0.ofTasks.keys.sorted { $0.path < $1.path }, Array($0.ofRequests.keys), $0.fields)
    }
    #expect(kept.0 == [here] && kept.1 == [moved])
    #expect(kept.2 == ["mine", "mine"])
    session.invalidateAndCancel()
  }

  @Test func aTaskThatWaitsForSuchACacheCanBeCancelled() async throws {
    let cache = Silent()
    let session = session(cache)
    let ended = Event()
    let task = session.dataTask(with: try #require(URL(string: "http://127.0.0.1:1/"))) { _, _, _ in ended.fire() }
    task.resume()
    try await cache.isAsked.wait()
    task.cancel()
    try await ended.wait()
    #expect(task.state == .completed)
    #expect((task.error as? URLError)?.code == .cancelled)
    session.invalidateAndCancel()
  }
}
