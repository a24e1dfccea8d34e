import Dispatch
import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import AFNetworking

/// Tests which operations delay the exit of the process. The tests call the waiting function on another thread and do
/// not exit.
@Suite struct ExitHoldTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  /// Runs the waiting function on a thread of its own, and suspends until it has returned.
  private func wait(for hold: ExitHold, until deadline: DispatchTime) async {
    await withCheckedContinuation { done in
      Thread {
        hold.wait(until: deadline)
        done.resume()
      }.start()
    }
  }

  private func hold(of operation: AFURLConnectionOperation) throws -> ExitHold {
    try #require(operation.read { $0.exitHold })
  }

  private func operation(_ path: String) throws -> AFURLConnectionOperation {
    try OperationKit.operation(AFURLConnectionOperation.self, server.url(path))
  }

  @Test func theEndWaitsForWhatRuns() async throws {
    let signal = TestServer.Signal()
    server.route("GET", "/slow") { _ in
      .init(
        body: .stream(count: 2) { writer in
          try writer.write("a")
          try writer.wait(signal)
          try writer.write("b")
        })
    }
    let operation = try operation("/slow")
    operation.setShouldExecuteAsBackgroundTaskWithExpirationHandler { Issue.record("there was time") }
    operation.start()
    try await server.waitForRequests(1)
    // Before the child task begins, which may be after the operation's end.
    let hold = try hold(of: operation)
    async let end: Void = wait(for: hold, until: .distantFuture)
    signal.fire()
    await end
    #expect(operation.isFinished && operation.responseString == "ab")
  }

  @Test func whenTheTimeIsUpItIsCancelled() async throws {
    let calls = Mutex(0)
    let operation = try operation("/hang")
    operation.setShouldExecuteAsBackgroundTaskWithExpirationHandler { calls.withLock { $0 += 1 } }
    // Only the first handler counts.
    operation.setShouldExecuteAsBackgroundTaskWithExpirationHandler { Issue.record("there is one already") }
    operation.start()
    try await server.waitForRequests(1)
    await wait(for: try hold(of: operation), until: .now())
    await operation.isOver()
    #expect(calls.withLock { $0 } == 1 && operation.isCancelled)
    #expect(ExitHold.secondsMax == 30)
  }

  @Test func anOperationThatDoesNotRunIsNotAwaited() async throws {
    let (idle, finished) = (try operation("/get"), try operation("/get"))
    for operation in [idle, finished] {
      operation.setShouldExecuteAsBackgroundTaskWithExpirationHandler { Issue.record("the operation does not run") }
    }
    await wait(for: try hold(of: idle), until: .distantFuture)
    #expect(!idle.isCancelled)
    let hold = try hold(of: finished)
    await finished.run()
    await wait(for: hold, until: .distantFuture)
    finished.setShouldExecuteAsBackgroundTaskWithExpirationHandler(nil)
    #expect(finished.read { $0.exitHold == nil })
  }

  /// The end of an operation comes before the cookies are written.
  @Test(.ownThread) func theCookiesOfTheOperationAreWritten() throws {
    let (signal, directory) = (TestServer.Signal(), try TemporaryDirectory())
    server.enqueue([
      .expectRequest, .wait(signal),
      .respond(.init(status: 200, fields: ["Set-Cookie": "late=1; Max-Age=3600"], body: .text("content"))),
    ])
    let program = try SiblingProcess(
      "exit-hold", [server.url("/late")], environment: ["XDG_DATA_HOME": directory.url.path])
    #expect(program.wait(for: "exiting"))
    signal.fire()
    #expect(try program.text() == "")
    let storage = HTTPCookieStorage(disk: CookieDisk(path: directory.path("TestHelper/larkspur")))
    #expect(storage.cookies?.map(\.name) == ["late"])
  }
}
