import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

@Suite struct ConcurrentQueueTests {
  /// A delegate that blocks in its first call until `gate` is signalled.
  private final class Delegate: NSObject, URLSessionDataDelegate {
    let events = Mutex<[String]>([])
    let isSending = TestServer.Signal()
    let isOver = TestServer.Signal()
    let gate = DispatchSemaphore(value: 0)

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
      totalBytesExpectedToSend: Int64
    ) {
      isSending.fire()
      gate.wait()
      events.withLock { $0.append("sent") }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      events.withLock { $0.append("data") }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      guard task is URLSessionUploadTask else { return }
      events.withLock { $0.append("end") }
      isOver.fire()
    }
  }

  @Test(.timeLimit(.minutes(1))) func aTasksCallsDoNotOvertakeEachOther() async throws {
    let server = try TestServer()
    let delegate = Delegate()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: OperationQueue())
    var request = URLRequest(url: try #require(URL(string: server.url("/post"))))
    request.httpMethod = "POST"
    session.uploadTask(with: request, from: Data("body".utf8)).resume()
    try await delegate.isSending.wait()
    _ = try await server.waitForRequests(1)
    // These loads make the loop run several ticks, in which the response would have been delivered.
    let url = try #require(URL(string: server.url("/get")))
    for _ in 0..<3 { _ = try await session.data(from: url) }
    #expect(delegate.events.withLock { $0.isEmpty })
    delegate.gate.signal()
    try await delegate.isOver.wait()
    #expect(delegate.events.withLock { $0 } == ["sent", "data", "end"])
    session.invalidateAndCancel()
  }
}
