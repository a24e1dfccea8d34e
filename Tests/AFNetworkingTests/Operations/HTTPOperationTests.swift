import AFNetworking
import Foundation
import LarkspurTestServer
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2))) struct HTTPOperationTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func operation(_ path: String) throws -> AFHTTPRequestOperation {
    try OperationKit.operation(AFHTTPRequestOperation.self, server.url(path))
  }

  /// Runs an operation.
  ///
  /// - Returns: The values that its blocks got.
  private func outcome(
    _ operation: AFHTTPRequestOperation, whileRunning body: () async throws -> Void = {}
  ) async throws -> Result<Any?, any Error> {
    let results = Results<Result<Any?, any Error>>()
    operation.setCompletionBlockWithSuccess { _, object in
      results.add(.success(object))
    } failure: { _, error in
      results.add(.failure(error))
    }
    operation.start()
    try await body()
    return try await results.next()
  }

  @Test func successGetsTheObject() async throws {
    let operation = try operation("/bytes/10")
    let object = try await outcome(operation).get()
    #expect(operation.isFinished && object as? Data == Data(TestServer.content(0..<10)))
    #expect(operation.responseObject as? Data == Data(TestServer.content(0..<10)))
    #expect(operation.hasAcceptableStatusCode && operation.hasAcceptableContentType)
  }

  @Test(arguments: [404, 500]) func aStatusThatIsNotAcceptableIsAFailure(status: Int) async throws {
    let operation = try operation("/status/\(status)")
    #expect(!operation.hasAcceptableStatusCode)
    let outcome = try await outcome(operation)
    let error = try #require(throws: NSError.self) { try outcome.get() }
    #expect(error.domain == AFURLResponseSerializationErrorDomain && error.code == NSURLErrorBadServerResponse)
    #expect(operation.response.statusCode == status && !operation.hasAcceptableStatusCode)
    #expect(operation.error != nil && operation.responseData != nil)
  }

  @Test func aSerializerDecides() async throws {
    let operation = try operation("/get?a=1")
    operation.responseSerializer = AFJSONResponseSerializer()
    let object = try await outcome(operation).get() as? [String: Any]
    #expect((object?["args"] as? [String: String]) == ["a": "1"])
    // A new serializer reads the response again.
    operation.responseSerializer = AFPropertyListResponseSerializer()
    #expect(operation.responseObject == nil && operation.error != nil)
    operation.responseSerializer = AFHTTPResponseSerializer()
    #expect(operation.responseObject is Data && operation.error == nil)
  }

  @Test func aCancelledOneFails() async throws {
    let operation = try operation("/hang")
    let outcome = try await outcome(operation) {
      try await server.waitForRequests(1)
      operation.cancel()
    }
    let error = try #require(throws: URLError.self) { try outcome.get() }
    #expect(error.code == .cancelled && (operation.error as NSError).code == NSURLErrorCancelled)
  }

  @Test func queuesAndGroup() async throws {
    let operation = try operation("/get")
    let (success, group) = (DispatchQueue(label: "success"), DispatchGroup())
    success.setSpecific(key: Self.key, value: 1)
    operation.successCallbackQueue = success
    operation.completionGroup = group
    let isInGroup = Mutex(false)
    let queue = await withCheckedContinuation { continuation in
      operation.setCompletionBlockWithSuccess { _, _ in
        isInGroup.withLock { $0 = group.wait(timeout: .now()) == .timedOut }
        continuation.resume(returning: DispatchQueue.getSpecific(key: Self.key) ?? 2)
      }
      operation.start()
    }
    #expect(queue == 1)
    #expect(isInGroup.withLock { $0 })
    // The group is left after the block has returned.
    await withCheckedContinuation { done in group.notify(queue: OperationKit.queue) { done.resume() } }
  }

  private static let key = DispatchSpecificKey<Int>()

  // MARK: - Pause

  /// Makes the first connection send the head and a part of the content, and then nothing more.
  private func sendsPart(of count: Int, part: Int, fields: String) {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\(fields)\r\n"), .sendContent(0..<part),
      .expectClose,
    ])
  }

  /// Starts an operation and pauses it when `part` bytes have arrived.
  private func pause(_ operation: AFURLConnectionOperation, at part: Int) async throws {
    let results = Results<Int64>()
    operation.setDownloadProgressBlock { _, total, _ in results.add(total) }
    operation.start()
    while try await results.next() < part {}
    operation.pause()
    #expect(operation.isPaused() && !operation.isReady && !operation.isExecuting && !operation.isFinished)
    operation.setDownloadProgressBlock(nil)
  }

  @Test func aPausedOneGoesOnWithTheRest() async throws {
    sendsPart(of: 300_000, part: 100_000, fields: "ETag: \"range-300000\"\r\n")
    let operation = try operation("/range/300000")
    try await pause(operation, at: 100_000)
    try await server.waitForClosedConnections(1)
    let results = Results<(Int64, Int64)>()
    operation.setDownloadProgressBlock { results.add(($1, $2)) }
    operation.resume()
    #expect(!operation.isPaused())
    await operation.isOver()
    #expect(operation.error == nil && operation.responseData == Data(TestServer.content(0..<300_000)))
    let request = try #require(server.requests.last)
    #expect(request.fields["range"] == "bytes=100000-" && request.fields["if-range"] == "\"range-300000\"")
    #expect(operation.request.value(forHTTPHeaderField: "Range") == "bytes=100000-")
    #expect(operation.response.statusCode == 206)
    // The progress counts from the start of the content.
    let (total, expected) = try await results.next()
    #expect(total > 100_000 && expected == 300_000)
    #expect(server.failures.isEmpty)
  }

  @Test func aPausedOneGoesOnIntoItsFile() async throws {
    sendsPart(of: 300_000, part: 100_000, fields: "ETag: \"range-300000\"\r\n")
    let file = try OperationKit.directory().appending(path: "content")
    defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    let operation = try operation("/range/300000")
    operation.outputStream = OutputStream(toFileAtPath: file.path, append: false)
    try await pause(operation, at: 100_000)
    operation.resume()
    await operation.isOver()
    #expect(operation.error == nil && server.requestsReceived == 2)
    #expect(try Data(contentsOf: file) == Data(TestServer.content(0..<300_000)))
  }

  /// Content that has changed during the pause is loaded from its start, and the part of the old content is discarded.
  @Test(arguments: [true, false]) func changedContentIsLoadedFromItsBeginning(isFile: Bool) async throws {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\nETag: \"old\"\r\n\r\n"),
      .send([UInt8](repeating: 1, count: 50_000)), .expectClose,
    ])
    let file = try OperationKit.directory().appending(path: "content")
    defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    let operation = try operation("/range/300000")
    if isFile { operation.outputStream = OutputStream(toFileAtPath: file.path, append: false) }
    try await pause(operation, at: 50_000)
    operation.resume()
    await operation.isOver()
    #expect(server.requests.last?.fields["if-range"] == "\"old\"" && operation.response.statusCode == 200)
    #expect(operation.error == nil)
    let content = isFile ? try Data(contentsOf: file) : operation.responseData
    #expect(content == Data(TestServer.content(0..<300_000)))
  }

  /// A file may change twice within a second. A date of the response's own second names no version (RFC 9110 8.8.2.2):
  /// the operation starts over, or it would join the bytes of two versions.
  @Test(arguments: [(0, false), (1, true)]) func aDateOfTheSameSecondNamesNoVersion(age: Int, isContinued: Bool)
    async throws
  {
    // The server's route has this date, and honours it in `If-Range`.
    let changed = "Thu, 01 Jan 2026 00:00:00 GMT"
    let old = [UInt8](repeating: 1, count: 50_000)
    server.enqueue([
      .expectRequest,
      .send(
        "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\nLast-Modified: \(changed)\r\n"
          + "Date: Thu, 01 Jan 2026 00:00:0\(age) GMT\r\n\r\n"),
      .send(old), .expectClose,
    ])
    let operation = try operation("/range/300000")
    try await pause(operation, at: 50_000)
    operation.resume()
    await operation.isOver()
    let request = try #require(server.requests.last)
    #expect(request.fields["if-range"] == (isContinued ? changed : nil))
    #expect((request.fields["range"] != nil) == isContinued && operation.error == nil)
    let rest = TestServer.content((isContinued ? 50_000 : 0)..<300_000)
    #expect(operation.responseData == Data((isContinued ? old : []) + rest))
  }

  /// New content that is shorter leaves old bytes in the file, so the operation fails.
  @Test func aFileThatStaysTooLongIsAFailure() async throws {
    sendsPart(of: 300_000, part: 100_000, fields: "ETag: \"old\"\r\n")
    let file = try OperationKit.directory().appending(path: "content")
    defer { try? FileManager.default.removeItem(at: file.deletingLastPathComponent()) }
    let operation = try operation("/range/1000")
    operation.outputStream = OutputStream(toFileAtPath: file.path, append: false)
    try await pause(operation, at: 100_000)
    operation.resume()
    await operation.isOver()
    #expect((operation.error as? URLError)?.code == .cannotWriteToFile)
  }

  @Test func allOfItHadCome() async throws {
    // The server does not send the last chunk, so the operation is still loading.
    server.enqueue([
      .expectRequest,
      .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \"range-1000\"\r\n\r\n3e8\r\n"),
      .sendContent(0..<1000), .expectClose,
    ])
    let operation = try operation("/range/1000")
    try await pause(operation, at: 1000)
    operation.resume()
    await operation.isOver()
    #expect(operation.error == nil && operation.responseData == Data(TestServer.content(0..<1000)))
    #expect(operation.response.statusCode == 200 && server.requests.count == 2)
  }

  @Test func aPartThatBeginsElsewhereIsAFailure() async throws {
    sendsPart(of: 300_000, part: 100_000, fields: "ETag: \"a\"\r\n")
    server.route("GET", "/odd") { _ in
      .init(status: 206, fields: ["Content-Range": "bytes 5-9/300000"], body: .text("12345"))
    }
    let operation = try operation("/odd")
    try await pause(operation, at: 100_000)
    operation.resume()
    await operation.isOver()
    #expect((operation.error as? URLError)?.code == .badServerResponse)
  }

  /// `AFURLConnectionOperation` sends no range and starts from the beginning.
  @Test func theBaseClassBeginsAnew() async throws {
    sendsPart(of: 1000, part: 100, fields: "ETag: \"range-1000\"\r\n")
    let operation = try OperationKit.operation(AFURLConnectionOperation.self, server.url("/range/1000"))
    try await pause(operation, at: 100)
    operation.resume()
    await operation.isOver()
    #expect(operation.responseData == Data(TestServer.content(0..<1000)))
    #expect(server.requests.last?.fields["range"] == nil)
  }

  @Test func aPostBeginsAnew() async throws {
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"a\"\r\n\r\n"), .send("abc"),
      .expectClose,
    ])
    var request = try OperationKit.request(server.url("/post"))
    request.httpMethod = "POST"
    request.httpBody = Data("body".utf8)
    let operation = AFHTTPRequestOperation(request: request)
    operation.completionQueue = OperationKit.queue
    try await pause(operation, at: 3)
    operation.resume()
    await operation.isOver()
    #expect(server.requests.map(\.bodyText) == ["body", "body"] && server.requests.last?.fields["range"] == nil)
    #expect(operation.error == nil && operation.responseData.first == UInt8(ascii: "{"))
  }

  @Test func aPausedOneCanBeCancelled() async throws {
    sendsPart(of: 1000, part: 100, fields: "")
    let operation = try operation("/range/1000")
    try await pause(operation, at: 100)
    operation.cancel()
    await operation.isOver()
    #expect((operation.error as? URLError)?.code == .cancelled && server.requestsReceived == 1)
  }

  @Test func pausedAndResumedManyTimesItEnds() async throws {
    let operation = try operation("/range/2000000")
    let queue = OperationQueue()
    queue.addOperation(operation)
    for _ in 0..<20 {
      operation.pause()
      await Task.yield()
      operation.resume()
    }
    await operation.isOver()
    #expect(operation.error == nil && operation.responseData == Data(TestServer.content(0..<2_000_000)))
  }

  @Test func pausedBeforeItsQueueStartsIt() async throws {
    let queue = OperationQueue()
    queue.isSuspended = true
    let operation = try operation("/get")
    queue.addOperation(operation)
    operation.pause()
    queue.isSuspended = false
    #expect(!operation.isReady && operation.isPaused())
    operation.resume()
    await operation.isOver()
    #expect(operation.error == nil && server.requestsReceived == 1)
  }

  // MARK: - Archives and copies

  @Test func archivesAndCopies() async throws {
    let operation = try operation("/get")
    operation.responseSerializer = AFJSONResponseSerializer(readingOptions: .fragmentsAllowed)
    let data = try NSKeyedArchiver.archivedData(withRootObject: operation, requiringSecureCoding: true)
    let read = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: AFHTTPRequestOperation.self, from: data))
    #expect((read.responseSerializer as? AFJSONResponseSerializer)?.readingOptions == .fragmentsAllowed)
    let copy = try #require(operation.copy() as? AFHTTPRequestOperation)
    #expect((copy.responseSerializer as? AFJSONResponseSerializer)?.readingOptions == .fragmentsAllowed)
    #expect(copy.responseSerializer !== operation.responseSerializer)
    await read.run()
    #expect(read.responseObject is [String: Any])
  }

  // MARK: - Acceptable statuses and types of a class

  final class Lenient: AFHTTPRequestOperation, @unchecked Sendable {}
  final class Late: AFJSONRequestOperation, @unchecked Sendable {}

  @Test func additionsCountForAClassAndThoseBeneathIt() async throws {
    Lenient.addAcceptableStatusCodes([404])
    Lenient.addAcceptableContentTypes(["text/odd"])
    #expect(Lenient.acceptableStatusCodes()?.contains(404) == true)
    #expect(AFHTTPRequestOperation.acceptableStatusCodes() == IndexSet(integersIn: 200..<300))
    #expect(AFHTTPRequestOperation.acceptableContentTypes() == nil)
    Late.addAcceptableContentTypes(["application/customjson"])
    #expect(Late.acceptableContentTypes()?.count == 4 && AFJSONRequestOperation.acceptableContentTypes()?.count == 3)
    let operation = try OperationKit.operation(Lenient.self, server.url("/status/404"))
    operation.responseSerializer.acceptableContentTypes = nil
    await operation.run()
    #expect(operation.error == nil)
    server.route("GET", "/custom") { _ in
      .init(fields: ["Content-Type": "application/customjson"], body: .text("[1]"))
    }
    let custom = try OperationKit.operation(Late.self, server.url("/custom"))
    await custom.run()
    #expect(custom.responseJSON as? [Int] == [1])
  }

  @Test func contentTypesOfAField() {
    #expect(AFContentTypesFromHTTPHeader(nil) == nil && AFContentTypesFromHTTPHeader("") == [])
    #expect(AFContentTypesFromHTTPHeader("text/html;q=0.5, image/png ,,;x") == ["text/html", "image/png"])
  }

  @Test func classesThatCanProcessARequest() throws {
    var request = try OperationKit.request("http://a.example/thing")
    #expect(AFHTTPRequestOperation.canProcess(request) && !AFJSONRequestOperation.canProcess(request))
    request.setValue("application/json, text/plain", forHTTPHeaderField: "Accept")
    #expect(AFJSONRequestOperation.canProcess(request) && !AFImageRequestOperation.canProcess(request))
    let byPath = try OperationKit.request("http://a.example/thing.png")
    #expect(AFImageRequestOperation.canProcess(byPath) && AFHTTPRequestOperation.canProcessRequest(byPath))
  }
}
