import AFNetworking
import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@Suite struct BatchTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  @Test func allBlocksComeBeforeTheLast() async throws {
    let events = Mutex<[String]>([])
    let done = Results<Int>()
    let operations = try (0..<10).map { number in
      let operation = AFHTTPRequestOperation(request: try OperationKit.request(server.url("/get?\(number)")))
      operation.setCompletionBlockWithSuccess { _, _ in events.withLock { $0.append("success") } }
      return operation
    }
    let batch = AFURLConnectionOperation.batch(ofRequestOperations: operations) { finished, total in
      events.withLock { $0.append("progress \(finished) of \(total)") }
    } completionBlock: { finished in
      done.add(finished.count)
    }
    #expect(batch.count == 11)
    OperationKit.add(batch)
    #expect(try await done.next() == 10)
    let seen = events.withLock { $0 }
    #expect(
      seen.count { $0 == "success" } == 10 && seen.filter { $0 != "success" } == (1...10).map { "progress \($0) of 10" }
    )
    #expect(operations.allSatisfy { $0.isFinished && $0.error == nil } && server.requestsReceived == 10)
  }

  @Test func failuresAndCancelsAreEnds() async throws {
    let done = Results<[Any]>()
    let operations = try ["/close", "/hang", "/get"].map {
      AFURLConnectionOperation(request: try OperationKit.request(server.url($0)))
    }
    let batch = AFURLConnectionOperation.batchOfRequestOperations(operations, completionBlock: { done.add($0) })
    OperationKit.add(batch)
    try await server.waitForRequests(3)
    operations[1].cancel()
    let finished = try await done.next().compactMap { $0 as? AFURLConnectionOperation }
    #expect(finished.map { $0.error == nil } == [false, false, true])
  }

  @Test(arguments: [true, false]) func anEmptyOneEnds(isNil: Bool) async throws {
    let done = Results<Int>()
    let batch = AFURLConnectionOperation.batch(
      ofRequestOperations: isNil ? nil : [], progressBlock: { _, _ in Issue.record("no operation has finished") },
      completionBlock: { done.add($0.count) })
    #expect(batch.count == 1)
    OperationKit.add(batch)
    #expect(try await done.next() == 0)
  }

  /// Cancelling the last operation of a batch, as when a queue cancels all, deallocates it. The other operations finish
  /// later and must not access it.
  @Test func theLastMayGoFirst() async throws {
    let answer = TestServer.Signal()
    server.route("GET", "/slow", script: [.wait(answer), .send("HTTP/1.1 204 No Content\r\n\r\n")])
    let operations = try (0..<3).map { _ in
      AFURLConnectionOperation(request: try OperationKit.request(server.url("/slow")))
    }
    weak var last: Operation?
    do {
      let batch = AFURLConnectionOperation.batch(ofRequestOperations: operations) { _, _ in
      } completionBlock: { _ in
        Issue.record("the last was cancelled")
      }
      last = batch.last as? Operation
      OperationKit.add(batch)
    }
    try await server.waitForRequests(3)
    last?.cancel()
    await Wait.until("the operation is released") { last == nil }
    answer.fire()
    for operation in operations { await operation.isOver() }
    #expect(operations.allSatisfy { $0.error == nil })
  }

  final class Noted: AFHTTPRequestOperation, @unchecked Sendable {
    static let gone = Results<Bool>()
    deinit { Self.gone.add(true) }
  }

  /// A batch that is never added to a queue is deallocated, and does not end the process.
  @Test func aBatchThatIsNeverQueuedIsReleased() async throws {
    do {
      let operation = try OperationKit.operation(Noted.self, server.url("/get"))
      operation.setCompletionBlockWithSuccess({ _, _ in Issue.record("it did not run") })
      _ = AFURLConnectionOperation.batch(ofRequestOperations: [operation]) { _, _ in
      } completionBlock: { _ in
        Issue.record("it did not run")
      }
    }
    #expect(try await Noted.gone.next())
  }
}
