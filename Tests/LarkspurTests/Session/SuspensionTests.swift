import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Suspending a task stops the transfer without losing bytes.
@Suite(.timeLimit(.minutes(2))) struct SuspensionTests {
  /// More than the buffers between both ends hold: the kernel's 4 MiB for a sender, and less for a receiver that has not
  /// received.
  static let bytes = 16 << 20

  let server: TestServer
  let recorder = SessionRecorder()

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  private func session(delegate: Bool = true) -> URLSession {
    URLSession(configuration: .ephemeral, delegate: delegate ? recorder : nil, delegateQueue: nil)
  }

  /// Suspends and resumes a task from two threads until `stop` is called. Each suspension is matched by a resumption.
  private final class Shaker: Sendable {
    private let isOver = Mutex(false)

    init(_ task: URLSessionTask, rounds: Int = 400) {
      for _ in 0..<2 {
        Thread.detachNewThread { [self] in
          var random = SystemRandomNumberGenerator()
          for _ in 0..<rounds where !isOver.withLock({ $0 }) {
            let depth = Int.random(in: 1...3, using: &random)
            for _ in 0..<depth { task.suspend() }
            for _ in 0..<Int.random(in: 0...50, using: &random) { sched_yield() }
            for _ in 0..<depth { task.resume() }
          }
        }
      }
    }

    func stop() { isOver.withLock { $0 = true } }
  }

  /// The checksum and count of the received bytes.
  private final class Received: Sendable {
    private let state = Mutex((sum: TestServer.Checksum(), count: 0))

    func add(_ data: Data) {
      state.withLock {
        $0.sum.update([UInt8](data))
        $0.count += data.count
      }
    }

    func matches(_ count: Int) -> Bool {
      state.withLock { $0.count == count && $0.sum == TestServer.contentChecksum(count: count) }
    }
  }

  /// An upload arrives whole, however often it is suspended on its way.
  @Test func anUploadArrivesWhole() async throws {
    let count = 4 << 20
    server.route("PUT", "/content") { request in
      let isWhole =
        request.body.count == count && TestServer.Checksum(request.body) == TestServer.contentChecksum(count: count)
      return .text("\(isWhole)")
    }
    var request = URLRequest(url: try url("/content"))
    request.httpMethod = "PUT"
    let content = Data(TestServer.content(count: count))
    let answer: Data? = try await withCheckedThrowingContinuation { continuation in
      let task = session().uploadTask(with: request, from: content) { data, _, error in
        if let error { continuation.resume(throwing: error) } else { continuation.resume(returning: data) }
      }
      task.resume()
      _ = Shaker(task)
    }
    #expect(answer == Data("true".utf8))
  }

  /// A suspended upload sends nothing, even if the server reads.
  @Test func aSuspendedUploadSendsNothing() async throws {
    let mayRead = TestServer.Signal()
    server.enqueue([.wait(mayRead), .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .hang])
    let session = session()
    var request = URLRequest(url: try url("/put"))
    request.httpMethod = "PUT"
    let task = session.uploadTask(with: request, from: Data(count: Self.bytes))
    task.resume()
    await recorder.wait { $0.contains(.sent(task.taskIdentifier)) }
    task.suspend()
    // The loop runs the suspension before this load.
    let get = try url("/get")
    _ = try await session.data(from: get)
    let sent = task.countOfBytesSent
    mayRead.fire()
    for _ in 0..<50 { _ = try await session.data(from: get) }
    #expect(task.countOfBytesSent == sent && sent < Self.bytes)
    task.resume()
    await recorder.wait { $0.contains(.completed(task.taskIdentifier, nil)) }
    #expect(task.countOfBytesSent == Self.bytes && (task.response as? HTTPURLResponse)?.statusCode == 200)
    session.invalidateAndCancel()
  }

  @Test func aDelegateGetsEverythingOnce() async throws {
    let received = Received()
    recorder.onData = { _, data in received.add(data) }
    let session = session()
    let task = session.dataTask(with: try url("/bytes/\(Self.bytes)"))
    task.resume()
    let shaker = Shaker(task)
    await recorder.waitForEnds()
    shaker.stop()
    #expect(recorder.events.last == .completed(task.taskIdentifier, nil))
    #expect(received.matches(Self.bytes))
    #expect(server.requestsReceived == 1)
    session.invalidateAndCancel()
  }

  @Test func aHandlerGetsEverythingOnce() async throws {
    let session = session(delegate: false)
    let url = try url("/bytes/\(Self.bytes)")
    let shaker = Mutex<Shaker?>(nil)
    let data: Data? = await withCheckedContinuation { continuation in
      let task = session.dataTask(with: url) { data, _, _ in continuation.resume(returning: data) }
      task.resume()
      shaker.withLock { $0 = Shaker(task) }
    }
    shaker.withLock { $0?.stop() }
    let received = Received()
    received.add(data ?? Data())
    #expect(received.matches(Self.bytes))
  }

  @Test func aDownloadHasEverythingOnce() async throws {
    let session = session(delegate: false)
    let url = try url("/bytes/\(Self.bytes)")
    let shaker = Mutex<Shaker?>(nil)
    let received = Received()
    await withCheckedContinuation { continuation in
      let task = session.downloadTask(with: url) { file, _, _ in
        if let file, let data = try? Data(contentsOf: file) { received.add(data) }
        continuation.resume()
      }
      task.resume()
      shaker.withLock { $0 = Shaker(task) }
    }
    shaker.withLock { $0?.stop() }
    #expect(received.matches(Self.bytes))
  }

  @Test func aReaderOfBytesGetsEverythingOnce() async throws {
    let count = 4 << 20
    let (bytes, _) = try await session(delegate: false).bytes(from: try url("/bytes/\(count)"))
    let shaker = Shaker(bytes.task)
    var all: [UInt8] = []
    all.reserveCapacity(count)
    for try await byte in bytes { all.append(byte) }
    shaker.stop()
    #expect(TestServer.Checksum(all) == TestServer.contentChecksum(count: count) && all.count == count)
  }

  /// While a task is suspended, the server can write only as much as the buffers between both ends hold.
  @Test func readingStops() async throws {
    let written = Mutex(0)
    let total = 4 * Self.bytes
    server.route("GET", "/large") { _ in
      TestServer.Response(
        body: .stream(count: total) { writer in
          let piece = [UInt8](repeating: 1, count: 1 << 18)
          for _ in 0..<(total / piece.count) {
            try writer.write(piece)
            written.withLock { $0 += piece.count }
          }
        })
    }
    let isSuspended = TestServer.Signal()
    recorder.onResponse = {
      $0.suspend()
      isSuspended.fire()
    }
    let session = session()
    let task = session.dataTask(with: try url("/large"))
    task.resume()
    try await isSuspended.wait()
    // Another task on the same loop, which would have given the first one time to receive everything.
    _ = try await session.data(from: try url("/bytes/\(2 * Self.bytes)"))
    #expect(written.withLock { $0 } < Self.bytes)
    #expect(!recorder.events.contains(.data(task.taskIdentifier)))
    #expect(task.state == .suspended)
    task.cancel()
    await recorder.wait { $0.contains(.completed(task.taskIdentifier, .cancelled)) }
    session.invalidateAndCancel()
  }

  @Test func suspensionsAreCounted() async throws {
    let session = session()
    let task = session.dataTask(with: try url("/bytes/10"))
    task.suspend()
    task.resume()
    #expect(task.state == .suspended)
    task.resume()
    await recorder.waitForEnds()
    #expect(task.state == .completed)
    // Both calls have no effect after completion.
    task.suspend()
    task.resume()
    #expect(task.state == .completed)
    session.invalidateAndCancel()
  }

  @Test func aSuspendedTaskCanBeCancelled() async throws {
    let session = session()
    let task = session.dataTask(with: try url("/bytes/10"))
    task.cancel()
    await recorder.waitForEnds()
    #expect(recorder.events.last == .completed(task.taskIdentifier, .cancelled))
    #expect(server.connectionsAccepted == 0)
    session.invalidateAndCancel()
  }

  /// A suspension on another thread while the task is starting takes effect and loses nothing.
  @Test func suspendedWhileItBegins() async throws {
    let session = session()
    for _ in 0..<200 {
      let task = session.dataTask(with: try url("/bytes/10"))
      let before = recorder.events.count { $0.isEnd }
      await withCheckedContinuation { continuation in
        Thread.detachNewThread {
          task.suspend()
          continuation.resume()
        }
        task.resume()
      }
      // The task completes only after this call, unless it had completed before the suspension.
      task.resume()
      await recorder.waitForEnds(before + 1)
      #expect(task.error == nil)
    }
    session.invalidateAndCancel()
  }
}
