import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import TestKit
import Testing

/// Tests a session's configuration, its list of tasks, its queue and its delegate calls.
@Suite(.timeLimit(.minutes(2))) struct SessionTests {
  let server: TestServer

  init() throws { server = try TestServer() }

  private func url(_ path: String) throws -> URL { try #require(URL(string: server.url(path))) }

  @Test func theConfigurationIsCopied() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["X-Name": "one"]
    let session = URLSession(configuration: configuration)
    configuration.httpAdditionalHeaders = ["X-Name": "two"]
    session.configuration.httpAdditionalHeaders = ["X-Name": "three"]
    _ = try await session.data(from: try url("/get"))
    #expect(server.requests.last?.fields["x-name"] == "one")
    #expect(session.configuration.httpAdditionalHeaders?["X-Name"] as? String == "one")
    #expect(session.configuration !== session.configuration)
  }

  @Test func cookiesThatAreNotSentMayBeKept() async throws {
    server.route("GET", "/set") { _ in TestServer.Response(status: 204, fields: ["Set-Cookie": "a=1"]) }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpShouldSetCookies = false
    let session = URLSession(configuration: configuration)
    for _ in 0..<2 { _ = try await session.data(from: try url("/set")) }
    #expect(configuration.httpCookieStorage?.cookies?.map(\.name) == ["a"])
    #expect(server.requests.last?.fields["cookie"] == nil)
    // The accept policy decides which cookies are stored.
    #expect(configuration.httpCookieAcceptPolicy == .onlyFromMainDocumentDomain)
    configuration.httpCookieStorage?.removeCookies(since: .distantPast)
    configuration.httpCookieAcceptPolicy = .never
    _ = try await URLSession(configuration: configuration).data(from: try url("/set"))
    #expect(configuration.httpCookieStorage?.cookies == [])
  }

  @Test func aRequestWithoutURLIsNotSupported() async throws {
    let request = NSMutableURLRequest(url: try url("/get"))
    request.url = nil
    let nowhere = request as URLRequest
    let error = await #expect(throws: URLError.self) {
      try await URLSession(configuration: .ephemeral).data(for: nowhere)
    }
    #expect(error?.code == .unsupportedURL)
  }

  @Test func aDescriptionIsForPeople() {
    let session = URLSession(configuration: .ephemeral)
    #expect(session.sessionDescription == nil)
    session.sessionDescription = "mine"
    #expect(session.sessionDescription == "mine")
  }

  @Test func privateHeadersStayAtTheirOrigin() async throws {
    let other = try TestServer()
    server.route("GET", "/away") { _ in .redirect(to: other.url("/get")) }
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpAdditionalHeaders = ["Authorization": "Bearer secret", "X-Other": "goes along"]
    let session = URLSession(configuration: configuration)
    _ = try await session.data(from: try url("/away"))
    #expect(server.requests.last?.fields["authorization"] == "Bearer secret")
    #expect(other.requests.last?.fields["authorization"] == nil)
    #expect(other.requests.last?.fields["x-other"] == "goes along")
  }

  /// Background sessions have no cache and follow redirections without asking the delegate, as Apple documents.
  @Test func backgroundSessionsAskLess() async throws {
    let configuration = URLSessionConfiguration.background(withIdentifier: "transfers")
    let state = FileManager.default.temporaryDirectory.appending(path: "larkspur-state-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: state, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: state) }
    configuration.transferStateHome = state.path
    #expect(configuration.identifier == "transfers" && configuration.urlCache == nil)
    #expect(configuration.httpCookieStorage === HTTPCookieStorage.shared)
    #expect(URLSessionConfiguration.default.identifier == nil && URLSessionConfiguration.ephemeral.identifier == nil)
    let recorder = SessionRecorder()
    let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    #expect(session.configuration.identifier == "transfers")
    let task = session.downloadTask(with: try url("/redirect/2"))
    task.resume()
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(recorder.events.contains(.completed(task.taskIdentifier, nil)))
    #expect(!recorder.events.contains(.redirected(task.taskIdentifier)))
    #expect(task.currentRequest?.url?.path == "/get")
  }

  @Test func tasksAreListed() async throws {
    let recorder = SessionRecorder()
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let url = try url("/delay/100000")
    let data = session.dataTask(with: url)
    let signal = TestServer.Signal()
    server.route("POST", "/stalls", script: [.wait(signal), .close])
    var post = URLRequest(url: try self.url("/stalls"))
    post.httpMethod = "POST"
    let upload = session.uploadTask(with: post, from: Data([1]))
    let download = session.downloadTask(with: url)
    #expect(await session.allTasks.isEmpty)
    let other = session.dataTask(with: url)
    for task in [data, upload, download, other] { task.resume() }
    // A suspended task is listed; a cancelled one is not.
    data.suspend()
    other.cancel()
    #expect(Set(await session.allTasks.map(\.taskIdentifier)) == Set([data, upload, download].map(\.taskIdentifier)))
    let (datas, uploads, downloads) = await session.tasks
    #expect(datas == [data] && uploads == [upload] && downloads == [download])
    for task in [data, upload, download] { task.cancel() }
    signal.fire()
    await recorder.waitForEnds(4)
    #expect(await session.allTasks.isEmpty)
    session.invalidateAndCancel()
  }

  @Test func aTaskThatReportsItsEndIsNotListed() async throws {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 2
    let session = URLSession(configuration: .ephemeral, delegate: nil, delegateQueue: queue)
    let url = try url("/get")
    let listed = await withCheckedContinuation { continuation in
      let task = session.dataTask(with: url) { _, _, _ in
        // The list arrives while this completion handler is still running.
        let hasCome = DispatchSemaphore(value: 0)
        let count = Atomic(-1)
        session.getAllTasks { tasks in
          count.store(tasks.count, ordering: .relaxed)
          hasCome.signal()
        }
        hasCome.wait()
        continuation.resume(returning: count.load(ordering: .relaxed))
      }
      task.resume()
    }
    #expect(listed == 0)
  }

  @Test func flushingMakesNewConnections() async throws {
    let session = URLSession(configuration: .ephemeral)
    _ = try await session.data(from: try url("/get"))
    await session.flush()
    try await server.waitForClosedConnections(1)
    _ = try await session.data(from: try url("/get"))
    #expect(server.connectionsAccepted == 2)
  }

  /// A connection that is in use during `flush` finishes its load and then closes.
  @Test(.timeLimit(.minutes(1))) func flushingDuringALoad() async throws {
    let session = URLSession(configuration: .ephemeral)
    let (isAsked, mayAnswer) = (TestServer.Signal(), TestServer.Signal())
    server.enqueue([
      .expectRequest, .fire(isAsked), .wait(mayAnswer), .send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), .hang,
    ])
    async let slow = session.data(from: try url("/slow"))
    try await isAsked.wait()
    await session.flush()
    mayAnswer.fire()
    _ = try await slow
    _ = try await session.data(from: try url("/get"))
    #expect(server.connectionsAccepted == 2)
  }

  @Test(.timeLimit(.minutes(1))) func theDelegateIsThereUntilItHasHeardOfTheEnd() async {
    final class Last: NSObject, URLSessionDelegate {
      let isThere = Mutex<Bool?>(nil)
      let heard: @Sendable () -> Void
      init(_ heard: @escaping @Sendable () -> Void) { self.heard = heard }
      func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        isThere.withLock { $0 = session.delegate === self }
        heard()
      }
    }
    let isThere: Bool? = await withCheckedContinuation { continuation in
      let box = Mutex<Last?>(nil)
      let delegate = Last { continuation.resume(returning: box.withLock { $0.take() }?.isThere.withLock { $0 }) }
      box.withLock { $0 = delegate }
      URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil).invalidateAndCancel()
    }
    #expect(isThere == true)
  }

  @Test func resettingForgets() async throws {
    let session = URLSession(configuration: .ephemeral)
    server.route("GET", "/set") { _ in TestServer.Response(fields: ["Set-Cookie": "a=b"]) }
    _ = try await session.data(from: try url("/set"))
    _ = try await session.data(from: try url("/get"))
    #expect(server.requests.last?.fields["cookie"] == "a=b")
    await session.reset()
    _ = try await session.data(from: try url("/get"))
    #expect(server.requests.last?.fields["cookie"] == nil)
  }

  /// Completion handlers, delegate calls and lists of tasks run on the given queue, whether serial or concurrent.
  @Test(arguments: [1, 8]) func theQueueThatWasGiven(width: Int) async throws {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = width
    let recorder = SessionRecorder()
    let elsewhere = Mutex(0)
    recorder.onData = { _, _ in if OperationQueue.current !== queue { elsewhere.withLock { $0 += 1 } } }
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: queue)
    #expect(session.delegateQueue === queue)
    let url = try url("/bytes/300000")
    let isThere: Bool = await withCheckedContinuation { continuation in
      session.dataTask(with: url) { _, _, _ in continuation.resume(returning: OperationQueue.current === queue) }
        .resume()
    }
    #expect(isThere)
    let tasks = (0..<20).map { _ in session.dataTask(with: url) }
    for task in tasks { task.resume() }
    session.finishTasksAndInvalidate()
    await recorder.waitForInvalidation()
    #expect(elsewhere.withLock { $0 } == 0)
    for task in tasks {
      let own = recorder.events.filter {
        switch $0 {
        case .response(task.taskIdentifier, _), .data(task.taskIdentifier), .metrics(task.taskIdentifier),
          .completed(task.taskIdentifier, _):
          true
        default: false
        }
      }
      #expect(own.first == .response(task.taskIdentifier, status: 200))
      #expect(own.suffix(2) == [.metrics(task.taskIdentifier), .completed(task.taskIdentifier, nil)])
    }
  }

  @Test func withoutAQueueThereIsOneThatIsSerial() async throws {
    let session = URLSession(configuration: .ephemeral)
    #expect(session.delegateQueue.maxConcurrentOperationCount == 1)
    #expect(session.delegateQueue === session.delegateQueue)
  }

  /// The task's own delegate gets a call if it implements the method; otherwise the session's delegate does.
  @Test func aTasksDelegateComesFirst() async throws {
    final class Own: NSObject, URLSessionDataDelegate {
      let count = Mutex(0)

      func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        count.withLock { $0 += 1 }
      }
    }
    let (own, recorder) = (Own(), SessionRecorder())
    let session = URLSession(configuration: .ephemeral, delegate: recorder, delegateQueue: nil)
    let task = session.dataTask(with: try url("/redirect/1"))
    task.delegate = own
    task.resume()
    await recorder.waitForEnds()
    let id = task.taskIdentifier
    #expect(own.count.withLock { $0 } > 0)
    #expect(
      recorder.events == [.created(id), .redirected(id), .response(id, status: 200), .metrics(id), .completed(id, nil)])
    // The task releases its delegate after the last call has returned.
    await Wait.until("the delegate is released") { task.delegate == nil }
    session.invalidateAndCancel()
  }

  @Test func aTaskOfHigherPriorityGoesFirst() async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = 1
    let recorder = SessionRecorder()
    let session = URLSession(configuration: configuration, delegate: recorder, delegateQueue: nil)
    let proceed = TestServer.Signal()
    server.enqueue([.expectRequest, .wait(proceed), .respond(.text("first")), .serveRoutes])
    session.dataTask(with: try url("/first")).resume()
    try await server.waitForRequests(1)
    let priorities: [(String, Float)] = [
      ("low", URLSessionTask.lowPriority), ("default", URLSessionTask.defaultPriority),
      ("high", URLSessionTask.highPriority), ("highest", 7), ("lowest", -7), ("none", .nan),
    ]
    for (name, priority) in priorities {
      let task = session.dataTask(with: try url("/bytes/1?\(name)"))
      task.priority = priority
      task.resume()
    }
    // This load completes on the loop after the earlier tasks have queued their requests.
    _ = try await session.data(from: try #require(URL(string: "data:,x")))
    proceed.fire()
    await recorder.waitForEnds(7)
    let order = server.requests.map { $0.target }
    #expect(
      order == ["/first", "/bytes/1?highest", "/bytes/1?high", "/bytes/1?default", "/bytes/1?none", "/bytes/1?low"]
        + ["/bytes/1?lowest"])
    session.invalidateAndCancel()
  }

  @Test(arguments: [1, 3]) func soManyConnectionsAndNoMore(most: Int) async throws {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.httpMaximumConnectionsPerHost = most
    let session = URLSession(configuration: configuration)
    // The permitted number of requests arrives before any of them is answered.
    let proceed = TestServer.Signal()
    server.route("GET", "/held") { _ in
      TestServer.Response(
        body: .stream(count: 4) { writer in
          try writer.wait(proceed)
          try writer.write("held")
        })
    }
    let url = try url("/held")
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<30 { group.addTask { _ = try await session.data(from: url) } }
      try await server.waitForRequests(most)
      proceed.fire()
      try await group.waitForAll()
    }
    #expect(server.connectionsAccepted == most)
  }

  @Test func oddLimitsAreNoTrap() async throws {
    for limit in [Int.min, -1, 0, .max] {
      let configuration = URLSessionConfiguration.ephemeral
      configuration.httpMaximumConnectionsPerHost = limit
      configuration.timeoutIntervalForRequest = .nan
      configuration.timeoutIntervalForResource = .infinity
      _ = try await URLSession(configuration: configuration).data(from: try url("/get"))
    }
  }
}
