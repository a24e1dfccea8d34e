import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// Tests `URLSessionSelectiveDelegate`: the session asks the delegate which calls it wants, and handles the others
/// itself.
@Suite struct SelectiveDelegateTests {
  private final class Chooser: NSObject, URLSessionSelectiveDelegate, URLSessionDataDelegate {
    struct State {
      var events: [String] = []
      var wanted: Set<URLSessionDelegateCall>
    }

    let state: Mutex<State>
    let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
    let endedOnQueue = Atomic(false)
    /// A closure that runs inside `didResume`.
    let whenResumed: (@Sendable (URLSessionTask) -> Void)?
    /// The queue that the calls are expected on. Set before the first task.
    private let observed = Mutex<OperationQueue?>(nil)
    var queue: OperationQueue? {
      get { observed.withLock { $0 } }
      set { observed.withLock { $0 = newValue } }
    }

    init(
      choosing wanted: Set<URLSessionDelegateCall>, whenResumed: (@Sendable (URLSessionTask) -> Void)? = nil
    ) {
      state = Mutex(State(wanted: wanted))
      self.whenResumed = whenResumed
      super.init()
    }

    private func note(_ event: String) { state.withLock { $0.events.append(event) } }

    var events: [String] { state.withLock { $0.events } }

    func choose(_ call: URLSessionDelegateCall) { state.withLock { _ = $0.wanted.insert(call) } }

    func urlSession(_ session: URLSession, wants call: URLSessionDelegateCall, for task: URLSessionTask) -> Bool {
      state.withLock { $0.wanted.contains(call) }
    }

    func urlSession(_ session: URLSession, didResume task: URLSessionTask) {
      note("resume")
      whenResumed?(task)
    }

    func urlSession(_ session: URLSession, didSuspend task: URLSessionTask) { note("suspend") }

    func urlSession(
      _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
      completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
      note("response")
      completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
      note("data \(data.count)")
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
      newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
      note("redirection")
      completionHandler(request)
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) { note("\(response.statusCode)") }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
      note("metrics")
    }

    func urlSession(
      _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
      totalBytesExpectedToSend: Int64
    ) { note("sent") }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
      endedOnQueue.store(queue != nil && OperationQueue.current === queue, ordering: .sequentiallyConsistent)
      note("end")
      continuation.yield()
    }

    func wait() async {
      var iterator = ends.makeAsyncIterator()
      await iterator.next()
    }
  }

  private func server() throws -> TestServer {
    let server = try TestServer()
    server.route("GET", "/elsewhere") { _ in .redirect(to: "/long") }
    server.route("GET", "/long") { _ in TestServer.Response(body: .bytes([UInt8](repeating: 7, count: 300_000))) }
    server.route("POST", "/form") { _ in .text("thanks") }
    return server
  }

  private func run(_ delegate: Chooser, _ request: URLRequest) async {
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    session.dataTask(with: request).resume()
    await delegate.wait()
    session.invalidateAndCancel()
  }

  @Test func callsNotChosenAreNotMade() async throws {
    let server = try server()
    let delegate = Chooser(choosing: [])
    await run(delegate, URLRequest(url: try #require(URL(string: server.url("/elsewhere")))))
    #expect(delegate.events == ["resume", "data 300000", "metrics", "end"])
    var form = URLRequest(url: try #require(URL(string: server.url("/form"))))
    form.httpMethod = "POST"
    form.httpBody = Data("a=b".utf8)
    let other = Chooser(choosing: [])
    await run(other, form)
    #expect(other.events == ["resume", "data 6", "metrics", "end"])
  }

  /// The handler that waits for resume data is called on the delegate queue, whatever the delegate accepts.
  @Test func resumeDataComesOnTheDelegateQueue() async throws {
    let server = try server()
    server.route("GET", "/hang", script: [.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"), .hang])
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    let session = URLSession(configuration: .ephemeral, delegate: Chooser(choosing: []), delegateQueue: queue)
    let task = session.downloadTask(with: try #require(URL(string: server.url("/hang"))))
    task.resume()
    let isOnQueue = await withCheckedContinuation { continuation in
      task.cancel(byProducingResumeData: { _ in continuation.resume(returning: OperationQueue.current === queue) })
    }
    #expect(isOnQueue)
    session.invalidateAndCancel()
  }

  @Test func chosenCallsAreMade() async throws {
    let server = try server()
    let delegate = Chooser(choosing: [.response, .redirection, .didReceiveData])
    await run(delegate, URLRequest(url: try #require(URL(string: server.url("/elsewhere")))))
    #expect(delegate.events.prefix(3) == ["resume", "redirection", "response"])
    let pieces = delegate.events.filter { $0.hasPrefix("data") }.compactMap { Int($0.dropFirst(5)) }
    #expect(pieces.reduce(0, +) == 300_000)
    #expect(pieces.count > 1)
    #expect(delegate.events.suffix(2) == ["metrics", "end"])
    var form = URLRequest(url: try #require(URL(string: server.url("/form"))))
    form.httpMethod = "POST"
    form.httpBody = Data("a=b".utf8)
    let other = Chooser(choosing: [.sentBody])
    await run(other, form)
    #expect(other.events == ["resume", "sent", "data 6", "metrics", "end"])
  }

  @Test(arguments: [[], [.informationalResponse], [.sentBody]] as [Set<URLSessionDelegateCall>], [false, true])
  func responsesBeforeTheResponse(wanted: Set<URLSessionDelegateCall>, hasBody: Bool) async throws {
    let server = try TestServer()
    for method in ["GET", "POST"] {
      server.route(method, "/hints") { _ in
        var response = TestServer.Response.text("thanks")
        response.interim = [TestServer.Interim(status: 103)]
        return response
      }
    }
    let delegate = Chooser(choosing: wanted)
    var request = URLRequest(url: try #require(URL(string: server.url("/hints"))))
    if hasBody {
      request.httpMethod = "POST"
      request.httpBody = Data("a=b".utf8)
    }
    await run(delegate, request)
    let extra = (hasBody && wanted == [.sentBody] ? ["sent"] : []) + (wanted == [.informationalResponse] ? ["103"] : [])
    #expect(delegate.events == ["resume"] + extra + ["data 6", "metrics", "end"])
  }

  @Test func aTaskWithADelegateOfItsOwnMakesAllCalls() async throws {
    let server = try server()
    let (delegate, own) = (Chooser(choosing: []), Chooser(choosing: []))
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/elsewhere"))))
    task.delegate = own
    task.resume()
    await own.wait()
    #expect(own.events.prefix(2) == ["redirection", "response"])
    #expect(delegate.events == ["resume"])
    session.invalidateAndCancel()
  }

  /// The last calls are made outside the queue, unless the delegate chooses `completionOnQueue`, or an earlier call has
  /// used the queue.
  private static let ways: [(wanted: Set<URLSessionDelegateCall>, isOnQueue: Bool)] = [
    ([], false), ([.completionOnQueue], true), ([.response], true),
  ]

  @Test(arguments: ways)
  func theWayToTheQueue(wanted: Set<URLSessionDelegateCall>, isOnQueue: Bool) async throws {
    let server = try server()
    let delegate = Chooser(choosing: wanted)
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    delegate.queue = queue
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: queue)
    session.dataTask(with: try #require(URL(string: server.url("/long")))).resume()
    await delegate.wait()
    #expect(delegate.endedOnQueue.load(ordering: .sequentiallyConsistent) == isOnQueue)
    session.invalidateAndCancel()
  }

  /// Each change of state is reported once, even if `resume` or `suspend` is called repeatedly.
  @Test func resumingAndSuspendingIsReported() async throws {
    let server = try server()
    let signal = TestServer.Signal()
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"
    server.route("GET", "/later", script: [.wait(signal), .send(length + String(repeating: "x", count: 300_000))])
    let delegate = Chooser(choosing: [])
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/later"))))
    task.suspend()
    task.resume()
    #expect(delegate.events == [])
    task.resume()
    task.resume()
    task.suspend()
    #expect(delegate.events == ["resume", "suspend"])
    task.resume()
    signal.fire()
    await delegate.wait()
    #expect(delegate.events == ["resume", "suspend", "resume", "data 300000", "metrics", "end"])
    task.resume()
    task.suspend()
    #expect(delegate.events.count == 6)
    session.invalidateAndCancel()
  }

  /// A task starts only after `didResume` has returned. Otherwise it could complete before its delegate is
  /// notified that it runs.
  @Test func aTaskRunsWhenItsDelegateHasHeardOfIt() async throws {
    let server = try server()
    let states = Mutex<[URLSessionTask.State]>([])
    let delegate = Chooser(choosing: []) { task in
      // A second call of `resume` has no effect.
      task.resume()
      states.withLock { $0.append(task.state) }
    }
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/long"))))
    task.resume()
    #expect(states.withLock { $0 } == [.suspended])
    await delegate.wait()
    #expect(delegate.events == ["resume", "data 300000", "metrics", "end"])
    session.invalidateAndCancel()
  }

  @Test func aDelegateSuspendsATaskThatWillRun() async throws {
    let server = try server()
    let isFirst = Mutex(true)
    let delegate = Chooser(choosing: []) { task in
      if isFirst.withLock({ exchange(&$0, with: false) }) { task.suspend() }
    }
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/long"))))
    task.resume()
    #expect(task.state == .suspended)
    #expect(delegate.events == ["resume", "suspend"])
    #expect(await session.allTasks.isEmpty)
    task.resume()
    await delegate.wait()
    #expect(delegate.events == ["resume", "suspend", "resume", "data 300000", "metrics", "end"])
    session.invalidateAndCancel()
  }

  @Test func aDelegateCancelsATaskThatWillRun() async throws {
    let server = try server()
    let delegate = Chooser(choosing: []) { $0.cancel() }
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/long"))))
    task.resume()
    await delegate.wait()
    #expect(delegate.events == ["resume", "metrics", "end"])
    #expect((task.error as? URLError)?.code == .cancelled)
    #expect(server.requests.isEmpty)
    session.invalidateAndCancel()
  }

  /// With `prefersIncrementalDelivery` set to `false`, any delegate gets the content in one call.
  @Test func contentThatIsNotDeliveredAsItComesIsDeliveredWhole() async throws {
    let server = try server()
    let delegate = Chooser(choosing: [.response, .redirection, .didReceiveData, .sentBody])
    let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
    let task = session.dataTask(with: try #require(URL(string: server.url("/long"))))
    task.prefersIncrementalDelivery = false
    task.resume()
    await delegate.wait()
    #expect(delegate.events == ["resume", "response", "data 300000", "metrics", "end"])
    #expect(task.countOfBytesReceived == 300_000)
    session.invalidateAndCancel()
  }
}
