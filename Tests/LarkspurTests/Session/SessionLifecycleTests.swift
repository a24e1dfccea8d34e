import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests the creation and invalidation of sessions, and the references that they hold.
@Suite(.timeLimit(.minutes(2))) struct SessionLifecycleTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  private func session(_ delegate: (any URLSessionDelegate)?, queue: OperationQueue? = nil) -> URLSession {
    URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: queue)
  }

  @Test func finishingLetsTasksEnd() async throws {
    let recorder = SessionRecorder()
    let session = session(recorder)
    let tasks = try (0..<5).map { _ in session.dataTask(with: try url("/delay/50")) }
    for task in tasks { task.resume() }
    session.finishTasksAndInvalidate()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    let events = recorder.events
    #expect(events.count { $0 == .invalid } == 1 && events.last == .invalid)
    for task in tasks { #expect(events.contains(.completed(task.taskIdentifier, nil))) }
    // The session releases its delegate when the last call has returned, so the next operation of the queue finds
    // `nil`.
    let delegate = await withCheckedContinuation { continuation in
      session.delegateQueue.addOperation { continuation.resume(returning: session.delegate) }
    }
    #expect(delegate == nil)
  }

  @Test func cancellingEndsTasks() async throws {
    let recorder = SessionRecorder()
    let session = session(recorder)
    let tasks = try (0..<5).map { _ in session.dataTask(with: try url("/delay/100000")) }
    for task in tasks.dropLast() { task.resume() }
    session.invalidateAndCancel()
    await recorder.waitForInvalidation()
    let events = recorder.events
    #expect(events.last == .invalid)
    // The task that was never resumed is cancelled, too.
    for task in tasks { #expect(events.contains(.completed(task.taskIdentifier, .cancelled))) }
  }

  /// A queued delegate call is dropped after a cancellation, since the object that the delegate works for may be gone
  /// by then.
  @Test(arguments: ["/bytes/100", "/redirect/1"])
  func aCallThatWaitsForItsTurnIsNotMadeAfterACancellation(path: String) async throws {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    let recorder = SessionRecorder()
    recorder.onResponse = { _ in queue.isSuspended = true }
    if path.hasPrefix("/redirect") { queue.isSuspended = true }
    let task = session(recorder, queue: queue).dataTask(with: try url(path))
    task.resume()
    // Waits until the call for the content, or for the redirection, is in the queue.
    await Wait.until("the call is in the queue") {
      queue.isSuspended && queue.operations.contains { !$0.isExecuting && !$0.isFinished }
    }
    task.cancel()
    queue.isSuspended = false
    await recorder.waitForEnds()
    let events = recorder.events
    #expect(events.last == .completed(task.taskIdentifier, .cancelled))
    #expect(!events.contains { $0 == .data(task.taskIdentifier) || $0 == .redirected(task.taskIdentifier) })
  }

  @Test func finishingMayBecomeCancelling() async throws {
    let recorder = SessionRecorder()
    let session = session(recorder)
    let task = session.dataTask(with: try url("/delay/100000"))
    task.resume()
    session.finishTasksAndInvalidate()
    session.invalidateAndCancel()
    await recorder.waitForInvalidation()
    #expect(recorder.events.contains(.completed(task.taskIdentifier, .cancelled)))
    #expect(recorder.events.count { $0 == .invalid } == 1)
  }

  @Test func anInvalidSessionsTasksFail() async throws {
    let url = try url("/get")
    let recorder = SessionRecorder()
    let session = session(recorder)
    session.invalidateAndCancel()
    await recorder.waitForInvalidation()
    await #expect(throws: URLError.self) { try await session.data(from: url) }
    await #expect(throws: URLError.self) { try await session.bytes(from: url) }
    let code: URLError.Code? = await withCheckedContinuation { continuation in
      session.dataTask(with: url) { _, _, error in continuation.resume(returning: (error as? URLError)?.code) }.resume()
    }
    #expect(code == .cancelled)
    let task = session.downloadTask(with: url)
    task.resume()
    task.cancel()
    #expect(recorder.events.last == .invalid)
    #expect(server.connectionsAccepted == 0)
  }

  /// A cancelled task that was never resumed completes by way of the loop, so an operation that the program adds to the
  /// queue right after `cancel` runs first.
  @Test func theEndOfATaskThatHasNotBegun() async throws {
    let recorder = SessionRecorder()
    let session = session(recorder)
    let task = session.dataTask(with: try url("/get"))
    let (isHeld, isFree) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let holding = Task(executorPreference: session.taskExecutor) {
      isHeld.signal()
      Self.wait(for: isFree)
    }
    Self.wait(for: isHeld)
    task.cancel()
    let events: [SessionRecorder.Event] = await withCheckedContinuation { continuation in
      session.delegateQueue.addOperation { continuation.resume(returning: recorder.events) }
    }
    isFree.signal()
    await holding.value
    #expect(!events.contains { $0.isEnd })
    await recorder.waitForEnds()
    session.invalidateAndCancel()
  }

  private static func wait(for semaphore: DispatchSemaphore) { semaphore.wait() }

  @Test func theSharedSessionStays() async throws {
    URLSession.shared.invalidateAndCancel()
    URLSession.shared.finishTasksAndInvalidate()
    _ = try await URLSession.shared.data(from: try url("/get"))
    #expect(URLSession.shared === URLSession.shared)
    #expect(URLSession.shared.delegate == nil)
  }

  /// An invalidated session, its delegate and its tasks are deallocated.
  @Test(arguments: [true, false]) func everythingIsLetGo(cancels: Bool) async throws {
    weak var session: URLSession?
    weak var recorder: SessionRecorder?
    weak var task: URLSessionTask?
    do {
      let strongRecorder = SessionRecorder()
      let strongSession = self.session(strongRecorder)
      let strongTask = strongSession.dataTask(with: try url(cancels ? "/delay/100000" : "/bytes/100000"))
      (session, recorder, task) = (strongSession, strongRecorder, strongTask)
      strongTask.resume()
      _ = try? await strongSession.data(from: try url("/get"))
      if cancels { strongSession.invalidateAndCancel() } else { strongSession.finishTasksAndInvalidate() }
      await strongRecorder.waitForInvalidation()
    }
    // The last call is still returning: the queue and the loop release their references a moment later.
    await Wait.until("all are released") { session == nil && recorder == nil && task == nil }
  }

  enum LiveKind: CaseIterable {
    case closedSocket, cancelledSocket, closedStream, cancelledStream
  }

  /// The task of a live connection, its session and the delegate are deallocated, however the connection has ended.
  @Test(arguments: LiveKind.allCases) func liveTasksAreLetGo(kind: LiveKind) async throws {
    weak var session: URLSession?
    weak var task: URLSessionTask?
    do {
      let strongSession = URLSession(configuration: .ephemeral)
      session = strongSession
      switch kind {
      case .closedSocket, .cancelledSocket:
        let url = try #require(URL(string: server.webSocketURL("/websocket/echo")))
        let socket = strongSession.webSocketTask(with: url)
        task = socket
        socket.resume()
        try await socket.send(.string("a"))
        _ = try await socket.receive()
        if kind == .closedSocket { socket.cancel(with: .normalClosure, reason: nil) } else { socket.cancel() }
        await #expect(throws: (any Error).self) { _ = try await socket.receive() }
      case .closedStream, .cancelledStream:
        let stream = strongSession.streamTask(withHostName: "127.0.0.1", port: server.port)
        task = stream
        stream.resume()
        try await stream.write(Data("GET /get HTTP/1.1\r\n".utf8), timeout: 0)
        stream.closeWrite()
        if kind == .closedStream { stream.closeRead() } else { stream.cancel() }
        await #expect(throws: (any Error).self) { try await stream.write(Data([1]), timeout: 0) }
      }
      strongSession.finishTasksAndInvalidate()
    }
    await Wait.until("both are released") { session == nil && task == nil }
  }

  @Test func aSessionWithoutADelegateGoesByItself() async throws {
    weak var session: URLSession?
    do {
      let strong = URLSession(configuration: .ephemeral)
      session = strong
      _ = try await strong.data(from: try url("/get"))
    }
    await Wait.until("the session is released") { session == nil }
    try await server.waitForClosedConnections(1)
  }

  /// Releasing an unfinished byte sequence ends its task, so the session can end, too.
  @Test func readersThatGoAway() async throws {
    let recorder = SessionRecorder()
    let session = session(recorder)
    do {
      let (bytes, _) = try await session.bytes(from: try url("/bytes/100000000"))
      var iterator = bytes.makeAsyncIterator()
      _ = try await iterator.next()
    }
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
  }

  @Test func readersThatDoNotRead() async throws {
    let recorder = SessionRecorder()
    let session = session(recorder)
    let (bytes, _) = try await session.bytes(from: try url("/bytes/100000000"))
    session.invalidateAndCancel()
    await recorder.waitForInvalidation()
    await #expect(throws: URLError.self) { for try await _ in bytes {} }
  }

  /// A delegate that is deallocated with its task can call the task from its `deinit`.
  @Test func delegatesThatCallTheirTaskWhenTheyGo() async throws {
    final class Last: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
      var task: URLSessionTask?
      let gone: TestServer.Signal

      init(_ gone: TestServer.Signal) { self.gone = gone }

      deinit {
        task?.cancel()
        _ = task?.state
        task?.delegate = nil
        gone.fire()
      }
    }
    let session = URLSession(configuration: .ephemeral)
    for isSetAnew in [true, false] {
      let gone = TestServer.Signal()
      let task = session.dataTask(with: try url(isSetAnew ? "/delay/100000" : "/bytes/10"))
      do {
        let delegate = Last(gone)
        delegate.task = task
        task.delegate = delegate
      }
      if isSetAnew { task.delegate = nil } else { task.resume() }
      try await gone.wait()
    }
  }

  /// A delegate can cancel a new task in `didCreateTask`, before any other code can use it.
  @Test func tasksThatAreCancelledWhenTheyAreMade() async throws {
    final class Canceller: SessionRecorder, @unchecked Sendable {
      override func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        super.urlSession(session, didCreateTask: task)
        task.cancel()
      }
    }
    let canceller = Canceller()
    let session = session(canceller)
    let error = await #expect(throws: URLError.self) { try await session.data(from: try url("/get")) }
    #expect(error?.code == .cancelled)
    let task = session.dataTask(with: try url("/get"))
    task.resume()
    await canceller.waitForEnds()
    session.finishTasksAndInvalidate()
    await canceller.waitForInvalidation()
    #expect(canceller.events.count { $0.isEnd } == 1)
    #expect(server.connectionsAccepted == 0)
  }

  /// Cancelling and invalidating at every point of a load leaves each task with one completion, as the last of its
  /// calls.
  @Test func cancelStorms() async throws {
    for round in 0..<300 {
      let recorder = SessionRecorder()
      let session = session(recorder)
      let tasks = try (0..<3).map { session.dataTask(with: try url($0 == 0 ? "/bytes/200000" : "/redirect/2")) }
      let point = round % 6
      recorder.onResponse = { if point == 1 { $0.cancel() } }
      recorder.onData = { task, _ in
        if point == 2 { task.cancel() }
        if point == 3 { session.invalidateAndCancel() }
      }
      for task in tasks { task.resume() }
      if point == 4 { for task in tasks { Thread.detachNewThread { task.cancel() } } }
      if point == 5 { Thread.detachNewThread { session.invalidateAndCancel() } }
      session.finishTasksAndInvalidate()
      await recorder.waitForInvalidation()
      let events = recorder.events
      #expect(events.last == .invalid)
      for task in tasks {
        let completions = events.indices.filter {
          if case .completed(task.taskIdentifier, _) = events[$0] { true } else { false }
        }
        #expect(completions.count == 1)
        let calls = events.indices.filter { [.data(task.taskIdentifier)].contains(events[$0]) }
        #expect(calls.allSatisfy { $0 < completions.first ?? 0 })
      }
    }
  }

  /// A task that is created while its session is finishing fails like any other cancelled task.
  @Test func aTaskOfASessionThatIsClosing() async throws {
    let recorder = SessionRecorder()
    let session = session(recorder)
    let (arrived, proceed) = (TestServer.Signal(), TestServer.Signal())
    server.route("GET", "/slow", script: [.fire(arrived), .wait(proceed), .respond(TestServer.Response())])
    let first = session.dataTask(with: try url("/slow"))
    first.resume()
    try await arrived.wait()
    session.finishTasksAndInvalidate()
    let late = session.dataTask(with: try url("/late"))
    late.resume()
    await recorder.waitForEnds()
    #expect(recorder.events.contains(.completed(late.taskIdentifier, .cancelled)))
    #expect((late.error as? URLError)?.failingURL == late.originalRequest?.url)
    #expect(recorder.metrics.count == 1 && recorder.metrics[0].transactionMetrics.isEmpty)
    proceed.fire()
    await recorder.waitForInvalidation()
    #expect(recorder.metrics.count == 2)
    let url = try url("/late")
    let error = await #expect(throws: URLError.self) { try await session.data(from: url) }
    #expect(error?.code == .cancelled && error?.failingURL == url)
  }

  /// An awaited result does not depend on the delegate queue: the queue may be suspended, or be the main queue, whose
  /// thread waits for the result.
  @Test func aQueueThatIsSuspended() async throws {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    let recorder = SessionRecorder()
    let session = session(recorder, queue: queue)
    queue.isSuspended = true
    for _ in 0..<20 { #expect(try await session.data(from: try url("/echo")).0.isEmpty == false) }
    queue.isSuspended = false
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(recorder.metrics.count == 20)
  }
}
