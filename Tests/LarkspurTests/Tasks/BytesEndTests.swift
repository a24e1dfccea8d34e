import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

@Suite struct BytesEndTests {
  /// Says when its session is over.
  private final class Delegate: NSObject, URLSessionDelegate {
    let isOver = TestServer.Signal()

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { isOver.fire() }
  }

  @Test(.timeLimit(.minutes(1))) func aReaderThatTakesNothingDoesNotHoldUpACancelledTask() async throws {
    let server = try TestServer()
    let delegate = Delegate()
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let url = try #require(URL(string: server.url("/bytes/1000000")))
    let (bytes, _) = try await session.bytes(from: url)
    session.invalidateAndCancel()
    try await delegate.isOver.wait()
    let error = await #expect(throws: URLError.self) { for try await _ in bytes {} }
    #expect(error?.code == .cancelled)
    #expect(bytes.task.state == .completed)
  }

  /// Each of two readers gets some of the pieces, and both hear of the end.
  @Test(.timeLimit(.minutes(1)), arguments: [true, false]) func twoMayRead(isCancelled: Bool) async throws {
    let server = try TestServer()
    let gate = TestServer.Signal()
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n12"), .wait(gate), .send("34"), .close,
    ])
    let session = URLSession(configuration: .ephemeral)
    let (bytes, _) = try await session.bytes(from: try #require(URL(string: server.url("/"))))
    let hasRead = TestServer.Signal()
    let readers = (0..<2).map { number in
      Task {
        var count = 0
        do {
          for try await _ in bytes {
            count += 1
            if count == 2 { hasRead.fire() }
          }
        } catch { #expect(isCancelled && (error as? URLError)?.code == .cancelled) }
        return count
      }
    }
    try await hasRead.wait()
    // By now both wait, or are about to.
    if isCancelled { bytes.task.cancel() } else { gate.fire() }
    let (first, second) = (await readers[0].value, await readers[1].value)
    #expect(first + second == (isCancelled ? 2 : 4))
    gate.fire()
  }
}
