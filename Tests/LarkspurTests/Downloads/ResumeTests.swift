import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests downloads that are interrupted and resumed.
@Suite struct ResumeTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private static let total = 300_000
  private static let part = 100_000
  private static let tag = "\"version-1\""

  private func url(_ path: String = "/file") throws -> URL { try #require(URL(string: server.url(path))) }

  private func head(_ fields: TestServer.Fields, length: Int = Self.total) -> String {
    let lines = fields.map { "\($0.name): \($0.value)\r\n" }.joined()
    return "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\(lines)\r\n"
  }

  /// Interrupts a download after its first part.
  ///
  /// - Returns: The download's error, which may carry resume data.
  private func broken(
    _ fields: TestServer.Fields = ["ETag": Self.tag], request: URLRequest? = nil, end: TestServer.Step = .close
  ) async throws -> URLError {
    server.enqueue([.expectRequest, .send(head(fields)), .sendContent(0..<Self.part), end])
    let recorder = DownloadRecorder()
    let session = URLSession.with(recorder)
    try session.downloadTask(with: request ?? URLRequest(url: url())).resume()
    await recorder.waitForEnd()
    session.invalidateAndCancel()
    return try #require(recorder.error)
  }

  private func data(_ fields: TestServer.Fields = ["ETag": Self.tag]) async throws -> Data {
    try #require(try await broken(fields).downloadTaskResumeData)
  }

  /// Resumes a download and waits for its end.
  ///
  /// - Returns: The recorded delegate events.
  private func resume(_ data: Data) async -> DownloadRecorder {
    let recorder = DownloadRecorder()
    let session = URLSession.with(recorder)
    session.downloadTask(withResumeData: data).resume()
    await recorder.waitForEnd()
    session.finishTasksAndInvalidate()
    return recorder
  }

  private var whole: Data { Data(TestServer.content(count: Self.total)) }

  private func partial(_ range: Range<Int>, of total: String, _ fields: TestServer.Fields = [:]) -> TestServer.Response
  {
    var response = TestServer.Response(status: 206, fields: fields, body: .content(range))
    response.fields["Content-Range"] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total)"
    return response
  }

  // MARK: - Resuming

  /// Cancelling a resumed download before it starts returns the original resume data, since its partial file is
  /// untouched.
  @Test(.timeLimit(.minutes(1))) func cancellingBeforeTheStartKeepsTheData() async throws {
    let data = try await data()
    let session = URLSession(configuration: .ephemeral)
    #expect(await session.downloadTask(withResumeData: data).cancelByProducingResumeData() == data)
    session.invalidateAndCancel()
  }

  @Test func aDownloadThatBreaksOffGoesOn() async throws {
    let data = try await data()
    let rest = Self.part..<Self.total
    server.enqueue([.expectRequest, .respond(partial(rest, of: "\(Self.total)", ["ETag": Self.tag])), .hang])
    let recorder = await resume(data)
    #expect(recorder.error == nil)
    #expect(recorder.content == whole)
    #expect(recorder.events.first == .resumed(at: Int64(Self.part), of: Int64(Self.total)))
    #expect(recorder.events.suffix(2) == [.finished, .completed(nil)])
    let asked = try #require(server.requests.last)
    #expect(asked.fields["range"] == "bytes=\(Self.part)-")
    #expect(asked.fields["if-range"] == Self.tag)
    #expect(asked.fields.values("accept-encoding") == ["identity"])
    let wrote = recorder.events.compactMap { event -> Int64? in
      if case .wrote(_, let total, let expected) = event, expected == Int64(Self.total) { total } else { nil }
    }
    #expect(wrote.last == Int64(Self.total))
    #expect(wrote.allSatisfy { $0 > Int64(Self.part) })
  }

  @Test func theDataSurvivesItsProcess() async throws {
    server.enqueue([.expectRequest, .send(head(["ETag": Self.tag])), .sendContent(0..<Self.part), .close])
    let text = try SiblingProcess("session", ["broken", url().absoluteString]).text()
    let data = try #require(Data(base64Encoded: text.trimmingCharacters(in: .newlines)))
    server.route("GET", "/file") { _ in partial(Self.part..<Self.total, of: "\(Self.total)", ["ETag": Self.tag]) }
    let recorder = await resume(data)
    #expect(recorder.error == nil && recorder.content == whole)
    #expect(server.requests.last?.fields["Range"] == "bytes=\(Self.part)-")
  }

  @Test func aDateServesWhereThereIsNoTag() async throws {
    let date = "Thu, 01 Jan 2026 00:00:00 GMT"
    let data = try await data(["Last-Modified": date, "Date": "Fri, 02 Jan 2026 00:00:00 GMT"])
    server.enqueue([.expectRequest, .respond(partial(Self.part..<Self.total, of: "*")), .hang])
    let recorder = await resume(data)
    #expect(recorder.content == whole)
    #expect(server.requests.last?.fields["if-range"] == date)
  }

  @Test func aCancelledDownloadGoesOnAndIsAsyncToo() async throws {
    server.enqueue([.expectRequest, .send(head(["ETag": Self.tag])), .sendContent(0..<Self.part), .expectClose])
    let given = Mutex<[Data?]>([])
    let recorder = DownloadRecorder { task, total in
      guard total == Self.part else { return }
      task.cancel { data in given.withLock { $0.append(data) } }
    }
    let session = URLSession.with(recorder)
    try session.downloadTask(with: url()).resume()
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .cancelled)
    #expect(given.withLock { $0.count } == 1)
    let data = try #require(given.withLock { $0.first } ?? nil)
    #expect(recorder.error?.downloadTaskResumeData == data)
    server.enqueue([.expectRequest, .respond(partial(Self.part..<Self.total, of: "\(Self.total)")), .hang])
    let (file, response) = try await URLSession(configuration: .ephemeral).download(resumeFrom: data)
    #expect((response as? HTTPURLResponse)?.statusCode == 206)
    #expect(try Data(contentsOf: file) == whole)
    try FileManager.default.removeItem(at: file)
  }

  @Test func aPlainCancelKeepsNothing() async throws {
    server.enqueue([.expectRequest, .send(head(["ETag": Self.tag])), .sendContent(0..<Self.part), .expectClose])
    let recorder = DownloadRecorder { task, _ in task.cancel() }
    let session = URLSession.with(recorder)
    try session.downloadTask(with: url()).resume()
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .cancelled)
    #expect(recorder.error?.downloadTaskResumeData == nil)
  }

  @Test func theAsyncFormOfCancelGivesTheData() async throws {
    server.enqueue([.expectRequest, .send(head(["ETag": Self.tag])), .sendContent(0..<Self.part), .expectClose])
    let here = TestServer.Signal()
    let recorder = DownloadRecorder { _, total in if total == Self.part { here.fire() } }
    let task = try URLSession.with(recorder).downloadTask(with: url())
    task.resume()
    try await here.wait()
    let data = await task.cancelByProducingResumeData()
    #expect(data != nil)
    // The first call ended the task, so the second returns nothing.
    await recorder.waitForEnd()
    let again = await task.cancelByProducingResumeData()
    #expect(again == nil)
  }

  @Test func whatFailsAgainGoesOnAgain() async throws {
    let data = try await data()
    // The connection closes before any byte of the rest arrives, so the resume data stays unchanged.
    server.enqueue([.expectRequest, .close])
    let first = await resume(data)
    #expect(first.error?.code == .networkConnectionLost)
    let second = try #require(first.error?.downloadTaskResumeData)
    #expect(second == data)
    let fields = "Content-Range: bytes 100000-299999/300000\r\nContent-Length: 200000\r\n"
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 206 Partial Content\r\n\(fields)\r\n"), .sendContent(100_000..<200_000), .close,
    ])
    let third = try #require((await resume(second)).error?.downloadTaskResumeData)
    server.enqueue([.expectRequest, .respond(partial(200_000..<Self.total, of: "300000")), .hang])
    let recorder = await resume(third)
    #expect(recorder.content == whole)
    #expect(recorder.events.first == .resumed(at: 200_000, of: 300_000))
  }

  @Test func aServerThatSendsLessIsAskedAgain() async throws {
    let data = try await data()
    server.enqueue([
      .expectRequest, .respond(partial(100_000..<200_000, of: "300000")),
      .expectRequest, .respond(partial(200_000..<300_000, of: "300000")), .hang,
    ])
    let recorder = await resume(data)
    #expect(recorder.content == whole)
    #expect(server.requests.last?.fields["range"] == "bytes=200000-")
    #expect(recorder.events.filter { if case .resumed = $0 { true } else { false } }.count == 1)
  }

  @Test func aServerThatSendsAByteAtATimeIsNotAskedForEver() async throws {
    let data = try await data()
    let steps = (0...101).flatMap { index -> [TestServer.Step] in
      let first = Self.part + index
      return [.expectRequest, .respond(partial(first..<first + 1, of: "300000"))]
    }
    server.enqueue(.init(steps + [.hang]))
    let recorder = await resume(data)
    #expect(recorder.error?.code == .badServerResponse)
    // The interrupted download's request, and one more request than the limit of 100.
    #expect(server.requestsReceived == 1 + 101)
  }

  /// Makes a chunked 206 response: its `Content-Range` tells its length, since its framing does not.
  private func chunkedPart(_ range: Range<Int>, _ sent: Range<Int>) -> [TestServer.Step] {
    let bytes = Data(TestServer.content(count: Self.total))[sent]
    let head =
      "HTTP/1.1 206 Partial Content\r\nTransfer-Encoding: chunked\r\n"
      + "Content-Range: bytes \(range.lowerBound)-\(range.upperBound - 1)/\(Self.total)\r\n\r\n"
    return [
      .expectRequest, .send(head + String(bytes.count, radix: 16) + "\r\n"), .sendContent(sent), .send("\r\n0\r\n\r\n"),
    ]
  }

  @Test func aPartThatIsShorterThanItsRangeIsNotComplete() async throws {
    let data = try await data()
    server.enqueue(.init(chunkedPart(100_000..<300_000, 100_000..<150_000) + [.close]))
    let recorder = await resume(data)
    #expect(recorder.error?.code == .networkConnectionLost && recorder.content == nil)
    // The download resumes after the bytes that arrived.
    let next = try #require(recorder.error?.downloadTaskResumeData)
    server.enqueue(.init(chunkedPart(150_000..<300_000, 150_000..<300_000) + [.close]))
    #expect(await resume(next).content == whole)
    #expect(server.requests.last?.fields["range"] == "bytes=150000-")
  }

  /// A response shorter than its range fails the download: no further request fills the gap.
  @Test func aPartThatIsShorterThanItsRangeIsNotFilledUp() async throws {
    let data = try await data()
    server.enqueue(.init(chunkedPart(100_000..<200_000, 100_000..<110_000) + [.close]))
    let recorder = await resume(data)
    #expect(recorder.error?.code == .networkConnectionLost)
  }

  @Test func aPartThatIsLongerThanItsRangeIsNotTaken() async throws {
    let data = try await data()
    server.enqueue(.init(chunkedPart(100_000..<200_000, 100_000..<250_000) + [.close]))
    let recorder = await resume(data)
    #expect(recorder.error?.code == .badServerResponse && recorder.content == nil)
  }

  /// If the total length is unknown, the download requests further parts until a response shows that there are none.
  @Test func aPartOfAWholeWithoutLength() async throws {
    // A reset drops what the client has not read.
    let received = TestServer.Signal()
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \(Self.tag)\r\n\r\n186a0\r\n"),
      .sendContent(0..<Self.part), .wait(received), .reset,
    ])
    let recorder = DownloadRecorder { _, total in if total == Self.part { received.fire() } }
    let session = URLSession.with(recorder)
    try session.downloadTask(with: url()).resume()
    await recorder.waitForEnd()
    let data = try #require(recorder.error?.downloadTaskResumeData)
    let none = TestServer.Response(status: 416, fields: ["Content-Range": "bytes */300000"])
    server.enqueue([
      .expectRequest, .respond(partial(100_000..<200_000, of: "*")),
      .expectRequest, .respond(partial(200_000..<300_000, of: "*")),
      .expectRequest, .respond(none), .expectRequest, .respond(partial(299_999..<300_000, of: "300000")), .hang,
    ])
    let resumed = await resume(data)
    #expect(resumed.content == whole)
    session.invalidateAndCancel()
  }

  // MARK: - Starting over

  @Test func aChangedResourceComesWhole() async throws {
    let data = try await data()
    server.enqueue([.expectRequest, .respond(.text("another version")), .hang])
    let recorder = await resume(data)
    #expect(recorder.content == Data("another version".utf8))
    #expect(!recorder.events.contains { if case .resumed = $0 { true } else { false } })
    #expect(recorder.events.suffix(2) == [.finished, .completed(nil)])
  }

  /// Bytes of the old version do not count towards the progress of the new one.
  @Test func aResourceThatChangesOnTheWay() async throws {
    let data = try await data()
    let short = partial(Self.part..<Self.part + 1_000, of: "\(Self.total)", ["ETag": Self.tag])
    server.enqueue([.expectRequest, .respond(short), .expectRequest, .respond(.text("another version")), .hang])
    let recorder = await resume(data)
    #expect(recorder.content == Data("another version".utf8))
    let wrote = recorder.events.compactMap { event -> Int64? in
      if case .wrote(_, let total, _) = event { total } else { nil }
    }
    #expect(wrote.last == 15)
  }

  @Test(arguments: [
    "bytes 0-199999/300000", "bytes 100001-300000/300001", "bytes 100000-299999/300001", "bytes */300000", "nonsense",
  ])
  func aWrongRangeIsNotBelieved(range: String) async throws {
    let data = try await data()
    let wrong = TestServer.Response(status: 206, fields: ["Content-Range": range], body: .content(0..<200_000))
    server.enqueue([.expectRequest, .respond(wrong), .close], [.serveRoutes])
    server.route("GET", "/file") { _ in .content(count: Self.total) }
    let recorder = await resume(data)
    #expect(recorder.content == whole)
    #expect(server.requests.last?.fields["range"] == nil)
    #expect(server.requests.last?.fields["if-range"] == nil)
  }

  @Test func anotherTagIsNotBelieved() async throws {
    let data = try await data()
    let other = partial(Self.part..<Self.total, of: "300000", ["ETag": "\"version-2\""])
    server.enqueue([.expectRequest, .respond(other), .close], [.serveRoutes])
    server.route("GET", "/file") { _ in .content(count: Self.total) }
    #expect(await resume(data).content == whole)
  }

  @Test func aRangeBehindTheEndOfAnotherVersionStartsOver() async throws {
    let data = try await data()
    let none = TestServer.Response(status: 416, fields: ["Content-Range": "bytes */50"])
    server.enqueue([.expectRequest, .respond(none), .serveRoutes])
    server.route("GET", "/file") { _ in .text("short") }
    #expect(await resume(data).content == Data("short".utf8))
  }

  @Test func whatIsCompleteIsConfirmed() async throws {
    // The length is unknown, and the connection closes in place of the last chunk.
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nETag: \(Self.tag)\r\n\r\na\r\n0123456789\r\n"
    server.enqueue([.expectRequest, .send(chunked), .close])
    let first = DownloadRecorder()
    try URLSession.with(first).downloadTask(with: url()).resume()
    await first.waitForEnd()
    let data = try #require(first.error?.downloadTaskResumeData)
    let none = TestServer.Response(status: 416, fields: ["Content-Range": "bytes */10"])
    var last = TestServer.Response(status: 206, body: .text("9"))
    last.fields["Content-Range"] = "bytes 9-9/10"
    server.enqueue([.expectRequest, .respond(none), .expectRequest, .respond(last), .hang])
    let recorder = await resume(data)
    #expect(recorder.content == Data("0123456789".utf8))
    #expect(server.requests.last?.fields["range"] == "bytes=9-")
  }

  @Test func anErrorsWordsAreAFileAndThePartStays() async throws {
    let data = try await data()
    server.enqueue([.expectRequest, .respond(.text("busy", status: 503)), .hang])
    let busy = await resume(data)
    #expect(busy.content == Data("busy".utf8))
    server.enqueue([.expectRequest, .respond(partial(Self.part..<Self.total, of: "300000")), .hang])
    #expect(await resume(data).content == whole)
  }

  @Test func thePartIsUsedOnce() async throws {
    let data = try await data()
    server.enqueue([.expectRequest, .respond(partial(Self.part..<Self.total, of: "300000")), .close])
    #expect(await resume(data).content == whole)
    // The partial file is gone, so the download starts anew.
    server.enqueue([.serveRoutes])
    server.route("GET", "/file") { _ in .content(count: Self.total) }
    #expect(await resume(data).content == whole)
    #expect(server.requests.last?.fields["range"] == nil)
  }

  // MARK: - Downloads that cannot be resumed

  @Test(
    arguments: [
      [:], ["ETag": "W/\"weak\""], ["ETag": Self.tag, "Accept-Ranges": "none"],
      ["Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", "Date": "Thu, 01 Jan 2026 00:00:00 GMT"],
    ] as [TestServer.Fields])
  func withoutAVersionThereIsNoData(fields: TestServer.Fields) async throws {
    let error = try await broken(fields)
    #expect(error.code == .networkConnectionLost)
    #expect(error.downloadTaskResumeData == nil)
  }

  @Test func onlyAGetWithoutConditionsCanGoOn() async throws {
    var post = URLRequest(url: try url())
    post.httpMethod = "POST"
    #expect(try await broken(request: post).downloadTaskResumeData == nil)
    var ranged = URLRequest(url: try url())
    ranged.setValue("bytes=0-", forHTTPHeaderField: "Range")
    #expect(try await broken(request: ranged).downloadTaskResumeData == nil)
  }

  @Test func decodedContentCannotGoOn() async throws {
    let fields = "Content-Encoding: gzip\r\nETag: \(Self.tag)\r\nContent-Length: 1000\r\n"
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\n\(fields)\r\n"), .send([31, 139, 8, 0, 0, 0, 0, 0, 0, 3]), .close,
    ])
    let recorder = DownloadRecorder()
    try URLSession.with(recorder).downloadTask(with: url()).resume()
    await recorder.waitForEnd()
    #expect(recorder.error != nil)
    #expect(recorder.error?.downloadTaskResumeData == nil)
  }

  @Test func theRequestsOwnFieldsComeAlong() async throws {
    var request = URLRequest(url: try url())
    request.setValue("Bearer token", forHTTPHeaderField: "Authorization")
    request.setValue("yes", forHTTPHeaderField: "X-Mine")
    request.timeoutInterval = 33
    let data = try #require(try await broken(request: request).downloadTaskResumeData)
    server.enqueue([.expectRequest, .respond(partial(Self.part..<Self.total, of: "300000")), .hang])
    let recorder = DownloadRecorder()
    let task = URLSession.with(recorder).downloadTask(withResumeData: data)
    #expect(task.originalRequest == request)
    #expect(task.originalRequest?.timeoutInterval == 33)
    task.resume()
    await recorder.waitForEnd()
    let asked = try #require(server.requests.last)
    #expect(asked.fields["authorization"] == "Bearer token")
    #expect(asked.fields["x-mine"] == "yes")
  }

  // MARK: - Foreign data

  @Test(arguments: [Data(), Data([1, 2, 3]), Data("LarkspurResume1".utf8), Data(count: 2 << 20)])
  func nonsenseFailsTheTask(data: Data) async throws {
    let recorder = await resume(data)
    #expect(recorder.events == [.completed(.unsupportedURL)])
    let error = await #expect(throws: URLError.self) {
      try await URLSession(configuration: .ephemeral).download(resumeFrom: data)
    }
    #expect(error?.code == .unsupportedURL)
  }

  @Test func anyChangeOfTheDataIsNoticed() async throws {
    let data = try await data()
    for index in stride(from: 0, to: data.count, by: 7) {
      var changed = data
      changed[index] ^= 1
      #expect(await resume(changed).events == [.completed(.unsupportedURL)], "byte \(index)")
    }
    #expect(server.requestsReceived == 1)
  }
}
