import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests the delegate of one async call: the calls that it gets besides the decisions, all of them before the async
/// call returns.
@Suite(.timeLimit(.minutes(2))) struct PerCallDelegateTests {
  let server: TestServer
  let session = URLSession(configuration: .ephemeral)

  init() throws { server = try TestServer() }

  private final class RecordingDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate {
    let heard = Mutex<[String]>([])
    let data = Mutex(Data())
    let written = Mutex<[Int64]>([])

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
      heard.withLock { $0.append("response \((response as? HTTPURLResponse)?.statusCode ?? 0)") }
      // The session ignores this method for an async call, so the disposition has no effect.
      completionHandler(.cancel)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      self.data.withLock { $0 += data }
    }

    func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
      totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
      written.withLock { $0 += [bytesWritten, totalBytesWritten, totalBytesExpectedToWrite] }
    }

    func urlSession(
      _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) { heard.withLock { $0.append("file") } }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
      heard.withLock { $0.append("metrics") }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      heard.withLock { $0.append("end") }
    }
  }

  private func request(_ path: String) throws -> URLRequest {
    URLRequest(url: try #require(URL(string: server.url(path))))
  }

  @Test(arguments: [0, 5, 300_000]) func data(bytes: Int) async throws {
    let recorder = RecordingDelegate()
    let (data, _) = try await session.data(for: request("/bytes/\(bytes)"), delegate: recorder)
    #expect(data.count == bytes && recorder.data.withLock { $0 } == data)
    #expect(recorder.heard.withLock { $0 } == ["response 200", "metrics"])
  }

  @Test func upload() async throws {
    let recorder = RecordingDelegate()
    server.route("POST", "/") { .text($0.bodyText) }
    var request = try request("/")
    request.httpMethod = "POST"
    let (data, _) = try await session.upload(for: request, from: Data("abc".utf8), delegate: recorder)
    #expect(data == Data("abc".utf8) && recorder.data.withLock { $0 } == data)
    #expect(recorder.heard.withLock { $0 } == ["response 200", "metrics"])
  }

  @Test func download() async throws {
    let recorder = RecordingDelegate()
    let (file, _) = try await session.download(for: request("/bytes/5"), delegate: recorder)
    #expect(try Data(contentsOf: file).count == 5)
    #expect(recorder.written.withLock { $0 } == [5, 5, 5])
    #expect(recorder.heard.withLock { $0 } == ["metrics"])
    try FileManager.default.removeItem(at: file)
  }

  /// The session's delegate does not get the calls about content of an async call, only the metrics.
  @Test func theSessionsDelegate() async throws {
    let recorder = RecordingDelegate()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    #expect(try await session.data(for: request("/bytes/5")).0.count == 5)
    #expect(recorder.heard.withLock { $0 } == ["metrics"] && recorder.data.withLock { $0.isEmpty })
    session.invalidateAndCancel()
  }

  /// Updates for a slow delegate are combined into one, so that the network does not wait for the delegate.
  @Test func updatesAreCoalesced() {
    let updates = CoalescedUpdates<ReceivedBytes>()
    func add(_ text: String, _ total: Int64) -> Bool {
      updates.add(ReceivedBytes(data: Data(text.utf8), count: Int64(text.utf8.count), total: total))
    }
    #expect(add("ab", 2))
    #expect(!add("c", 3))
    let piece = updates.take()
    #expect(piece?.data == Data("abc".utf8) && piece?.count == 3 && piece?.total == 3)
    #expect(!add("d", 4))
    updates.dropped()
    #expect(add("e", 5))
    #expect(updates.take()?.total == 5)
    #expect(updates.take() == nil)
    #expect(add("f", 6))
  }

  /// The delegate of a cancelled call gets no further content, since the object that it works for may be gone.
  @Test func nothingComesBehindTheCancellation() async throws {
    let (isThere, mayGoOn, hasSent) = (TestServer.Signal(), TestServer.Signal(), TestServer.Signal())
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), .fire(isThere), .wait(mayGoOn),
      .send("def"), .fire(hasSent), .hang,
    ])
    let recorder = RecordingDelegate()
    let queue = session.delegateQueue
    let (session, request) = (session, try request("/"))
    let load = Task { try await session.data(for: request, delegate: recorder) }
    try await isThere.wait()
    await Wait.until("three bytes are delivered") { recorder.data.withLock { $0.count } == 3 }
    let task = try #require(await session.allTasks.first)
    queue.isSuspended = true
    mayGoOn.fire()
    try await hasSent.wait()
    await Wait.until("six bytes are received") { task.countOfBytesReceived == 6 }
    load.cancel()
    await Wait.until("the task is cancelled") { task.state != .running }
    queue.isSuspended = false
    _ = await load.result
    #expect(recorder.data.withLock { $0 } == Data("abc".utf8))
  }

  private final class Silent: NSObject, URLSessionDataDelegate {
    let isAsked = TestServer.Signal()

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) { isAsked.fire() }
  }

  /// The request's timeout does not run while the delegate decides about a redirection, and `response` is the
  /// redirection when it would be over.
  @Test func anUnansweredRedirection() async throws {
    server.route("GET", "/moved") { _ in TestServer.Response(status: 302, fields: ["Location": "/there"]) }
    let silent = Silent()
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 3
    let session = URLSession(configuration: configuration, delegate: silent, delegateQueue: nil)
    let task = session.dataTask(with: try request("/moved"))
    task.resume()
    try await silent.isAsked.wait()
    await Wait.until("the response is there") { task.response != nil }
    #expect((task.response as? HTTPURLResponse)?.statusCode == 302 && task.state == .running && task.error == nil)
    session.invalidateAndCancel()
  }
}
