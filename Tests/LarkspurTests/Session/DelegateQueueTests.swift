import Foundation
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

@testable import Larkspur

/// Tests the queue of delegate calls as a program sees it, and what the program may do with it.
@Suite(.timeLimit(.minutes(1))) struct DelegateQueueTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  /// Without a given queue, a session creates a serial operation queue and makes all calls on it, as Apple documents.
  @Test func theSessionsOwnQueueIsTheCurrentOne() async throws {
    let elsewhere = Mutex(0)
    let queue = Mutex<OperationQueue?>(nil)
    let recorder = SessionRecorder()
    recorder.onData = { _, _ in
      if OperationQueue.current !== queue.withLock({ $0 }) { elsewhere.withLock { $0 += 1 } }
    }
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    queue.withLock { $0 = session.delegateQueue }
    session.dataTask(with: try url("/bytes/300000")).resume()
    await recorder.waitForEnds()
    #expect(elsewhere.withLock { $0 } == 0)
    let isThere: Bool = await withCheckedContinuation { continuation in
      session.getAllTasks { _ in continuation.resume(returning: OperationQueue.current === session.delegateQueue) }
    }
    #expect(isThere)
    session.invalidateAndCancel()
  }

  /// The call of a completion handler is an operation of the queue even if the program has not read `delegateQueue`
  /// before.
  @Test(arguments: [true, false]) func theFirstCallIsAnOperation(hasDelegate: Bool) async throws {
    let recorder = SessionRecorder()
    let session = URLSession(
      configuration: .ephemeral, delegate: hasDelegate ? recorder : nil, delegateQueue: nil)
    let url = try url("/get")
    let isThere: Bool = await withCheckedContinuation { continuation in
      session.dataTask(with: url) { _, _, _ in
        let current = OperationQueue.current
        continuation.resume(returning: current != nil && current === session.delegateQueue)
      }.resume()
    }
    #expect(isThere)
    session.invalidateAndCancel()
  }

  /// A delegate can read `delegateQueue` for the first time in the call that delivers content.
  @Test func theFirstPieceIsAnOperation() async throws {
    let elsewhere = Mutex(0)
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    recorder.onData = { [weak session] _, _ in
      let current = OperationQueue.current
      if current == nil || current !== session?.delegateQueue { elsewhere.withLock { $0 += 1 } }
    }
    session.dataTask(with: try url("/bytes/300000")).resume()
    await recorder.waitForEnds()
    #expect(elsewhere.withLock { $0 } == 0)
    session.invalidateAndCancel()
  }

  /// Calls submitted before the first use of the operation queue run before the later ones, which are operations.
  @Test func usingTheQueueChangesNoOrder() async {
    let queue = DelegateQueue(nil)
    let gate = DispatchSemaphore(value: 0)
    let order = Mutex<[Int]>([])
    queue.async { gate.wait() }
    for number in 0..<10 {
      if number == 5 { #expect(queue.operations.maxConcurrentOperationCount == 1) }
      queue.async({ order.withLock { $0.append(number) } }, isOften: true, otherwise: {})
    }
    gate.signal()
    await queue.run {}
    #expect(order.withLock { $0 } == Array(0..<10))
  }

  /// A frequent call does not overtake an operation of its task that waits for its turn.
  @Test func aFrequentCallOvertakesNoOperation() async {
    let (queue, order) = (DelegateQueue(nil), CallOrder())
    let gate = DispatchSemaphore(value: 0)
    let calls = Mutex<[String]>([])
    let note = { @Sendable (call: String) in calls.withLock { $0.append(call) } }
    queue.async { gate.wait() }
    queue.async({ note("first") }, isOften: true, in: order, otherwise: {})
    queue.async({ note("operation") }, in: order, otherwise: {})
    queue.async({ note("frequent") }, isOften: true, in: order, otherwise: {})
    gate.signal()
    await queue.run({}, in: order)
    #expect(calls.withLock { $0 } == ["first", "operation", "frequent"])
    #expect(!order.hasWaiting)
  }

  /// A program can keep a session's queue and pass it to another session.
  @Test func aQueueOutlivesItsSession() async throws {
    weak var session: URLSession?
    let queue: OperationQueue
    do {
      let first = URLSession(configuration: .ephemeral)
      session = first
      queue = first.delegateQueue
      _ = try await first.data(from: try url("/get"))
    }
    await Wait.until("the session is released") { session == nil }
    let isThere: Bool = await withCheckedContinuation { continuation in
      queue.addOperation { continuation.resume(returning: OperationQueue.current === queue) }
    }
    #expect(isThere)
    let recorder = SessionRecorder()
    let second = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: queue)
    second.dataTask(with: try url("/get")).resume()
    second.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(recorder.events.contains { if case .completed(_, nil) = $0 { true } else { false } })
  }

  @Test func aQueueThatIsSuspendedHoldsTheCallsUp() async throws {
    let session = URLSession(configuration: .ephemeral)
    let queue = session.delegateQueue
    queue.isSuspended = true
    let called = Event()
    let task = session.dataTask(with: try url("/get")) { _, _, _ in called.fire() }
    task.resume()
    await Wait.until("the call waits") { queue.operationCount > 0 }
    #expect(task.state == .completed && called.count == 0)
    queue.isSuspended = false
    try await called.wait()
  }

  /// If the program cancels the operation of a delegate call, that call is dropped, and the task and the session
  /// complete anyway.
  @Test(arguments: ["/bytes/100", "/redirect/1"])
  func cancelledOperationsBlockNoTask(path: String) async throws {
    let queue = WatchedQueue()
    queue.maxConcurrentOperationCount = 1
    queue.isSuspended = true
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: queue)
    let task = session.dataTask(with: try url(path))
    task.resume()
    session.finishTasksAndInvalidate()
    try await queue.added.wait()
    queue.cancelAllOperations()
    queue.isSuspended = false
    await recorder.waitForInvalidation()
    #expect(task.state == .completed && task.error == nil)
    #expect(recorder.events.last == .invalid)
  }

  /// If the program cancels all operations, async calls that depend on the queue return nevertheless.
  @Test func cancelledOperationsBlockNoAsyncCall() async throws {
    let queue = WatchedQueue()
    queue.maxConcurrentOperationCount = 1
    let session = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: queue)
    let download = session.downloadTask(with: try url("/hang"))
    download.resume()
    let waits: [@Sendable () async -> Void] = [
      { _ = await session.allTasks },
      { _ = await session.tasks },
      { await session.reset() },
      { await session.flush() },
      { #expect(await download.cancelByProducingResumeData() == nil) },
      // The download has been cancelled by the previous call.
      { #expect(await download.cancelByProducingResumeData() == nil) },
    ]
    for wait in waits {
      queue.isSuspended = true
      let before = queue.added.count
      async let waiting: Void = wait()
      try await queue.added.wait(for: before + 1)
      queue.cancelAllOperations()
      queue.isSuspended = false
      await waiting
    }
  }

  /// `bytes(from:)` of an invalidated session throws at once, even if its queue is suspended.
  @Test func aReaderIsRefusedAtOnce() async throws {
    let url = try url("/get")
    let queue = OperationQueue()
    let session = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: queue)
    session.invalidateAndCancel()
    queue.isSuspended = true
    let error = await #expect(throws: URLError.self) { try await session.bytes(from: url) }
    #expect(error?.code == .cancelled && queue.operationCount == 0)
  }

  /// If the program cancels the operation of a completion handler, the handler is not called, and the task completes.
  @Test func aHandlerThatIsCancelledIsNotCalled() async throws {
    let queue = WatchedQueue()
    queue.isSuspended = true
    let session = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: queue)
    let isCalled = Mutex(false)
    let task = session.dataTask(with: try url("/get")) { _, _, _ in isCalled.withLock { $0 = true } }
    task.resume()
    try await queue.added.wait()
    queue.cancelAllOperations()
    queue.isSuspended = false
    await Wait.until("the task has ended") { await session.allTasks.isEmpty }
    #expect(task.state == .completed && !isCalled.withLock { $0 })
  }
}
