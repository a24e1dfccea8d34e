import Foundation
import LarkspurEngine
import LarkspurHTTP
import LarkspurTestServer
import LarkspurTransfers
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests background sessions whose transfers run in the process.
@Suite(.timeLimit(.minutes(1))) struct BackgroundSessionTests {
  let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  private var server: TestServer { fixture.server }

  @Test func aDownloadEnds() async throws {
    let content = Data(TestServer.content(count: 300_000))
    server.route("GET", "/file") { _ in TestServer.Response(body: .bytes(Array(content))) }
    let recorder = DownloadRecorder()
    let session = fixture.session(recorder)
    let task = session.downloadTask(with: try fixture.url("/file"))
    task.taskDescription = "mine"
    task.resume()
    await recorder.waitForEnd()
    #expect(recorder.content == content)
    #expect(recorder.error == nil)
    #expect(recorder.events.last == .completed(nil))
    #expect(recorder.events.count(where: { $0 == .finished }) == 1)
    #expect(task.state == .completed && (task.response as? HTTPURLResponse)?.statusCode == 200)
    #expect(task.countOfBytesReceived == 300_000)
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    // The session has given its journal up: another one can have the identifier.
    let next = DownloadRecorder()
    let other = fixture.session(next)
    let again = other.downloadTask(with: try fixture.url("/file"))
    again.resume()
    await next.waitForEnd()
    #expect(next.error == nil && next.content == content)
    #expect(again.taskIdentifier == 1)
    other.invalidateAndCancel()
    await next.waitForInvalidation()
    #expect(fixture.journal().isEmpty)
  }

  @Test func aDownloadInSegments() async throws {
    fixture.serve("/file", count: 500_000)
    let recorder = DownloadRecorder()
    let configuration = fixture.configuration()
    var segments = URLSessionConfiguration.SegmentedDownloads()
    segments.smallestPiece = 50_000
    configuration.segmentedDownloads = segments
    let session = fixture.session(recorder, configuration)
    let task = session.downloadTask(with: try fixture.url("/file"))
    task.resume()
    await recorder.waitForEnd()
    #expect(recorder.error == nil && recorder.content == Data(TestServer.content(count: 500_000)))
    #expect(server.requests.count > 1 && (task.response as? HTTPURLResponse)?.statusCode == 200)
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(fixture.journal().isEmpty)
  }

  /// The journal names the files that the engine of downloads gives.
  @Test func namesOfSegments() {
    let content = TransferFileName.content(of: 7)
    let names = [DownloadStore.partName(content), DownloadStore.recordName(content)]
    #expect(Set(names + [names[1] + ".new", content]) == Set(TransferFileName.contents(of: 7)))
    #expect(TransferFileName.contents(of: 7).allSatisfy { TransferFileName($0)?.task == 7 })
  }

  /// The last bytes come soon after others, and with them the end.
  @Test func theProgressComesToTheTotal() async throws {
    let wrote = TestServer.Signal()
    server.route(
      "GET", "/file",
      script: [
        .send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"), .sendContent(0..<400), .wait(wrote),
        .sendContent(400..<1000),
      ])
    let recorder = DownloadRecorder(whenWritten: { _, _ in wrote.fire() })
    let session = fixture.session(recorder)
    let task = session.downloadTask(with: try fixture.url("/file"))
    task.resume()
    await recorder.waitForEnd()
    let steps = recorder.events.compactMap { if case .wrote(let step, _, _) = $0 { step } else { nil } }
    #expect(steps.reduce(0, +) == 1000)
    #expect(recorder.events.suffix(3) == [.wrote(600, total: 1000, of: 1000), .finished, .completed(nil)])
    #expect(task.progress.fractionCompleted == 1)
    session.invalidateAndCancel()
  }

  @Test func theMetricsHaveTheIntervalAndTheRedirections() async throws {
    server.route("GET", "/first") { _ in TestServer.Response(status: 302, fields: ["Location": "/second"]) }
    server.route("GET", "/second") { _ in .text("here") }
    let recorder = SessionRecorder()
    let session = fixture.session(recorder)
    let begin = Date()
    session.downloadTask(with: try fixture.url("/first")).resume()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    let metrics = recorder.metrics
    #expect(metrics.count == 1 && metrics[0].redirectCount == 1 && metrics[0].transactionMetrics.isEmpty)
    #expect(metrics[0].taskInterval.start >= begin - 1 && metrics[0].taskInterval.end <= Date())
  }

  @Test func anUploadOfAFileEnds() async throws {
    server.route("PUT", "/file") { request in .text("received \(request.body.count)") }
    let content = Mutex(Data())
    let recorder = SessionRecorder()
    recorder.onData = { _, data in content.withLock { $0 += data } }
    let session = fixture.session(recorder)
    var request = URLRequest(url: try fixture.url("/file"))
    request.httpMethod = "PUT"
    let file = try fixture.file("upload", String(repeating: "x", count: 100_000))
    let task = session.uploadTask(with: request, fromFile: file)
    task.resume()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(recorder.events.contains(.completed(task.taskIdentifier, nil)))
    #expect(content.withLock { $0 } == Data("received 100000".utf8))
    #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
    #expect(task.countOfBytesSent == 100_000)
  }

  /// A task whose request the server refuses for now comes back as the server says, and one that breaks off goes on.
  @Test func tasksAreTriedAgain() async throws {
    let content = Data(TestServer.content(count: 300_000))
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\nETag: \"a\"\r\n\r\n"
    server.enqueue([
      .expectRequest, .respond(TestServer.Response(status: 503, fields: ["Retry-After": "0"])), .expectRequest,
      .send(head), .sendContent(0..<100_000), .close,
    ])
    var rest = TestServer.Response(status: 206, fields: ["ETag": "\"a\""], body: .content(100_000..<300_000))
    rest.fields["Content-Range"] = "bytes 100000-299999/300000"
    server.enqueue([.expectRequest, .respond(rest), .hang])
    let recorder = DownloadRecorder()
    let session = fixture.session(recorder)
    session.downloadTask(with: try fixture.url("/file")).resume()
    await recorder.waitForEnd()
    #expect(recorder.error == nil && recorder.content == content)
    #expect(server.requests.last?.fields["range"] == "bytes=100000-")
    session.invalidateAndCancel()
    await recorder.waitForInvalidation()
    #expect(fixture.journal().isEmpty)
  }

  @Test func errorsThatStayAreTold() async throws {
    let recorder = DownloadRecorder()
    let session = fixture.session(recorder)
    let task = session.downloadTask(with: try #require(URL(string: "ftp://example.com/file")))
    task.resume()
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .unsupportedURL)
    let upload = SessionRecorder()
    let other = fixture.session(upload, fixture.configuration("uploads"))
    var request = URLRequest(url: try fixture.url("/file"))
    request.httpMethod = "PUT"
    let absent = other.uploadTask(with: request, fromFile: fixture.folder.appending(path: "absent"))
    absent.resume()
    other.finishTasksAndInvalidate()
    await upload.waitForInvalidation()
    #expect((absent.error as? URLError)?.code == .fileDoesNotExist)
    #expect(server.requests.isEmpty)
    session.invalidateAndCancel()
  }

  @Test func requestsThatNoRecordHoldsAreRefused() async throws {
    let session = fixture.session(nil)
    var request = URLRequest(url: try fixture.url("/file"))
    request.httpMethod = "POST"
    request.httpBody = Data(count: TransferRecord.newBytesMax)
    let large = session.downloadTask(with: request)
    large.resume()
    let none = session.downloadTask(withResumeData: Data("none".utf8))
    none.resume()
    await Wait.until("both tasks have ended") { large.state == .completed && none.state == .completed }
    #expect((large.error as? URLError)?.code == .dataLengthExceedsMaximum)
    #expect((none.error as? URLError)?.code == .unsupportedURL)
    let task = session.downloadTask(with: try fixture.url("/file"))
    task.taskDescription = String(repeating: "ä", count: 1 << 20)
    task.earliestBeginDate = .distantFuture
    task.resume()
    await session.flush()
    let path = fixture.folder.appending(path: "larkspur/groups/tests/transfers/transfers/\(task.taskIdentifier).task")
    let record = try TransferRecord(file: Array(Data(contentsOf: path)))
    #expect(record.taskDescription?.utf8.count == TransferRecord.descriptionBytesMax)
    session.invalidateAndCancel()
  }

  @Test func handlersAreRefused() async throws {
    let session = fixture.session(nil)
    let url = try fixture.url("/get")
    let code: URLError.Code? = await withCheckedContinuation { continuation in
      session.dataTask(with: url) { continuation.resume(returning: ($2 as? URLError)?.code) }.resume()
    }
    #expect(code == .unsupportedURL)
    let other: URLError.Code? = await withCheckedContinuation { continuation in
      session.downloadTask(with: url) { continuation.resume(returning: ($2 as? URLError)?.code) }.resume()
    }
    #expect(other == .unsupportedURL)
    let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
    #expect(error?.code == .unsupportedURL)
    #expect(server.requests.isEmpty)
    session.invalidateAndCancel()
  }

  @Test func anIdentifierHasOneSession() async throws {
    let first = fixture.session(nil)
    _ = await first.allTasks
    let recorder = DownloadRecorder()
    let second = fixture.session(recorder)
    second.downloadTask(with: try fixture.url("/get")).resume()
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .backgroundSessionInUseByAnotherProcess)
    second.invalidateAndCancel()
    first.invalidateAndCancel()
  }

  /// A program that makes its session anew at once gets it, however long the tasks of the earlier one take to end.
  @Test func aSessionIsMadeAgainAtOnce() async throws {
    fixture.server.route("GET", "/file") { _ in .text("content") }
    fixture.server.route("GET", "/slow", script: [.hang])
    for _ in 0..<20 {
      let first = fixture.session(nil)
      first.downloadTask(with: try fixture.url("/slow")).resume()
      first.invalidateAndCancel()
      let recorder = DownloadRecorder()
      let second = fixture.session(recorder)
      second.downloadTask(with: try fixture.url("/file")).resume()
      await second.flush()
      await recorder.waitForEnd()
      #expect(recorder.error == nil && recorder.content == Data("content".utf8))
      second.invalidateAndCancel()
      await recorder.waitForInvalidation()
    }
  }

  /// A session that waits for an earlier one has other numbers than tasks that the earlier one has not begun, and touches
  /// none of their files.
  @Test func aTaskThatBeginsLateKeepsItsFile() async throws {
    let resumeData = try await interrupted()
    let begun = TestServer.Signal()
    server.route("GET", "/late", script: [.wait(begun), .respond(.text("late"))])
    let (early, recorder) = (DownloadRecorder(), DownloadRecorder())
    let first = fixture.session(early)
    let late = first.downloadTask(with: try fixture.url("/late"))
    first.finishTasksAndInvalidate()
    let second = fixture.session(recorder)
    let task = second.downloadTask(withResumeData: resumeData)
    #expect(task.taskIdentifier > late.taskIdentifier)
    server.route("GET", "/file", script: [.expectHead, .hang])
    late.resume()
    task.resume()
    #expect(fixture.journal().allSatisfy { !$0.hasPrefix("\(task.taskIdentifier).") })
    begun.fire()
    await early.waitForEnd()
    #expect(early.error == nil && early.content == Data("late".utf8))
    await early.waitForInvalidation()
    second.invalidateAndCancel()
    await recorder.waitForEnd()
  }

  /// A session that waits for an earlier one ends its tasks, and itself, without it.
  @Test func aWaitingSessionIsCancelled() async throws {
    let signal = TestServer.Signal()
    server.route("GET", "/slow", script: [.wait(signal), .respond(.text("slow"))])
    let (early, recorder) = (DownloadRecorder(), DownloadRecorder())
    let first = fixture.session(early)
    first.downloadTask(with: try fixture.url("/slow")).resume()
    _ = await first.allTasks
    first.finishTasksAndInvalidate()
    let second = fixture.session(recorder)
    let task = second.downloadTask(with: try fixture.url("/slow"))
    task.resume()
    task.cancel()
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .cancelled)
    second.downloadTask(with: try fixture.url("/slow")).resume()
    second.invalidateAndCancel()
    await recorder.waitForInvalidation()
    // The earlier session is still at its task.
    signal.fire()
    await early.waitForEnd()
    #expect(early.error == nil && early.content == Data("slow".utf8))
  }

  /// Of two sessions that wait for an earlier one, one gets the identifier. The other one does not wait for it.
  @Test func twoSessionsWait() async throws {
    let signal = TestServer.Signal()
    server.route("GET", "/slow", script: [.wait(signal), .respond(.text("slow"))])
    server.route("GET", "/file") { _ in .text("content") }
    let first = fixture.session(nil)
    first.downloadTask(with: try fixture.url("/slow")).resume()
    _ = await first.allTasks
    first.finishTasksAndInvalidate()
    let recorders = [DownloadRecorder(), DownloadRecorder()]
    let sessions = recorders.map { fixture.session($0) }
    for session in sessions { session.downloadTask(with: try fixture.url("/file")).resume() }
    signal.fire()
    for recorder in recorders { await recorder.waitForEnd() }
    let codes = recorders.map { $0.error?.code }
    #expect(codes.filter { $0 == nil }.count == 1)
    #expect(codes.contains(.backgroundSessionInUseByAnotherProcess))
    for session in sessions { session.invalidateAndCancel() }
  }

  @Test func cancelledTasksLeaveNothing() async throws {
    let signal = TestServer.Signal()
    server.route(
      "GET", "/slow",
      script: [
        .send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: \"a\"\r\n\r\n"), .sendContent(0..<100_000),
        .wait(signal), .close,
      ])
    let recorder = DownloadRecorder { task, _ in task.cancel() }
    let session = fixture.session(recorder)
    session.downloadTask(with: try fixture.url("/slow")).resume()
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .cancelled && recorder.error?.downloadTaskResumeData == nil)
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    signal.fire()
    #expect(fixture.journal().isEmpty)
  }

  /// Cancels a download of 300,000 bytes after 100,000.
  private func interrupted() async throws -> Data {
    let signal = TestServer.Signal()
    server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\nETag: \"a\"\r\n\r\n"),
      .sendContent(0..<100_000), .wait(signal), .close,
    ])
    let data = Mutex<Data?>(nil)
    let recorder = DownloadRecorder { task, count in
      guard count == 100_000 else { return }
      task.cancel(byProducingResumeData: { new in data.withLock { $0 = new } })
    }
    let session = fixture.session(recorder)
    session.downloadTask(with: try fixture.url("/file")).resume()
    await recorder.waitForEnd()
    signal.fire()
    let resumeData = try #require(data.withLock { $0 })
    #expect(recorder.error?.downloadTaskResumeData == resumeData)
    session.invalidateAndCancel()
    await recorder.waitForInvalidation()
    return resumeData
  }

  @Test func resumeDataLeadsOn() async throws {
    let resumeData = try await interrupted()
    var rest = TestServer.Response(status: 206, fields: ["ETag": "\"a\""], body: .content(100_000..<300_000))
    rest.fields["Content-Range"] = "bytes 100000-299999/300000"
    server.enqueue([.expectRequest, .respond(rest), .hang])
    let next = DownloadRecorder()
    let other = fixture.session(next)
    other.downloadTask(withResumeData: resumeData).resume()
    await next.waitForEnd()
    #expect(next.error == nil && next.content == Data(TestServer.content(count: 300_000)))
    #expect(server.requests.last?.fields["range"] == "bytes=100000-")
    #expect(next.events.contains(.resumed(at: 100_000, of: 300_000)))
    other.invalidateAndCancel()
  }

  /// A service that was lost before it had the task: the file of the resume data is where it was moved for that service.
  @Test func resumeDataIsReadAgain() async throws {
    let resumeData = try await interrupted()
    let session = fixture.session(nil)
    let task = session.downloadTask(withResumeData: resumeData)
    let path = fixture.folder.appending(path: "content").path
    for _ in 0..<2 {
      var record = try BackgroundSession.record(of: task, in: session.core)
      BackgroundSession.moveContent(of: task, into: &record, to: path)
      #expect(record.resumePoint?.offset == 100_000 && record.hasContentFile)
    }
    // A file with other bytes does not continue.
    try Data("other".utf8).write(to: URL(filePath: path))
    var record = try BackgroundSession.record(of: task, in: session.core)
    BackgroundSession.moveContent(of: task, into: &record, to: path)
    #expect(record.resumePoint == nil && !record.hasContentFile)
    session.invalidateAndCancel()
  }

  /// A cancellation before the delegate has the file ends the task with an error, and without the file.
  @Test func aFileThatHasNotBeenGivenCanBeCancelled() async throws {
    server.route("GET", "/file") { _ in .text("text") }
    let (recorder, queue) = (DownloadRecorder(), OperationQueue())
    queue.maxConcurrentOperationCount = 1
    queue.isSuspended = true
    let session = URLSession(configuration: fixture.configuration(), delegate: recorder, delegateQueue: queue)
    let task = session.downloadTask(with: try fixture.url("/file"))
    task.resume()
    let fixture = fixture
    await Wait.until("the task has ended") { fixture.hasEnded(1) }
    task.cancel()
    queue.isSuspended = false
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .cancelled && !recorder.events.contains(.finished))
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(fixture.journal().isEmpty)
  }

  /// An invalidated session carries no further task out.
  @Test func invalidatedSessionsRefuseTasks() async throws {
    let signal = TestServer.Signal()
    server.route("GET", "/slow", script: [.wait(signal), .respond(.text("slow"))])
    let recorder = SessionRecorder()
    let session = fixture.session(recorder)
    let first = session.downloadTask(with: try fixture.url("/slow"))
    first.resume()
    session.finishTasksAndInvalidate()
    let second = session.downloadTask(with: try fixture.url("/slow"))
    second.delegate = recorder
    second.resume()
    await recorder.wait { $0.contains(.completed(second.taskIdentifier, .cancelled)) }
    signal.fire()
    await recorder.waitForInvalidation()
    #expect(first.error == nil && server.requests.count == 1)
  }

  /// Records that another version wrote stay as they are, and their identifiers are not used again.
  @Test func identifiersOfUnreadableRecordsAreNotUsed() async throws {
    server.route("GET", "/file") { _ in .text("text") }
    let folder = fixture.folder.appending(path: "larkspur/groups/tests/transfers/transfers")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data("damaged".utf8).write(to: folder.appending(path: "3.task"))
    try Data("bytes".utf8).write(to: folder.appending(path: "3.part"))
    let recorder = DownloadRecorder()
    let session = fixture.session(recorder)
    let task = session.downloadTask(with: try fixture.url("/file"))
    #expect(task.taskIdentifier >= 4)
    task.resume()
    await recorder.waitForEnd()
    #expect(recorder.error == nil)
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(fixture.journal() == ["3.damaged", "3.part"])
  }

  /// Counts from the disk are any numbers.
  @Test func countsOfARecordDoNotOverflow() throws {
    let session = fixture.session(nil)
    let task = session.downloadTask(with: try fixture.url("/file"))
    task.show { $0.take(TransferRecord.Counts.largest) }
    #expect(task.progress.completedUnitCount == .max)
    session.invalidateAndCancel()
  }

  @Test func tasksAreSuspended() async throws {
    server.route("GET", "/file") { _ in .text("text") }
    let recorder = DownloadRecorder()
    let session = fixture.session(recorder)
    let task = session.downloadTask(with: try fixture.url("/file"))
    task.earliestBeginDate = Date(timeIntervalSinceNow: 3600)
    task.resume()
    task.suspend()
    #expect(await session.allTasks == [task])
    #expect(task.state == .suspended)
    task.resume()
    #expect(task.state == .running && server.requests.isEmpty)
    task.cancel()
    await recorder.waitForEnd()
    #expect(recorder.error?.code == .cancelled)
    session.invalidateAndCancel()
  }

  /// Discretionary tasks wait while the machine is busy, and are loaded one at a time.
  @Test func discretionaryTasksWait() async throws {
    server.route("GET", "/file") { _ in .text("text") }
    let configuration = fixture.configuration()
    configuration.isDiscretionary = true
    let looks = Mutex<[TransferConditions]>([
      TransferConditions(loadPerProcessor: 0.6), TransferConditions(isOnBattery: true),
      TransferConditions(isMetered: true),
    ])
    let counts = Mutex(0)
    configuration.storage.transferConditions = {
      counts.withLock { $0 += 1 }
      return looks.withLock { $0.isEmpty ? TransferConditions() : $0.removeFirst() }
    }
    let recorder = DownloadRecorder()
    let session = fixture.session(recorder, configuration)
    let tasks = try (0..<3).map { _ in session.downloadTask(with: try fixture.url("/file")) }
    for task in tasks { task.resume() }
    await session.flush()
    #expect(server.requests.isEmpty)
    // Each resumption looks again.
    for _ in 0..<3 {
      tasks[0].suspend()
      tasks[0].resume()
    }
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(server.requests.count == 3)
    #expect(tasks.allSatisfy { $0.error == nil && $0.state == .completed })
    #expect(counts.withLock { $0 } >= 6)
  }

  /// A thousand tasks that end at once, because their time is over, end one after the other.
  @Test func manyTasksWhoseTimeIsOver() async throws {
    let configuration = fixture.configuration()
    configuration.isDiscretionary = true
    configuration.timeoutIntervalForResource = 0.001
    configuration.storage.transferConditions = { TransferConditions(isOnBattery: true) }
    let recorder = SessionRecorder()
    let session = fixture.session(recorder, configuration)
    let tasks = try (0..<1000).map { _ in session.downloadTask(with: try fixture.url("/file")) }
    for task in tasks { task.resume() }
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(tasks.allSatisfy { ($0.error as? URLError)?.code == .timedOut })
    #expect(fixture.journal().isEmpty)
  }

  /// A delegate decides on a task whose time has come, and answers challenges.
  @Test func delegatesAreAsked() async throws {
    server.route("GET", "/secret") { request in
      request.fields["authorization"] == nil
        ? TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"vault\""]) : .text("secret")
    }
    let program = AskedProgram(next: URLRequest(url: try fixture.url("/secret")))
    let session = fixture.session(program)
    let task = session.downloadTask(with: try fixture.url("/first"))
    task.earliestBeginDate = Date()
    task.resume()
    session.finishTasksAndInvalidate()
    try await program.isOver.wait()
    #expect(program.log.withLock { $0 } == ["delayed /first", "challenge vault", "finished secret", "completed"])
    #expect(server.requests.map(\.path) == ["/secret", "/secret"])
  }
}

private final class AskedProgram: NSObject, URLSessionDownloadDelegate {
  let log = Mutex<[String]>([])
  let isOver = TestServer.Signal()
  private let next: URLRequest

  init(next: URLRequest) { self.next = next }

  private func note(_ line: String) { log.withLock { $0.append(line) } }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
    completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
  ) {
    note("delayed \(request.url?.path ?? "")")
    completionHandler(.useNewRequest, next)
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
    completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    note("challenge \(challenge.protectionSpace.realm ?? "")")
    completionHandler(.useCredential, URLCredential(user: "me", password: "word", persistence: .none))
  }

  func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
    note("finished \((try? String(contentsOf: location, encoding: .utf8)) ?? "")")
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
    note("completed")
  }

  func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) { isOver.fire() }
}

extension TransferRecord.Counts {
  fileprivate static var largest: Self {
    var counts = Self()
    counts.sent = .max
    counts.received = .max
    return counts
  }
}
