import AFNetworking
import Dispatch
import LarkspurTestServer
import TestKit
import Testing

/// Tests the async functions of a manager.
@Suite struct ManagerAsyncTests {
  let fixture: ManagerFixture
  var manager: AFHTTPSessionManager { fixture.manager }

  /// Makes a manager whose completion queue never runs: the async functions need neither this queue nor the main queue.
  init() throws {
    fixture = try ManagerFixture()
    let queue = DispatchQueue(label: "stopped", attributes: .initiallyInactive)
    fixture.manager.completionQueue = queue
    // Dispatch traps if an inactive queue is released, so it is kept forever.
    Self.stopped.keep(queue)
  }

  private final class Stopped: @unchecked Sendable {
    private var queues: [DispatchQueue] = []
    private let lock = NSLock()

    func keep(_ queue: DispatchQueue) { lock.withLock { queues.append(queue) } }
  }

  private static let stopped = Stopped()

  private func member(_ value: Any?, _ path: String...) -> String? {
    var value = value
    for name in path { value = (value as? [String: Any])?[name] }
    return value.map { "\($0)" }
  }

  @Test func methods() async throws {
    let (got, response) = try await manager.get("get", parameters: ["a": "b"], headers: ["X-Foo": "foo"])
    #expect(member(got, "args", "a") == "b" && member(got, "headers", "X-Foo") == "foo")
    #expect((response as? HTTPURLResponse)?.statusCode == 200)
    #expect(try await manager.head("get").url == (try fixture.url("/get")))
    let posted = try await manager.post("post", parameters: ["a": "b"])
    #expect(member(posted.value, "form", "a") == "b")
    let form = try await manager.post("post", parameters: ["a": "b"]) {
      $0.appendPart(withForm: Data("x".utf8), name: "y")
    }
    #expect(member(form.value, "data")?.contains("name=\"y\"") == true)
    #expect(member(try await manager.put("put", parameters: ["a": "b"]).value, "form", "a") == "b")
    #expect(member(try await manager.patch("patch", parameters: ["a": "b"]).value, "form", "a") == "b")
    #expect(member(try await manager.delete("delete", parameters: ["a": "b"]).value, "args", "a") == "b")
    let other = try await manager.value(forHTTPMethod: "OPTIONS", urlString: "anything")
    #expect(member(other.value, "method") == "OPTIONS")
  }

  @Test func wholeRequests() async throws {
    let directory = try TemporaryDirectory()
    let (source, target, second) = (directory.file("source"), directory.file("target"), directory.file("second"))
    try Data("file".utf8).write(to: source)
    #expect(member(try await manager.value(for: fixture.request("/get")).value, "target") == "/get")
    var request = try fixture.request("/post")
    request.httpMethod = "POST"
    #expect(member(try await manager.upload(for: request, fromFile: source).value, "data") == "file")
    #expect(member(try await manager.upload(for: request, from: Data("data".utf8)).value, "data") == "data")
    request.httpBodyStream = InputStream(data: Data("stream".utf8))
    #expect(member(try await manager.upload(withStreamedRequest: request).value, "data") == "stream")
    let (file, response) = try await manager.download(for: fixture.request("/bytes/10")) { _, _ in target }
    #expect(file == target && response.expectedContentLength == 10)
    await #expect(throws: URLError.self) {
      try await manager.download(resumeFrom: Data("nonsense".utf8)) { _, _ in second }
    }
  }

  @Test func errors() async throws {
    let bad = await #expect(throws: NSError.self) { try await manager.get("status/404") }
    #expect(bad?.domain == AFURLResponseSerializationErrorDomain && bad?.code == NSURLErrorBadServerResponse)
    await #expect(throws: (any Error).self) { try await manager.get("http://[") }
    fixture.server.route("GET", "/reset", script: [.reset])
    let lost = await #expect(throws: URLError.self) { try await manager.get("reset") }
    #expect(lost?.code == .networkConnectionLost)
    let directory = try TemporaryDirectory()
    let taken = directory.file("taken")
    try Data().write(to: taken)
    await #expect(throws: NSError.self) { try await manager.download(for: fixture.request("/get")) { _, _ in taken } }
  }

  @Test func progress() async throws {
    let journal = Journal()
    manager.responseSerializer = AFHTTPResponseSerializer()
    let (value, _) = try await manager.get("bytes/300000", progress: { journal.note("\($0.fractionCompleted)") })
    #expect((value as? Data)?.count == 300_000 && journal.lines.last == "1.0")
  }

  @Test func cancellation() async throws {
    let signal = TestServer.Signal()
    fixture.server.route("GET", "/slow", script: [.wait(signal), .close])
    let task = Task { [manager] in _ = try await manager.get("slow") }
    _ = try await fixture.server.waitForRequests(1)
    task.cancel()
    let error = await #expect(throws: URLError.self) { try await task.value }
    #expect(error?.code == .cancelled)
    signal.fire()
    let late = Task { [manager] in
      withUnsafeCurrentTask { $0?.cancel() }
      _ = try await manager.get("get")
    }
    await #expect(throws: URLError.self) { try await late.value }
    #expect(manager.tasks.isEmpty)
  }

  /// A subclass that overrides the creation of data tasks, which the async functions also use.
  private final class Counting: AFHTTPSessionManager, @unchecked Sendable {
    let journal = Journal()

    override func dataTask(
      with request: URLRequest, uploadProgress uploadProgressBlock: ((Progress) -> Void)?,
      downloadProgress downloadProgressBlock: ((Progress) -> Void)?,
      completionHandler: ((URLResponse, Any?, (any Error)?) -> Void)?
    ) -> URLSessionDataTask {
      journal.note(request.url?.path ?? "")
      return super.dataTask(
        with: request, uploadProgress: uploadProgressBlock, downloadProgress: downloadProgressBlock,
        completionHandler: completionHandler)
    }
  }

  @Test func theyMakeTheirTasksAsTheOthers() async throws {
    let manager = Counting(baseURL: try fixture.url("/"), sessionConfiguration: .ephemeral)
    defer { manager.invalidateSessionCancelingTasks(true, resetSession: false) }
    _ = try await manager.get("get")
    _ = await outcome { manager.get("status/200", parameters: nil, success: $0, failure: $1) }
    #expect(manager.journal.lines == ["/get", "/status/200"])
  }
}
