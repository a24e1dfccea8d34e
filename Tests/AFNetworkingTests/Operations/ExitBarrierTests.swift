import Dispatch
import Foundation
import LarkspurTestServer
import Synchronization
import Testing

@testable import AFNetworking

/// Tests which operations delay the exit of the process. The tests call the waiting function on another thread and do
/// not exit.
@Suite(.serialized) struct ExitBarrierTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  /// Runs the waiting function on a thread of its own, and suspends until it has returned.
  private func wait(until deadline: DispatchTime) async {
    await withCheckedContinuation { done in
      Thread {
        ExitBarrier.wait(until: deadline)
        done.resume()
      }.start()
    }
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
    async let end: Void = wait(until: .distantFuture)
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
    await wait(until: .now())
    await operation.isOver()
    #expect(calls.withLock { $0 } == 1 && operation.isCancelled)
    #expect(ExitBarrier.secondsMax == 30)
  }

  @Test func nobodyWaitsForWhatDoesNotRun() async throws {
    let (idle, finished, ordinary) = (try operation("/get"), try operation("/get"), try operation("/hang"))
    idle.setShouldExecuteAsBackgroundTaskWithExpirationHandler(nil)
    finished.setShouldExecuteAsBackgroundTaskWithExpirationHandler { Issue.record("it has finished") }
    await finished.run()
    ordinary.start()
    await wait(until: .distantFuture)
    #expect(!idle.isCancelled && ordinary.isExecuting)
    ordinary.cancel()
    await ordinary.isOver()
  }
}
