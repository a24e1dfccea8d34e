import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests the sending of bodies from data, files and streams.
@Suite struct UploadTests {
  let server: TestServer
  let session = URLSession(configuration: .ephemeral)
  let directory: TemporaryDirectory

  init() throws {
    server = try TestServer()
    directory = try TemporaryDirectory()
  }

  private func request(_ path: String, method: String = "POST") throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: server.url(path))))
    request.httpMethod = method
    return request
  }

  private func file(_ bytes: [UInt8]) throws -> URL {
    let url = directory.url.appending(path: UUID().uuidString)
    try Data(bytes).write(to: url)
    return url
  }

  // MARK: - From a file

  /// A file of `/proc` has size 0, since the kernel makes its content while it is read. Its whole content is sent.
  @Test func aFileThatSaysThatItIsEmptyIsSent() async throws {
    let path = "/proc/version"
    let content = try Data(contentsOf: URL(fileURLWithPath: path))
    #expect(!content.isEmpty)
    let recorder = UploadRecorder()
    _ = try await session.upload(for: request("/post"), fromFile: URL(fileURLWithPath: path), delegate: recorder)
    let seen = try #require(server.requests.last)
    #expect(seen.bodyCount == content.count)
    #expect(seen.fields["transfer-encoding"] == "chunked")
  }

  @Test func aFileIsSentAsItIs() async throws {
    let bytes = TestServer.content(count: 300_000)
    let recorder = UploadRecorder()
    let (_, response) = try await session.upload(
      for: request("/post"), fromFile: file(bytes), delegate: recorder)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    let seen = try #require(server.requests.last)
    #expect(seen.bodyCount == bytes.count)
    #expect(seen.bodyChecksum == TestServer.contentChecksum(count: bytes.count))
    #expect(seen.fields["content-length"] == "300000")
    let sent = recorder.sent.withLock { $0 }
    #expect(sent.last?.total == 300_000)
    #expect(sent.reduce(0) { $0 + $1.bytes } == 300_000)
    #expect(sent.allSatisfy { $0.expected == 300_000 })
    #expect(sent.map(\.total) == sent.map(\.total).sorted())
  }

  /// After a challenge or a redirection the count of sent bytes starts anew.
  @Test(arguments: ["/hidden", "/redirect-to?status=307&url=/post"], [5_000, 300_000])
  func aBodyThatIsSentAgain(path: String, count: Int) async throws {
    server.route("POST", "/hidden") { request in
      guard request.fields["Authorization"] == nil else { return .text("in") }
      return TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=a"])
    }
    let url = server.url(path).replacing("http://", with: "http://user:password@")
    var request = URLRequest(url: try #require(URL(string: url)))
    request.httpMethod = "POST"
    let recorder = UploadRecorder()
    let (_, response) = try await session.upload(
      for: request, from: Data(TestServer.content(count: count)), delegate: recorder)
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    let sent = recorder.sent.withLock { $0 }
    #expect(sent.reduce(0) { $0 + $1.bytes } == Int64(2 * count))
    #expect(sent.count { $0.total == count } == 2 && sent.last?.total == Int64(count))
    #expect(sent.allSatisfy { $0.expected == count && $0.bytes > 0 })
  }

  /// A POST body without a content type is sent with the type of forms, by every kind of task.
  @Test func theDefaultType() async throws {
    let form = "application/x-www-form-urlencoded"
    _ = try await session.upload(for: request("/post"), fromFile: file([1]))
    #expect(server.requests.last?.fields["content-type"] == form)
    _ = try await session.upload(for: request("/post"), from: Data([1]))
    #expect(server.requests.last?.fields["content-type"] == form)
    _ = try await session.upload(for: request("/post"), from: Data())
    #expect(server.requests.last?.fields["content-type"] == nil)
    _ = try await session.upload(for: request("/put", method: "PUT"), from: Data([1]))
    #expect(server.requests.last?.fields["content-type"] == nil)
    var named = try request("/post")
    named.setValue("text/plain", forHTTPHeaderField: "content-type")
    _ = try await session.upload(for: named, from: Data([1]))
    #expect(server.requests.last?.fields["content-type"] == "text/plain")
  }

  /// `countOfBytesExpectedToSend` is known before a task starts, as Apple documents.
  @Test func whatIsExpectedToBeSent() throws {
    var request = try request("/post")
    #expect(session.dataTask(with: request).countOfBytesExpectedToSend == 0)
    #expect(session.uploadTask(with: request, from: Data([1, 2])).countOfBytesExpectedToSend == 2)
    #expect(try session.uploadTask(with: request, fromFile: file([1, 2, 3])).countOfBytesExpectedToSend == 3)
    #expect(session.uploadTask(withStreamedRequest: request).countOfBytesExpectedToSend == -1)
    request.setValue("7", forHTTPHeaderField: "content-length")
    #expect(session.uploadTask(withStreamedRequest: request).countOfBytesExpectedToSend == 7)
    request.httpBodyStream = InputStream(data: Data())
    #expect(session.dataTask(with: request).countOfBytesExpectedToSend == 7)
    request.setValue("-7", forHTTPHeaderField: "content-length")
    #expect(session.dataTask(with: request).countOfBytesExpectedToSend == -1)
  }

  /// The progress counts the bytes of the body, as Apple's does. The bytes that the chunked coding adds are in the
  /// metrics only.
  @Test func theCodingOfAStreamIsNotCounted() async throws {
    let count = 100_000
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let observer = UploadRecorder()
    var request = try request("/post")
    request.httpBodyStream = InputStream(data: Data(TestServer.content(count: count)))
    let task = session.dataTask(with: request)
    task.delegate = observer
    task.resume()
    await recorder.waitForEnds()
    #expect(server.requests.last?.bodyCount == count && server.requests.last?.fields["content-length"] == nil)
    #expect(task.countOfBytesSent == Int64(count) && task.countOfBytesExpectedToSend == NSURLSessionTransferSizeUnknown)
    let sent = observer.sent.withLock { $0 }
    #expect(sent.last?.total == Int64(count) && sent.reduce(0) { $0 + $1.bytes } == Int64(count))
    #expect(sent.allSatisfy { $0.bytes > 0 && $0.expected == NSURLSessionTransferSizeUnknown })
    let one = try #require(recorder.metrics.first?.transactionMetrics.first)
    #expect(one.countOfRequestBodyBytesBeforeEncoding == Int64(count) && one.countOfRequestBodyBytesSent > Int64(count))
    session.invalidateAndCancel()
  }

  @Test func anEmptyFileIsAnEmptyBody() async throws {
    _ = try await session.upload(for: request("/post"), fromFile: file([]))
    #expect(server.requests.last?.bodyCount == 0)
    #expect(server.requests.last?.fields["content-length"] == "0")
  }

  @Test func aFileThatIsNoneFails() async throws {
    let request = try request("/post")
    let missing = directory.url.appending(path: "missing")
    let none = await #expect(throws: URLError.self) { try await session.upload(for: request, fromFile: missing) }
    #expect(none?.code == .fileDoesNotExist)
    let directory = directory.url
    let error = await #expect(throws: URLError.self) { try await session.upload(for: request, fromFile: directory) }
    #expect(error?.code == .fileIsDirectory)
    #expect(server.requestsReceived == 0)
  }

  @Test func aPathThroughAFileLeadsNowhere() async throws {
    let request = try request("/post")
    let url = try file([1]).appending(path: "within")
    let error = await #expect(throws: URLError.self) { try await session.upload(for: request, fromFile: url) }
    #expect(error?.code == .fileDoesNotExist)
  }

  @Test(arguments: [true, false])
  func aFileThatChangesWhileItIsSentFails(grows: Bool) async throws {
    let count = 16 << 20
    let url = try file([UInt8](repeating: 7, count: count))
    let changed = TestServer.Signal()
    server.enqueue([.expectHead, .wait(changed), .expectBytes(count: 12 << 20), .hang])
    let request = try request("/post")
    let sending = Task { try await session.upload(for: request, fromFile: url) }
    try await server.waitForRequests(1)
    let handle = try FileHandle(forWritingTo: url)
    if grows {
      try handle.seekToEnd()
      try handle.write(contentsOf: Data([1]))
    } else {
      try handle.truncate(atOffset: UInt64(count - 1))
    }
    try handle.close()
    changed.fire()
    let error = await #expect(throws: URLError.self) { try await sending.value }
    #expect(error?.code == .cannotOpenFile)
  }

  // MARK: - From a stream

  @Test func aHesitantStreamIsSentWhole() async throws {
    let bytes = TestServer.content(count: 2_000)
    var request = try request("/post")
    request.httpBodyStream = HesitantStream(bytes)
    _ = try await session.data(for: request)
    let seen = try #require(server.requests.last)
    #expect(seen.body == bytes)
    #expect(seen.fields["transfer-encoding"] == "chunked")
  }

  @Test func aStreamOfKnownLengthIsNotChunked() async throws {
    let bytes = TestServer.content(count: 2_000)
    var request = try request("/post")
    request.httpBodyStream = InputStream(data: Data(bytes))
    request.setValue("2000", forHTTPHeaderField: "Content-Length")
    _ = try await session.data(for: request)
    #expect(server.requests.last?.body == bytes)
    #expect(server.requests.last?.fields["content-length"] == "2000")
  }

  @Test(arguments: ["1999", "2001"])
  func aStreamOfAnotherLengthFails(length: String) async throws {
    var request = try request("/post")
    request.httpBodyStream = InputStream(data: Data(TestServer.content(count: 2_000)))
    request.setValue(length, forHTTPHeaderField: "Content-Length")
    let ready = request
    let error = await #expect(throws: URLError.self) { try await session.data(for: ready) }
    #expect(error?.code == .requestBodyStreamExhausted)
  }

  @Test func aStreamThatFailsFailsTheTask() async throws {
    var request = try request("/post")
    request.httpBodyStream = HesitantStream(TestServer.content(count: 500), fails: true)
    let ready = request
    let error = await #expect(throws: URLError.self) { try await session.data(for: ready) }
    #expect(error?.code == .requestBodyStreamExhausted)
    #expect(server.requests.allSatisfy { $0.bodyCount == 0 })
  }

  @Test func aStreamThatHasBeenClosedFailsTheTask() async throws {
    let stream = InputStream(data: Data([1, 2, 3]))
    stream.open()
    stream.close()
    var request = try request("/post")
    request.httpBodyStream = stream
    let ready = request
    let error = await #expect(throws: URLError.self) { try await session.data(for: ready) }
    #expect(error?.code == .requestBodyStreamExhausted)
  }

  @Test func aBlockedStreamBlocksNoOther() async throws {
    let pipe = Pipe()
    let bytes = TestServer.content(count: 100_000)
    var request = try request("/post")
    request.httpBodyStream = BlockingStream(pipe.fileHandleForReading)
    let sending = Task { [session, request] in try await session.data(for: request) }
    // The loop serves other requests while the stream has no bytes.
    _ = try await session.data(for: self.request("/get", method: "GET"))
    Thread.detachNewThread {
      try? pipe.fileHandleForWriting.write(contentsOf: Data(bytes))
      try? pipe.fileHandleForWriting.close()
    }
    _ = try await sending.value
    let seen = try #require(server.requests.last)
    #expect(seen.bodyCount == bytes.count)
    #expect(seen.bodyChecksum == TestServer.contentChecksum(count: bytes.count))
  }

  @Test func aStreamedTaskAsksForItsStream() async throws {
    let bytes = TestServer.content(count: 500)
    let recorder = UploadRecorder { InputStream(data: Data(bytes)) }
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    session.uploadTask(withStreamedRequest: try request("/post")).resume()
    session.finishTasksAndInvalidate()
    let seen = try await server.waitForRequests(1)
    #expect(seen.last?.body == bytes)
    #expect(recorder.asked.withLock { $0 } == 1)
  }

  @Test(arguments: [true, false])
  func aStreamedTaskTakesTheRequestsStreamIfItGetsNone(gives: Bool) async throws {
    let recorder = UploadRecorder { gives ? InputStream(data: Data("delegate".utf8)) : nil }
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    var request = try request("/post")
    request.httpBodyStream = InputStream(data: Data("request".utf8))
    session.uploadTask(withStreamedRequest: request).resume()
    session.finishTasksAndInvalidate()
    let seen = try await server.waitForRequests(1)
    #expect(seen.last?.bodyText == (gives ? "delegate" : "request"))
    #expect(recorder.asked.withLock { $0 } == 1)
  }

  // MARK: - Early responses

  @Test func aServerThatIsAskedFirstIsWaitedFor() async throws {
    let bytes = TestServer.content(count: 1_000)
    server.enqueue([
      .expectHead, .send("HTTP/1.1 100 Continue\r\n\r\n"), .expectBody, .respond(.text("thanks")), .hang,
    ])
    var request = try request("/post")
    request.setValue("100-continue", forHTTPHeaderField: "Expect")
    let (data, _) = try await session.upload(for: request, from: Data(bytes))
    #expect(String(decoding: data, as: UTF8.self) == "thanks")
    #expect(server.requests.last?.body == bytes)
  }

  @Test func aServerThatIsAskedFirstMayRefuse() async throws {
    server.enqueue([.expectHead, .respond(.text("no", status: 417)), .expectClose])
    var request = try request("/post")
    request.setValue("100-continue", forHTTPHeaderField: "Expect")
    let (data, response) = try await session.upload(for: request, from: Data(TestServer.content(count: 1_000)))
    #expect((response as? HTTPURLResponse)?.statusCode == 417)
    #expect(String(decoding: data, as: UTF8.self) == "no")
  }

  @Test func anEarlyRefusalIsTheResponse() async throws {
    server.enqueue([.expectHead, .respond(.text("too much", status: 413)), .halfClose, .hang])
    let url = try file([UInt8](repeating: 1, count: 16 << 20))
    let (data, response) = try await session.upload(for: request("/post"), fromFile: url)
    #expect((response as? HTTPURLResponse)?.statusCode == 413)
    #expect(String(decoding: data, as: UTF8.self) == "too much")
  }

  @Test func aPostIsNeverSentTwice() async throws {
    // The server answers the first request, and closes the connection when it has read the second.
    server.enqueue([.serveRoutes(requests: 1), .expectRequest, .close])
    _ = try await session.data(for: request("/get", method: "GET"))
    let post = try request("/post")
    let error = await #expect(throws: URLError.self) { try await session.upload(for: post, from: Data("once".utf8)) }
    #expect(error?.code == .networkConnectionLost)
    #expect(server.requestsReceived == 2)
    #expect(server.connectionsAccepted == 1)
  }
}

/// A stream whose reads block until another thread writes to a pipe.
private final class BlockingStream: InputStream {
  private let handle: FileHandle
  private var status = Stream.Status.notOpen

  init(_ handle: FileHandle) {
    self.handle = handle
    super.init(data: Data())
  }

  override func open() { status = .open }
  override func close() { status = .closed }
  override var streamStatus: Stream.Status { status }
  override var hasBytesAvailable: Bool { status == .open }

  override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength len: Int) -> Int {
    guard let piece = try? handle.read(upToCount: min(len, 1_000)), !piece.isEmpty else {
      status = .atEnd
      return 0
    }
    for (index, byte) in piece.enumerated() { buffer[index] = byte }
    return piece.count
  }
}
