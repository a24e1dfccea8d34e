import Foundation
import LarkspurTestServer
import LarkspurTransfers
import Synchronization
import Testing

@testable import Larkspur

/// Tests executors without a session of a program.
@Suite(.timeLimit(.minutes(1))) struct TransferExecutorTests {
  let fixture: BackgroundFixture

  init() throws { fixture = try BackgroundFixture() }

  private var session: TransferSession {
    TransferSession(identifier: "transfers", directory: fixture.folder.appending(path: "journal").path, settings: [])
  }

  private func executor() throws -> TransferExecutor { try TransferExecutor(session, fixture.configuration()) { _ in } }

  private func record(_ path: String, task: Int = 1) throws -> TransferRecord {
    var record = TransferRecord(
      task: task, session: "transfers", kind: .download,
      request: TransferRequest(url: try fixture.url(path).absoluteString),
      createdSeconds: Date().timeIntervalSince1970)
    record.state = .running
    return record
  }

  /// A program in another process answers challenges as questions.
  @Test func challengesBecomeQuestions() async throws {
    fixture.server.route("GET", "/secret") { request in
      request.fields["authorization"] == nil
        ? TestServer.Response(status: 401, fields: ["WWW-Authenticate": "Basic realm=\"vault\""]) : .text("secret")
    }
    let executor = try executor()
    let asked = Mutex<TransferChallenge?>(nil)
    let last = Mutex<TransferRecord?>(nil)
    let isOver = TestServer.Signal()
    executor.start { [weak executor] notice in
      switch notice {
      case .question(let number, task: 1, .challenge(let challenge)):
        asked.withLock { $0 = challenge }
        let credential = TransferAnswer.Credential.password(user: "me", password: "word", persistence: 0)
        executor?.send(
          .answer(question: number, .challenge(disposition: .useCredential, credential: credential)))
      case .changed(let record) where record.state == .completed:
        last.withLock { $0 = record }
        isOver.fire()
      default: break
      }
    }
    executor.send(.create(try record("/secret")))
    try await isOver.wait()
    #expect(asked.withLock { $0?.realm } == "vault" && asked.withLock { $0?.previousFailures } == 0)
    #expect(last.withLock { $0?.response?.status } == 200 && last.withLock { $0?.failure } == nil)
    #expect(try String(contentsOfFile: executor.contentPath(of: 1), encoding: .utf8) == "secret")
  }

  /// A discretionary download does not go on at its full speed while another session of the process has a task that is not
  /// discretionary.
  @Test func discretionaryTasksYield() async throws {
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
    func executor(_ name: String) throws -> TransferExecutor {
      var session = session
      session.directory += name
      let configuration = fixture.configuration()
      configuration.storage.transferConditions = { TransferConditions() }
      // At this rate the download takes longer than any test.
      return try TransferExecutor(session, configuration, traffic: traffic, pacedBytesPerSecond: 1) { _ in }
    }
    let (plain, discretionary) = (try executor("plain"), try executor("discretionary"))
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
        hasSecond.fire()
        isPlainOver.fire()
      case .changed(let record) where record.state == .completed:
        ends.withLock { $0.append("discretionary \(record.failure?.message ?? "")") }
        isOver.fire()
      default: break
      }
    }
    plain.send(.create(try record("/held")))
    await eventually { traffic.isBusy }
    var record = try record("/large")
    record.isDiscretionary = true
    discretionary.send(.create(record))
    try await isOver.wait()
    #expect(ends.withLock { $0 } == ["plain", "discretionary "])
    #expect(!traffic.isBusy)
    #expect(try Data(contentsOf: URL(filePath: discretionary.contentPath(of: 1))).count == count)
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
      let executor = try executor()
      let isReceiving = TestServer.Signal()
      executor.start { if case .progress = $0 { isReceiving.fire() } }
      executor.send(.create(try record("/slow")))
      try await isReceiving.wait()
      let isClosed = TestServer.Signal()
      executor.close { isClosed.fire() }
      try await isClosed.wait()
      let next = try self.executor()
      #expect(next.records.map(\.state) == [.running])
      next.send(.cancel(task: 1, isKeepingContent: false))
      next.send(.acknowledge(task: 1, count: 1))
      await withCheckedContinuation { continuation in next.close { continuation.resume() } }
      #expect(!FileManager.default.fileExists(atPath: session.directory))
    }
    signal.fire()
  }
}
