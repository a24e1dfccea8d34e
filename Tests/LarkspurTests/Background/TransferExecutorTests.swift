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
