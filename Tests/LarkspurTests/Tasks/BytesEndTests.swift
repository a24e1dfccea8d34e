import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

@Suite struct BytesEndTests {
  /// A delegate that signals the end of its session.
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

  /// Many small chunks do not cause as many delegate calls: chunks received together are delivered together.
  @Test(.timeLimit(.minutes(1))) func smallChunks() async throws {
    let server = try TestServer()
    let chunks = String(repeating: "1\r\na\r\n", count: 10_000)
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server.defaultScript = [.expectRequest, .send(head + chunks + "0\r\n\r\n"), .close]
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let url = try #require(URL(string: server.url("/")))
    let received = Atomic(0)
    recorder.onData = { _, data in received.add(data.count, ordering: .relaxed) }
    session.dataTask(with: url).resume()
    await recorder.waitForEnds()
    #expect(received.load(ordering: .relaxed) == 10_000)
    // The kernel decides in how many pieces the 60,000 bytes arrive.
    #expect(recorder.events.count { if case .data = $0 { true } else { false } } < 1_000)
    var count = 0
    for try await _ in try await session.bytes(from: url).0 { count += 1 }
    #expect(count == 10_000)
    session.downloadTask(with: url).resume()
    await recorder.waitForEnds(2)
    #expect(recorder.events.count { if case .wrote = $0 { true } else { false } } < 1_000)
    // Content received before a framing error is delivered.
    server.defaultScript = [.expectRequest, .send(head + "1\r\na\r\n1\r\nb\r\nnonsense\r\n"), .close]
    received.store(0, ordering: .relaxed)
    session.dataTask(with: url).resume()
    await recorder.waitForEnds(3)
    #expect(received.load(ordering: .relaxed) == 2)
    session.invalidateAndCancel()
  }

  /// Content decoded before a coding error is delivered.
  @Test(.timeLimit(.minutes(1))) func contentInFrontOfGarbage() async throws {
    let server = try TestServer()
    // A stored block of two bytes, and a block of the reserved type (RFC 1951 3.2.3).
    let coded: [UInt8] = [0x78, 0x01, 0, 2, 0, 0xfd, 0xff, UInt8(ascii: "o"), UInt8(ascii: "k"), 0x07, 0xff]
    let head = "HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Length: \(coded.count)\r\n\r\n"
    server.defaultScript = [.expectRequest, .send(Array(head.utf8) + coded), .close]
    let recorder = SessionRecorder()
    let received = Mutex(Data())
    recorder.onData = { _, data in received.withLock { $0 += data } }
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/"))))
    task.resume()
    await recorder.waitForEnds()
    #expect(received.withLock { $0 } == Data("ok".utf8))
    #expect(recorder.events.last == .completed(task.taskIdentifier, .cannotDecodeRawData))
    session.invalidateAndCancel()
  }

  /// Two readers of one sequence share its bytes, and both reach the end or get the error.
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
    // Both readers are now waiting, or about to wait.
    if isCancelled { bytes.task.cancel() } else { gate.fire() }
    let (first, second) = (await readers[0].value, await readers[1].value)
    #expect(first + second == (isCancelled ? 2 : 4))
    gate.fire()
  }
}
