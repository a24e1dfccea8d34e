import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Records the calls of a stream's delegate.
final class StreamTaskDelegate: NSObject, URLSessionStreamDelegate, URLSessionDataDelegate, @unchecked Sendable {
  private struct State {
    var events: [String] = []
    var end: CheckedContinuation<Void, Never>?
    var isOver = false
    var streams: (InputStream, OutputStream)?
    var streamTask: URLSessionStreamTask?
  }

  private let state = Mutex(UncheckedState(State()))
  let becameStream = Event()

  private struct UncheckedState: @unchecked Sendable {
    var value: State
    init(_ value: State) { self.value = value }
  }

  var events: [String] { state.withLock { $0.value.events } }
  var streamTask: URLSessionStreamTask? { state.withLock { $0.value.streamTask } }

  private func note(_ event: String) { state.withLock { $0.value.events.append(event) } }

  /// Runs when the task has become two streams.
  var onStreams: @Sendable (InputStream, OutputStream) -> Void = { _, _ in }
  var disposition = URLSession.ResponseDisposition.allow

  func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) { note("read closed") }
  func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) { note("write closed") }
  func urlSession(
    _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream,
    outputStream: OutputStream
  ) {
    note("streams")
    onStreams(inputStream, outputStream)
  }

  func urlSession(
    _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
    completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
  ) {
    note("response")
    completionHandler(disposition)
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
    note("became a stream")
    state.withLock { $0.value.streamTask = streamTask }
    becameStream.fire()
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    let end = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.value.events.append((error as? URLError).map { "error \($0.code.rawValue)" } ?? "complete")
      state.value.isOver = true
      return state.value.end.take()
    }
    end?.resume()
  }

  /// Waits for the task's end.
  func wait() async {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if !state.value.isOver { state.value.end = continuation }
        return state.value.isOver
      }
      if isOver { continuation.resume() }
    }
  }
}

@Suite struct StreamTaskTests {
  private let delegate = StreamTaskDelegate()
  private let server: TestServer
  private let session: URLSession

  init() throws {
    server = try TestServer()
    session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
  }

  private func task() -> URLSessionStreamTask { session.streamTask(withHostName: "127.0.0.1", port: server.port) }

  private func text(_ result: (Data?, Bool)) -> String { String(decoding: result.0 ?? Data(), as: UTF8.self) }

  @Test func linesInBothDirections() async throws {
    server.enqueue([.expectBytes("hello\n"), .send("world\nand more"), .expectBytes("bye\n"), .close])
    let task = task()
    #expect(task.originalRequest == nil)
    // Operations wait for the connection.
    async let written: Void = task.write(Data("hello\n".utf8), timeout: 10)
    task.resume()
    try await written
    #expect(text(try await task.readData(ofMinLength: 6, maxLength: 6, timeout: 10)) == "world\n")
    #expect(text(try await task.readData(ofMinLength: 8, maxLength: 100, timeout: 0)) == "and more")
    try await task.write(Data("bye\n".utf8), timeout: 10)
    let last = try await task.readData(ofMinLength: 1, maxLength: 10, timeout: 10)
    #expect(last.0 == Data() && last.1)
    task.closeWrite()
    await delegate.wait()
    #expect(delegate.events == ["read closed", "write closed", "complete"])
    #expect(task.state == .completed && task.error == nil)
    #expect(server.failures.isEmpty)
    // Calls that come too late fail.
    await #expect(throws: (any Error).self) { try await task.write(Data([1]), timeout: 0) }
    await #expect(throws: (any Error).self) { try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) }
  }

  /// The end of the stream comes with the last bytes if they are too few.
  @Test func theEndComesWithFewerBytes() async throws {
    server.enqueue([.send("abc"), .close])
    let task = task()
    task.resume()
    let (data, isAtEnd) = try await task.readData(ofMinLength: 10, maxLength: 20, timeout: 10)
    #expect(data == Data("abc".utf8) && isAtEnd)
    task.cancel()
  }

  @Test func completionHandlersComeInOrder() async throws {
    server.enqueue([.expectBytes("abcdef"), .send("123456"), .expectClose])
    let task = task()
    let log = Mutex<[String]>([])
    for part in ["ab", "cd", "ef"] {
      task.write(Data(part.utf8), timeout: 10) { error in log.withLock { $0.append("wrote \(part) \(error == nil)") } }
    }
    await withCheckedContinuation { continuation in
      for index in 0..<3 {
        task.readData(ofMinLength: 2, maxLength: 2, timeout: 10) { data, _, _ in
          log.withLock { $0.append("read \(String(decoding: data ?? Data(), as: UTF8.self))") }
          if index == 2 { continuation.resume() }
        }
      }
      task.resume()
    }
    #expect(
      log.withLock { $0 }.filter { $0.hasPrefix("wrote") } == ["wrote ab true", "wrote cd true", "wrote ef true"])
    #expect(log.withLock { $0 }.filter { $0.hasPrefix("read") } == ["read 12", "read 34", "read 56"])
    task.closeRead()
    task.closeWrite()
    await delegate.wait()
    #expect(Set(delegate.events) == ["read closed", "write closed", "complete"])
  }

  /// A large write waits for the server, and comes whole; a slow reader holds the server up.
  @Test func muchInBothDirections() async throws {
    let count = 8 << 20
    let start = TestServer.Signal()
    server.enqueue([.wait(start), .expectBytes(count: count), .sendContent(0..<count), .close])
    let task = task()
    task.resume()
    async let written: Void = task.write(Data(count: count), timeout: 0)
    start.fire()
    try await written
    var received = 0
    var isAtEnd = false
    while !isAtEnd {
      let (data, end) = try await task.readData(ofMinLength: 1, maxLength: 100_000, timeout: 10)
      received += data?.count ?? 0
      isAtEnd = end
    }
    #expect(received == count)
    #expect(server.failures.isEmpty)
    task.cancel()
  }

  /// A read whose time is up loses no byte.
  @Test func aReadTimesOut() async throws {
    let more = TestServer.Signal()
    server.enqueue([.send("ab"), .wait(more), .send("cd"), .expectClose])
    let task = task()
    task.resume()
    let error = await #expect(throws: URLError.self) {
      _ = try await task.readData(ofMinLength: 4, maxLength: 4, timeout: 0.05)
    }
    #expect(error?.code == .timedOut)
    more.fire()
    #expect(text(try await task.readData(ofMinLength: 4, maxLength: 4, timeout: 10)) == "abcd")
    task.cancel()
  }

  /// Cancelling the Swift task that waits ends its wait alone.
  @Test func aWaitIsCancelled() async throws {
    let more = TestServer.Signal()
    server.enqueue([.send("ab"), .wait(more), .send("cd"), .expectClose])
    let task = task()
    task.resume()
    #expect(text(try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0)) == "a")
    let waiting = Task { try await task.readData(ofMinLength: 3, maxLength: 3, timeout: 0) }
    waiting.cancel()
    await #expect(throws: CancellationError.self) { _ = try await waiting.value }
    more.fire()
    #expect(text(try await task.readData(ofMinLength: 3, maxLength: 3, timeout: 10)) == "bcd")
    task.cancel()
  }

  @Test func theTaskIsCancelled() async throws {
    server.enqueue([.hang])
    let task = task()
    task.resume()
    try await task.write(Data([1]), timeout: 0)
    let waiting = Task { try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) }
    task.cancel()
    await #expect(throws: URLError.self) { _ = try await waiting.value }
    await delegate.wait()
    #expect(delegate.events.last == "error -999")
  }

  @Test func noServerListens() async throws {
    let task = session.streamTask(withHostName: "127.0.0.1", port: 1)
    task.resume()
    await #expect(throws: URLError.self) { _ = try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) }
    await delegate.wait()
    #expect(delegate.events == ["error -1004"])
  }

  /// The time limit of the request counts during the TLS handshake.
  @Test func theHandshakeIsNotAnswered() async throws {
    server.enqueue([.hang])
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = 0.1
    let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    let task = session.streamTask(withHostName: "127.0.0.1", port: server.port)
    task.startSecureConnection()
    task.resume()
    let error = await #expect(throws: URLError.self) { try await task.write(Data([1]), timeout: 0) }
    #expect(error?.code == .timedOut)
    await delegate.wait()
    #expect(delegate.events == ["error -1001"])
  }

  @Test(arguments: [0, -1, 65_536]) func aPortThatIsNone(port: Int) async throws {
    let task = session.streamTask(withHostName: "127.0.0.1", port: port)
    task.resume()
    await delegate.wait()
    #expect(delegate.events == ["error -1004"])
  }

  @Test func aReset() async throws {
    let signal = TestServer.Signal()
    server.enqueue([.wait(signal), .reset])
    let task = task()
    task.resume()
    let waiting = Task { try await task.readData(ofMinLength: 1, maxLength: 1, timeout: 0) }
    try await task.write(Data([1]), timeout: 0)
    signal.fire()
    let error = await #expect(throws: URLError.self) { _ = try await waiting.value }
    #expect(error?.code == .networkConnectionLost)
    await delegate.wait()
    #expect(delegate.events.last == "error -1005")
  }

  /// The connection becomes two streams of Foundation's, and the task is complete.
  @Test func theStreamsAreCaptured() async throws {
    server.enqueue([.expectBytes("ab"), .send("12345"), .expectBytes("cdef"), .send("678"), .close])
    let task = task()
    let result = await withCheckedContinuation { (continuation: CheckedContinuation<String, Never>) in
      delegate.onStreams = { input, output in
        let streams = UncheckedStreams(input: input, output: output)
        // Reading and writing block, so a thread of its own does it.
        Thread.detachNewThread {
          streams.input.open()
          streams.output.open()
          var text = ""
          streams.write("cd")
          text += streams.read(3)
          streams.write("ef")
          while true {
            let part = streams.read(2)
            if part.isEmpty { break }
            text += part
          }
          let isAtEnd = streams.input.streamStatus == .atEnd
          streams.output.close()
          streams.input.close()
          continuation.resume(returning: text + (isAtEnd ? " end" : ""))
        }
      }
      task.write(Data("ab".utf8), timeout: 0) { _ in }
      task.readData(ofMinLength: 2, maxLength: 2, timeout: 0) { _, _, _ in }
      task.captureStreams()
      task.resume()
    }
    #expect(result == "345678 end")
    await delegate.wait()
    #expect(delegate.events == ["streams", "complete"])
    #expect(server.failures.isEmpty)
  }

  /// A response becomes a stream: first what has been received with the head, then what follows.
  @Test func aResponseBecomesAStream() async throws {
    let signal = TestServer.Signal()
    server.route(
      "GET", "/stream",
      script: [
        .send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nfirst "), .wait(signal), .send("second"),
        .expectBytes("third"), .close,
      ])
    delegate.disposition = .becomeStream
    let task = session.dataTask(with: try #require(URL(string: server.url("/stream"))))
    task.resume()
    try await delegate.becameStream.wait()
    let stream = try #require(delegate.streamTask)
    #expect(text(try await stream.readData(ofMinLength: 6, maxLength: 6, timeout: 0)) == "first ")
    signal.fire()
    #expect(text(try await stream.readData(ofMinLength: 6, maxLength: 100, timeout: 0)) == "second")
    try await stream.write(Data("third".utf8), timeout: 0)
    #expect(try await stream.readData(ofMinLength: 1, maxLength: 1, timeout: 0).1)
    stream.closeWrite()
    await delegate.wait()
    #expect(delegate.events == ["response", "became a stream", "read closed", "write closed", "complete"])
    #expect(task.state == .completed)
    #expect((stream.response as? HTTPURLResponse)?.statusCode == 200)
    #expect(server.failures.isEmpty)
  }
}

/// Foundation's streams for one thread, with text.
private struct UncheckedStreams: @unchecked Sendable {
  let input: InputStream
  let output: OutputStream

  func write(_ text: String) {
    let bytes = Array(text.utf8)
    _ = output.write(bytes, maxLength: bytes.count)
  }

  func read(_ count: Int) -> String {
    var bytes: [UInt8] = []
    while bytes.count < count {
      var buffer = [UInt8](repeating: 0, count: count - bytes.count)
      let length = input.read(&buffer, maxLength: buffer.count)
      guard length > 0 else { break }
      bytes += buffer[..<length]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
