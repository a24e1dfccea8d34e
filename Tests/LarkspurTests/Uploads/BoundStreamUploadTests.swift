import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Tests bodies that the program writes while they are sent.
@Suite(.timeLimit(.minutes(5))) struct BoundStreamUploadTests {
  private typealias Pair = BoundStreamTests.Pair

  private func request(_ server: TestServer, _ path: String = "/post") throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: server.url(path))))
    request.httpMethod = "POST"
    return request
  }

  /// Writes the bytes on a thread of its own and closes the stream.
  private static func feed(_ pair: Pair, _ bytes: [UInt8]) {
    Thread.detachNewThread {
      pair.output.open()
      _ = pair.writeAll(bytes)
      pair.output.close()
    }
  }

  @Test(arguments: [1, 100, 4096, 1 << 20], [true, false]) func aBodyIsSent(size: Int, saysLength: Bool) async throws {
    let server = try TestServer()
    // The route does not echo the body: an echo takes a minute under ThreadSanitizer.
    server.route("POST", "/body") { _ in .text("taken") }
    // 1,000 buffers of bytes, or 500,000 bytes, are enough: each buffer needs a switch of threads.
    let bytes = TestServer.content(count: min(1_000 * size, 500_000))
    let pair = try Pair(size, isOpen: false)
    var request = try request(server, "/body")
    request.httpBodyStream = pair.input
    if saysLength { request.setValue("\(bytes.count)", forHTTPHeaderField: "Content-Length") }
    Self.feed(pair, bytes)
    let session = URLSession(configuration: .ephemeral)
    let (_, response) = try await session.data(for: request)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(server.requests.first?.body == bytes)
    session.finishTasksAndInvalidate()
  }

  /// The response starts before the body is complete, and each side continues when the other's bytes arrive.
  @Test func bothDirectionsAtOnce() async throws {
    let server = try TestServer()
    server.enqueue([
      .expectHead, .expectBytes("3\r\none\r\n"),
      .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nONE\n\r\n"),
      .expectBytes("3\r\ntwo\r\n"), .send("4\r\nTWO\n\r\n"),
      .expectBytes("5\r\nthree\r\n0\r\n\r\n"), .send("6\r\nTHREE\n\r\n0\r\n\r\n"),
    ])
    let pair = try Pair(64, isOpen: false)
    pair.output.open()
    var request = try request(server)
    request.httpBodyStream = pair.input
    let session = URLSession(configuration: .ephemeral)
    #expect(pair.write(Array("one".utf8)) == 3)
    let (bytes, _) = try await session.bytes(for: request)
    var lines: [String] = []
    for try await line in bytes.lines {
      lines.append(line)
      // The buffer is empty, so neither write blocks.
      switch line {
      case "ONE": #expect(pair.write(Array("two".utf8)) == 3)
      case "TWO":
        #expect(pair.write(Array("three".utf8)) == 5)
        pair.output.close()
      default: break
      }
    }
    #expect(lines == ["ONE", "TWO", "THREE"] && server.failures == [])
    session.finishTasksAndInvalidate()
  }

  @Test(arguments: [307, 308]) func aRedirectionAsksForAnotherPair(status: Int) async throws {
    let server = try TestServer()
    let bytes = TestServer.content(count: 30_000)
    let recorder = UploadRecorder {
      guard let pair = try? Pair(512, isOpen: false) else { return nil }
      Self.feed(pair, bytes)
      return pair.input
    }
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    session.uploadTask(
      withStreamedRequest: try request(server, "/redirect-to?status=\(status)&url=/anything/end")
    ).resume()
    let requests = try await server.waitForRequests(2)
    #expect(requests.map(\.body) == [bytes, bytes])
    #expect(recorder.asked.withLock { $0 } == 2)
    session.finishTasksAndInvalidate()
  }

  enum Blocked: CaseIterable { case reader, writer }

  private final class FailureObserver: NSObject, StreamDelegate {
    var hasFailed = false
    func stream(_ stream: Stream, handle event: Stream.Event) { if event == .errorOccurred { hasFailed = true } }
  }

  /// Cancelling a task closes the stream, so a program's thread that waits for either side of the pair continues with
  /// an error.
  @Test(arguments: Blocked.allCases) func aCancelledTaskEndsTheWaiting(of side: Blocked) async throws {
    let server = try TestServer()
    let (arrived, hold) = (TestServer.Signal(), TestServer.Signal())
    defer { hold.fire() }
    // The reader's one byte has come when the task is cancelled.
    let bytes: [TestServer.Step] = side == .reader ? [.expectBytes("1\r\n\u{1}\r\n")] : []
    server.enqueue(TestServer.Script([.expectHead] + bytes + [.fire(arrived), .wait(hold)]))
    let pair = try Pair(16, isOpen: false)
    pair.output.open()
    var request = try request(server)
    request.httpBodyStream = pair.input
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let task = session.dataTask(with: request)
    task.resume()
    async let end = BoundStreamTests.onAThread { () -> Int32? in
      switch side {
      // Writes more than the sockets and the buffer hold.
      case .writer: while pair.writeAll([UInt8](repeating: 1, count: 1 << 16)) {}
      // The session waits for a second byte.
      case .reader:
        #expect(pair.writeAll([1]))
        let ending = FailureObserver()
        pair.output.delegate = ending
        pair.output.schedule(in: .current, forMode: .default)
        while !ending.hasFailed, RunLoop.current.run(mode: .default, before: .distantFuture) {}
      }
      return (pair.output.streamError as NSError?).map { Int32($0.code) }
    }
    try await arrived.wait()
    task.cancel()
    await recorder.waitForEnds()
    #expect(recorder.events.last == .completed(task.taskIdentifier, .cancelled))
    #expect(await end == EPIPE)
    session.finishTasksAndInvalidate()
  }

  /// A body is over with the last byte of its length (RFC 9112 6.2), and the stream need not end. The session closes its
  /// side then.
  @Test(arguments: [5_000, 100_000, 0]) func aStreamThatStaysOpen(count: Int) async throws {
    let server = try TestServer()
    server.route("POST", "/body") { _ in .text("taken") }
    let bytes = TestServer.content(count: count)
    let pair = try Pair(8_000, isOpen: false)
    pair.output.open()
    var request = try request(server, "/body")
    request.httpBodyStream = pair.input
    request.setValue("\(count)", forHTTPHeaderField: "Content-Length")
    async let isWritten = BoundStreamTests.onAThread { pair.writeAll(bytes) }
    let session = URLSession(configuration: .ephemeral)
    let (data, _) = try await session.data(for: request)
    #expect(data == Data("taken".utf8) && server.requests.map(\.body) == [bytes])
    #expect(await isWritten)
    // A write fails once the session has closed its side.
    await BoundStreamTests.onAThread { while pair.writeAll([1]) {} }
    session.finishTasksAndInvalidate()
  }

  /// If the program closes its side before it has written the announced length, the task fails.
  @Test func aWriterThatCloses() async throws {
    let server = try TestServer()
    let pair = try Pair(64, isOpen: false)
    pair.output.open()
    var request = try request(server)
    request.httpBodyStream = pair.input
    request.setValue("100", forHTTPHeaderField: "Content-Length")
    #expect(pair.write([1, 2, 3]) == 3)
    pair.output.close()
    let session = URLSession(configuration: .ephemeral)
    let error = await #expect(throws: URLError.self) { _ = try await session.data(for: request) }
    #expect(error?.code == .requestBodyStreamExhausted)
    session.finishTasksAndInvalidate()
  }
}
