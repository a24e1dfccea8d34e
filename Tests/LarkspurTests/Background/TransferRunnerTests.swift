import Foundation
import LarkspurHTTP
import LarkspurTestServer
import LarkspurTransfers
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests runners without a session of a program.
@Suite(.timeLimit(.minutes(1))) struct TransferRunnerTests {
  let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  private var session: TransferSession {
    TransferSession(identifier: "transfers", directory: fixture.folder.appending(path: "journal").path, settings: [])
  }

  private func runner() throws -> TransferRunner { try TransferRunner(session, fixture.configuration()) { _ in } }

  private func record(_ path: String, task: Int = 1) throws -> TransferRecord {
    var record = TransferRecord(
      task: task, session: "transfers", kind: .download,
      request: TransferRequest(url: try fixture.url(path).absoluteString),
      createdSeconds: Date().timeIntervalSince1970)
    record.state = .running
    return record
  }

  /// The time for the resource stands still while a task is suspended, also over the ends of processes.
  @Test(arguments: [true, false]) func aSuspensionCostsNoTime(wasSuspended: Bool) async throws {
    var record = try record("/bytes/10")
    record.state = .suspended
    record.createdSeconds -= 30 * 86_400
    if wasSuspended { record.suspendedSeconds = record.createdSeconds + 10 }
    let ended = try await end(of: record, behind: .resume(task: 1))
    #expect(ended.failure?.code == (wasSuspended ? nil : Int64(URLError.Code.timedOut.rawValue)))
    #expect((ended.response?.status == 200) == wasSuspended && ended.suspendedSeconds == nil)
  }

  /// The wait before the next try is short again behind a try that has brought enough bytes, and grows otherwise.
  @Test(arguments: [TransferAttemptMachine.advanceMin, TransferAttemptMachine.advanceMin - 1])
  func theBackOffAfterAnAdvance(count: Int) async throws {
    fixture.server.enqueue([
      .expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: \"a\"\r\n\r\n"),
      .sendContent(0..<count), .close,
    ])
    let runner = try runner()
    let failures = Mutex<UInt32>(0)
    let isOver = TestServer.Signal()
    runner.start { notice in
      guard case .changed(let record) = notice, record.nextAttemptSeconds != nil else { return }
      failures.withLock { $0 = record.failedAttempts }
      isOver.fire()
    }
    var record = try record("/file")
    record.failedAttempts = 5
    runner.send(.create(record))
    try await isOver.wait()
    #expect(failures.withLock { $0 } == (count < TransferAttemptMachine.advanceMin ? 6 : 1))
  }

  /// A new request that no record can hold ends the task with an error.
  @Test func aNewRequestIsTooLarge() async throws {
    let runner = try runner()
    let last = Mutex<TransferRecord?>(nil)
    let isOver = TestServer.Signal()
    let large = TransferRequest(url: "http://localhost/" + String(repeating: "x", count: TransferRecord.newBytesMax))
    runner.start { [weak runner] notice in
      switch notice {
      case .question(let number, task: 1, .beginDelayed):
        runner?.send(.answer(question: number, .useNewRequest(large)))
      case .changed(let record) where record.state == .completed:
        last.withLock { $0 = record }
        isOver.fire()
      default: break
      }
    }
    var record = try record("/file")
    record.earliestBeginSeconds = record.createdSeconds - 1
    runner.send(.create(record))
    try await isOver.wait()
    #expect(last.withLock { $0?.failure?.code } == Int64(URLError.Code.dataLengthExceedsMaximum.rawValue))
    #expect(fixture.server.requestsReceived == 0)
  }

  /// A program in another process answers challenges as questions.
  @Test func challengesBecomeQuestions() async throws {
    fixture.server.route("GET", "/secret") { request in
      request.fields["authorization"] == nil
        ? TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"vault\""]) : .text("secret")
    }
    let runner = try runner()
    let asked = Mutex<TransferChallenge?>(nil)
    let last = Mutex<TransferRecord?>(nil)
    let isOver = TestServer.Signal()
    runner.start { [weak runner] notice in
      switch notice {
      case .question(let number, task: 1, .challenge(let challenge)):
        asked.withLock { $0 = challenge }
        let credential = TransferAnswer.Credential.password(user: "me", password: "word", persistence: 0)
        runner?.send(
          .answer(question: number, .challenge(disposition: .useCredential, credential: credential)))
      case .changed(let record) where record.state == .completed:
        last.withLock { $0 = record }
        isOver.fire()
      default: break
      }
    }
    runner.send(.create(try record("/secret")))
    try await isOver.wait()
    #expect(asked.withLock { $0?.realm } == "vault" && asked.withLock { $0?.previousFailures } == 0)
    #expect(last.withLock { $0?.response?.status } == 200 && last.withLock { $0?.failure } == nil)
    #expect(try String(contentsOfFile: runner.contentPath(of: 1), encoding: .utf8) == "secret")
  }

  /// The questions of an attempt end with it, also if another attempt follows.
  @Test func questionsEndWithTheirAttempt() async throws {
    fixture.server.route("GET", "/secret") { _ in
      TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"vault\""])
    }
    let runner = try runner()
    let isAsked = TestServer.Signal()
    runner.start { notice in if case .question = notice { isAsked.fire() } }
    runner.send(.create(try record("/secret")))
    try await isAsked.wait()
    let (before, after) = runner.queue.sync {
      let before = runner.questions.count
      if let inner = runner.attempts[1]?.inner { runner.completed(inner, URLError(.networkConnectionLost)) }
      return (before, runner.questions.count)
    }
    #expect(before == 1 && after == 0)
    await withCheckedContinuation { isClosed in runner.close { isClosed.resume() } }
  }

  /// A discretionary download does not go on at its full speed while another session of the process has a task that is not
  /// discretionary.
  ///
  /// - Parameters:
  ///   - suspension: The length of a suspension by the program, in seconds, while the runner pauses the task.
  ///   - hold: The time for which the other task goes on meanwhile, in seconds. A pause is prolonged after 1 s.
  @Test(arguments: [(nil, 0), (nil, 1.5), (0, 0), (1.5, 0)] as [(Double?, Double)])
  func discretionaryTasksYield(suspension: Double?, hold: Double) async throws {
    let (isPlainOver, hasFirst, hasSecond) = (TestServer.Signal(), TestServer.Signal(), TestServer.Signal())
    fixture.server.route(
      "GET", "/held", script: [.wait(isPlainOver), .respond(.text("held")), .close])
    let count = 4_000_000
    fixture.server.route(
      "GET", "/large",
      script: [
        .send("HTTP/1.1 200 OK\r\nContent-Length: \(count)\r\n\r\n"), .sendContent(0..<1), .wait(hasFirst),
        .sendContent(1..<11), .wait(hasSecond), .sendContent(11..<count), .close,
      ])
    let traffic = TransferTraffic()
    let ends = Mutex<[String]>([])
    let isOver = TestServer.Signal()
    func runner(_ name: String) throws -> TransferRunner {
      var session = session
      session.directory += name
      let configuration = fixture.configuration()
      configuration.storage.transferConditions = { TransferConditions() }
      // At this rate the download takes longer than any test.
      return try TransferRunner(session, configuration, traffic: traffic, pacedBytesPerSecond: 1) { _ in }
    }
    let (plain, discretionary) = (try runner("plain"), try runner("discretionary"))
    plain.start { notice in
      guard case .changed(let record) = notice, record.state == .completed else { return }
      ends.withLock { $0.append("plain") }
    }
    discretionary.start { notice in
      switch notice {
      case .progress(_, let counts):
        if counts.received >= 1 { hasFirst.fire() }
        guard counts.received >= 11 else { return }
        // The task has been paused before this notice.
        guard !hasSecond.hasFired else { return }
        hasSecond.fire()
        DispatchQueue.global().asyncAfter(deadline: .now() + hold) { isPlainOver.fire() }
        guard let suspension else { return }
        discretionary.send(.suspend(task: 1))
        DispatchQueue.global().asyncAfter(deadline: .now() + suspension) { discretionary.send(.resume(task: 1)) }
      case .changed(let record) where record.state == .completed:
        ends.withLock { $0.append("discretionary \(record.failure?.message ?? "")") }
        isOver.fire()
      default: break
      }
    }
    plain.send(.create(try record("/held")))
    await Wait.until("the traffic is busy") { traffic.isBusy }
    var record = try record("/large")
    record.isDiscretionary = true
    discretionary.send(.create(record))
    try await isOver.wait()
    #expect(ends.withLock { $0 } == ["plain", "discretionary "])
    #expect(!traffic.isBusy)
    #expect(try Data(contentsOf: URL(filePath: discretionary.contentPath(of: 1))).count == count)
  }

  /// A discretionary task that is resumed waits while another one has its turn.
  @Test func oneDiscretionaryTaskAtATime() async throws {
    let signal = TestServer.Signal()
    for path in ["/1", "/2"] { fixture.server.route("GET", path, script: [.wait(signal), .respond(.text(path))]) }
    let configuration = fixture.configuration()
    configuration.storage.transferConditions = { TransferConditions() }
    let runner = try TransferRunner(session, configuration) { _ in }
    let ends = Mutex<[Int]>([])
    let isOver = TestServer.Signal()
    runner.start { notice in
      guard case .changed(let record) = notice, record.state == .completed, record.failure == nil else { return }
      ends.withLock { $0.append(record.task) }
      if ends.withLock({ $0.count }) == 2 { isOver.fire() }
    }
    for task in 1...2 {
      var record = try record("/\(task)", task: task)
      record.isDiscretionary = true
      runner.send(.create(record))
    }
    _ = try await fixture.server.waitForRequests(1)
    runner.send(.suspend(task: 1))
    _ = try await fixture.server.waitForRequests(2)
    runner.send(.resume(task: 1))
    #expect(runner.queue.sync { runner.attempts.values.filter(\.isLoading).map(\.record.task) } == [2])
    signal.fire()
    try await isOver.wait()
    #expect(ends.withLock { $0 } == [2, 1])
    #expect(fixture.server.requests.map(\.path) == ["/1", "/2", "/1"])
  }

  /// A discretionary task does not wait for the timer of an earlier one, nor for the answer to its question.
  @Test(arguments: [true, false]) func anEarlierDiscretionaryTaskIsLate(asks: Bool) async throws {
    let signal = TestServer.Signal()
    for path in ["/1", "/2"] { fixture.server.route("GET", path, script: [.wait(signal), .respond(.text(path))]) }
    let configuration = fixture.configuration()
    configuration.storage.transferConditions = { TransferConditions() }
    let seconds = Mutex(0.0)
    let now = TransferMoment.now
    let runner = try TransferRunner(
      session, configuration, traffic: .shared,
      clock: {
        let passed = seconds.withLock { $0 }
        return TransferMoment(
          wallSeconds: now.wallSeconds + passed, bootSeconds: now.bootSeconds + passed, boot: now.boot)
      }
    ) { _ in }
    runner.start { _ in }
    for task in 1...2 {
      var record = try record("/\(task)", task: task)
      record.isDiscretionary = true
      if task == 1, asks { record.earliestBeginSeconds = now.wallSeconds - 1 }
      if task == 1, !asks { record.nextAttemptSeconds = record.seconds(at: now) + 1000 }
      runner.send(.create(record))
      runner.queue.sync {}
      seconds.withLock { $0 = 1001 }
    }
    _ = try await fixture.server.waitForRequests(1)
    #expect(fixture.server.requests.map(\.path) == [asks ? "/2" : "/1"])
    signal.fire()
  }

  /// A new request before an upload that continues an earlier one: other fields go to the upload's resource, and another
  /// URL has none.
  @Test(arguments: ["/file", "/other"]) func aNewRequestForAnUpload(path: String) async throws {
    let resource = try fixture.url("/uploads/1").absoluteString
    fixture.server.enqueue([.expectRequest, .respond(.text("no", status: 403)), .hang])
    let file = try #require(TransferRecord.UploadFile(atPath: try fixture.file("upload", "content").path))
    var record = TransferRecord(
      task: 1, session: "transfers", kind: .upload,
      request: TransferRequest(url: try fixture.url("/file").absoluteString, method: "PUT"), uploadFile: file,
      createdSeconds: Date().timeIntervalSince1970)
    record.state = .running
    record.earliestBeginSeconds = record.createdSeconds - 1
    let point = UploadPoint(version: .interop8, resource: resource, length: 7, acknowledged: 3, sent: 7)
    record.uploadPoint = UploadResumeData(
      point: point, url: record.originalRequest.url, method: "PUT", fields: [.init("X-Name", "old")], path: file.path,
      file: file.identity
    ).encoded()
    #expect(record.uploadPoint != nil)
    var new = TransferRequest(url: try fixture.url(path).absoluteString, method: "PUT")
    new.fields = [Field("X-Name", "new")]
    let (runner, isOver) = (try runner(), TestServer.Signal())
    runner.start { [weak runner, new] notice in
      switch notice {
      case .question(let number, task: 1, .beginDelayed):
        runner?.send(.answer(question: number, .useNewRequest(new)))
      case .changed(let record) where record.state == .completed: isOver.fire()
      default: break
      }
    }
    runner.send(.create(record))
    try await isOver.wait()
    let request = try #require(fixture.server.requests.first)
    #expect(request.path == (path == "/file" ? "/uploads/1" : "/other"))
    #expect(request.method == (path == "/file" ? "HEAD" : "PUT") && request.fields["X-Name"] == "new")
  }

  /// Carries a task out, and returns the record of its end.
  private func end(
    of record: TransferRecord, _ configuration: URLSessionConfiguration? = nil, behind command: TransferCommand? = nil
  ) async throws -> TransferRecord {
    let runner = try TransferRunner(session, configuration ?? fixture.configuration()) { _ in }
    let last = Mutex<TransferRecord?>(nil)
    let isOver = TestServer.Signal()
    runner.start { notice in
      guard case .changed(let record) = notice, record.state == .completed else { return }
      last.withLock { $0 = record }
      isOver.fire()
    }
    runner.send(.create(record))
    if let command { runner.send(command) }
    try await isOver.wait()
    await withCheckedContinuation { continuation in runner.close { continuation.resume() } }
    let ended = try #require(last.withLock { $0 })
    // The end is in the journal as it was told, and can be sent.
    #expect(try TransferJournal(path: session.directory, session: "transfers") { _ in }.content().records == [ended])
    #expect(ended.fits(TransferRecord.bytesMax))
    return ended
  }

  /// The body stands in the original request, and behind the redirect once more.
  @Test func aBodyBehindARedirectFillsNoRecord() async throws {
    fixture.server.route("POST", "/first") { _ in TestServer.Response(status: 307, fields: ["Location": "/second"]) }
    fixture.server.route("POST", "/second") { request in .text("\(request.body.count)") }
    var record = try record("/first")
    record.originalRequest.method = "POST"
    record.originalRequest.body = Array(repeating: 0, count: 700_000)
    let ended = try await end(of: record)
    #expect(
      ended.failure == nil && ended.response?.status == 200 && ended.currentRequest?.url.hasSuffix("/second") == true)
    #expect(ended.originalRequest.body?.count == 700_000 && ended.currentRequest?.body == nil)
  }

  @Test func longRedirectsFillNoRecord() async throws {
    let long = String(repeating: "x", count: 30_000)
    for step in 0..<10 {
      fixture.server.route("GET", "/\(step)/\(step == 0 ? "" : long)") { _ in
        TestServer.Response(status: 302, fields: ["Location": "/\(step + 1)/\(long)"])
      }
    }
    fixture.server.route("GET", "/10/\(long)") { _ in .text("here") }
    let ended = try await end(of: try record("/0/"))
    #expect(ended.failure == nil && ended.redirects.count == 2)
  }

  /// The journal names a URL of a file of the user.
  @Test func onlyHTTPIsLoaded() async throws {
    let file = try fixture.file("secret", "secret")
    var record = try record("/")
    record.originalRequest = TransferRequest(url: file.absoluteString)
    let ended = try await end(of: record)
    #expect(ended.failure?.code == Int64(URLError.Code.unsupportedURL.rawValue) && !ended.hasContentFile)
  }

  /// A server whose upload resource is away for a time: each attempt's session goes on until the time for the task is over.
  @Test func uploadsAreContinuedWithoutLimit() {
    let configuration = fixture.configuration()
    let retry = configuration.ofAttempts.uploadRetry
    #expect(retry != nil && retry?.failuresMax == nil)
    var own = UploadRetry()
    own.failuresMax = 7
    configuration.uploadRetry = own
    #expect(configuration.ofAttempts.uploadRetry?.failuresMax == 7)
  }

  /// The bytes of a download that the disk has no room for go with it.
  @Test(arguments: [URLError.Code.cannotWriteToFile, .badServerResponse]) func aFullDisk(code: URLError.Code)
    async throws
  {
    let signal = TestServer.Signal()
    fixture.server.route(
      "GET", "/file",
      script: [
        .send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: \"a\"\r\n\r\n"), .sendContent(0..<100_000),
        .wait(signal), .close,
      ])
    let runner = try runner()
    let last = Mutex<TransferRecord?>(nil)
    let isOver = TestServer.Signal()
    runner.start { [weak runner] notice in
      switch notice {
      case .progress:
        guard let runner, let inner = runner.attempts[1]?.inner else { return }
        runner.completed(inner, URLError(code))
      case .changed(let record) where record.state == .completed:
        last.withLock { $0 = record }
        isOver.fire()
      default: break
      }
    }
    runner.send(.create(try record("/file")))
    try await isOver.wait()
    let isKept = code != .cannotWriteToFile
    #expect(last.withLock { $0?.failure?.code } == Int64(code.rawValue))
    #expect(last.withLock { $0?.resumePoint != nil && $0?.hasContentFile == true } == isKept)
    #expect(FileManager.default.fileExists(atPath: runner.contentPath(of: 1)) == isKept)
    signal.fire()
  }

  /// The end of a new task that the disk has refused comes to the disk when there is room.
  @Test func aNewTaskThatTheDiskRefuses() async throws {
    let runner = try runner()
    let obstacle = URL(filePath: session.directory).appending(path: "1.new")
    try FileManager.default.createDirectory(at: obstacle, withIntermediateDirectories: false)
    let isOver = TestServer.Signal()
    runner.start { if case .changed(let record) = $0, record.state == .completed { isOver.fire() } }
    runner.send(.create(try record("/bytes/10")))
    try await isOver.wait()
    try FileManager.default.removeItem(at: obstacle)
    await withCheckedContinuation { continuation in runner.close { continuation.resume() } }
    let next = try self.runner()
    #expect(next.records.map(\.failure?.code) == [Int64(URLError.Code.cannotWriteToFile.rawValue)])
  }

  /// A clock that is set while a task waits neither ends the task nor keeps it.
  @Test(arguments: [-40 * 365 * 86_400.0, 40 * 365 * 86_400.0]) func aClockThatIsSet(step: Double) async throws {
    fixture.server.enqueue([
      .expectRequest, .respond(TestServer.Response(status: 503, fields: ["Retry-After": "0"])), .expectRequest,
      .respond(.text("here")), .hang,
    ])
    let shift = Mutex(0.0)
    let runner = try TransferRunner(session, fixture.configuration(), traffic: TransferTraffic()) {
      var moment = TransferMoment.now
      moment.wallSeconds += shift.withLock { $0 }
      return moment
    } log: { _ in
    }
    let last = Mutex<TransferRecord?>(nil)
    let isOver = TestServer.Signal()
    runner.start { notice in
      guard case .changed(let record) = notice else { return }
      if record.nextAttemptSeconds != nil { shift.withLock { $0 = step } }
      guard record.state == .completed else { return }
      last.withLock { $0 = record }
      isOver.fire()
    }
    var record = try record("/file")
    record.adjust(to: .now)
    runner.send(.create(record))
    try await isOver.wait()
    #expect(last.withLock { $0?.failure } == nil && last.withLock { $0?.response?.status } == 200)
    // The record has the times of the new clock.
    let created = try #require(last.withLock { $0?.createdSeconds })
    #expect(abs(created - step - record.createdSeconds) < 60)
  }

  /// The time of a task counts from the moment at which it is found, if the clock was ahead when it was made, and a task
  /// whose time is over ends.
  @Test(arguments: [(365 * 86_400.0, nil), (-365 * 86_400.0, URLError.Code.timedOut)])
  func aClockOfAnEarlierBoot(offset: Double, code: URLError.Code?) async throws {
    let now = 1_900_000_000.0
    let runner = try TransferRunner(session, fixture.configuration(), traffic: TransferTraffic()) {
      TransferMoment(wallSeconds: now, bootSeconds: 1, boot: 2)
    } log: { _ in
    }
    let last = Mutex<TransferRecord?>(nil)
    let isOver = TestServer.Signal()
    runner.start { notice in
      guard case .changed(let record) = notice, record.state == .completed else { return }
      last.withLock { $0 = record }
      isOver.fire()
    }
    var record = try record("/bytes/10")
    record.createdSeconds = now + offset
    record.clock = TransferRecord.Clock(boot: 1, startSeconds: now + offset)
    runner.send(.create(record))
    try await isOver.wait()
    #expect(last.withLock { $0?.failure?.code } == code.map { Int64($0.rawValue) })
    #expect(last.withLock { $0?.createdSeconds } == min(now, now + offset))
  }

  /// While a task waits for another try its record says so, and no longer when it is loaded.
  @Test func theTimeOfTheNextTryIsReported() async throws {
    fixture.server.enqueue([
      .expectRequest, .respond(TestServer.Response(status: 503, fields: ["Retry-After": "0"])), .expectRequest,
      .respond(.text("here")), .hang,
    ])
    let runner = try runner()
    let waits = Mutex<[Bool]>([])
    let isOver = TestServer.Signal()
    runner.start { notice in
      guard case .changed(let record) = notice else { return }
      waits.withLock { $0.append(record.nextAttemptSeconds != nil) }
      if record.state == .completed { isOver.fire() }
    }
    runner.send(.create(try record("/file")))
    try await isOver.wait()
    #expect(waits.withLock { $0 } == [true, false, false])
  }

  /// The journal is another owner's only when nothing is written any more.
  @Test func closingWaitsForTheTasks() async throws {
    let signal = TestServer.Signal()
    fixture.server.route(
      "GET", "/slow",
      script: [
        .send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nETag: \"a\"\r\n\r\n"), .sendContent(0..<100_000),
        .wait(signal), .close,
      ])
    for _ in 0..<20 {
      let runner = try runner()
      let isReceiving = TestServer.Signal()
      runner.start { if case .progress = $0 { isReceiving.fire() } }
      runner.send(.create(try record("/slow")))
      try await isReceiving.wait()
      let isClosed = TestServer.Signal()
      runner.close { isClosed.fire() }
      try await isClosed.wait()
      let next = try self.runner()
      #expect(next.records.map(\.state) == [.running])
      next.send(.cancel(task: 1, isKeepingContent: false))
      next.send(.acknowledge(task: 1, count: 1))
      await withCheckedContinuation { continuation in next.close { continuation.resume() } }
      #expect(!FileManager.default.fileExists(atPath: session.directory))
    }
    signal.fire()
  }
}
