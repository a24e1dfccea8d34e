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
}
