import LarkspurBytes
import LarkspurIO
import Synchronization

/// The state that the server's threads share: the ledger of connections and requests, the tasks that wait for a count,
/// and the stop.
///
/// The threads hold the core, never the `TestServer`, so that releasing the server stops it.
final class ServerCore: Sendable {
  /// How a wait has ended.
  private typealias Completion = OneShot<Result<Void, any Error>>

  /// The events that a test can wait for; each is counted.
  enum Tally: Hashable {
    case requests, connections, closedConnections, handshakes, webSockets, webSocketMessages, webSocketCloses
  }

  private struct State {
    var listener: BlockingListener?
    var isStopping = false
    /// The number of threads that have started and have not ended, the acceptor's among them.
    var living = 0
    var identities: Set<UInt64> = []
    var sockets: [Int: BlockingSocket] = [:]
    var stopActions: [Int: @Sendable () -> Void] = [:]
    var nextStopAction = 0
    var tallies: [Tally: Int] = [:]
    var waiters: [(id: Int, tally: Tally, count: Int, suspension: Completion)] = []
    var nextWaiter = 0
    var requests: Recent<TestServer.Request>
    var handshakes: Recent<TestServer.Handshake>
    var webSockets: Recent<TestServer.WebSocket>
    var failures: [String] = []
    var scripts: [TestServer.Script] = []
    var defaultScript: TestServer.Script?
    var router = Router.builtIn
    var uploads = [TestServer.Uploads("/uploads", TestServer.ResumableUpload())]
  }

  let options: TestServer.Options
  /// The TLS settings, or `nil` if the server speaks HTTP without TLS.
  let tls: (options: TestServer.TLS, context: TLSContext)?
  private let state: Mutex<State>
  private let stopped = Latch()
  private let allThreadsEnded = Latch()

  init(
    _ listener: BlockingListener, options: TestServer.Options, tls: (options: TestServer.TLS, context: TLSContext)?
  ) {
    self.options = options
    self.tls = tls
    state = Mutex(
      State(
        listener: listener, requests: Recent(countMax: options.requestsKept),
        handshakes: Recent(countMax: options.requestsKept), webSockets: Recent(countMax: options.requestsKept)))
  }

  func deadline(after duration: Duration) -> Deadline { LinuxKernel.shared.now().advanced(by: duration) }

  // MARK: Threads

  /// Runs `body` on a new thread. `stop` waits for the thread's end.
  ///
  /// - Returns: `false` if no thread could be created.
  func startThread(_ name: String, _ body: @escaping @Sendable (ServerCore) -> Void) -> Bool {
    state.withLock { $0.living += 1 }
    do {
      let thread = try SystemThread(name: name) {
        let identity = SystemThread.currentIdentity
        self.state.withLock { _ = $0.identities.insert(identity) }
        body(self)
        self.threadEnded(identity)
      }
      thread.detach()
      return true
    } catch {
      threadEnded(nil)
      return false
    }
  }

  private func threadEnded(_ identity: UInt64?) {
    let orphans: [Completion] = state.withLock { state in
      state.living -= 1
      if let identity { state.identities.remove(identity) }
      return state.isStopping && state.living == 0 ? Self.end(&state) : []
    }
    finish(orphans)
  }

  /// Removes the waiters of all counts, as no count can grow any more.
  ///
  /// - Returns: The removed waiters, for the caller to fail.
  private static func end(_ state: inout State) -> [Completion] {
    let orphans = state.waiters.map(\.suspension)
    state.waiters = []
    return orphans
  }

  private func finish(_ orphans: [Completion]) {
    for orphan in orphans { orphan.set(.failure(TestServer.Stopped())) }
    let isOver = state.withLock { $0.isStopping && $0.living == 0 }
    if isOver { allThreadsEnded.open() }
  }

  // MARK: Stop

  var isStopping: Bool { state.withLock { $0.isStopping } }

  func stop() {
    let (listener, actions, isOwnThread, orphans) = state.withLock { state in
      state.isStopping = true
      // Within the lock: a reference held outside of it could delay the close that a script has requested.
      for socket in state.sockets.values { socket.shutDown() }
      let taken = (
        state.listener, Array(state.stopActions.values),
        state.identities.contains(SystemThread.currentIdentity), state.living == 0 ? Self.end(&state) : []
      )
      state.listener = nil
      state.stopActions = [:]
      return taken
    }
    stopped.open()
    listener?.shutDown()
    for action in actions { action() }
    finish(orphans)
    // A thread of the server cannot wait for its own end.
    if !isOwnThread { allThreadsEnded.wait() }
  }

  /// Blocks until the deadline or until the server stops.
  ///
  /// - Returns: `false` if the server has stopped.
  func pause(until deadline: Deadline) -> Bool { !stopped.wait(until: deadline) }

  /// Blocks until the signal has fired or the server stops.
  ///
  /// - Returns: Whether the signal has fired.
  func wait(for signal: TestServer.Signal) -> Bool {
    let latch = Latch()
    let id: Int? = state.withLock { state in
      guard !state.isStopping else { return nil }
      state.nextStopAction += 1
      state.stopActions[state.nextStopAction] = { latch.open() }
      return state.nextStopAction
    }
    guard let id else { return signal.hasFired }
    let forget = signal.whenFired { latch.open() }
    latch.wait()
    forget()
    state.withLock { _ = $0.stopActions.removeValue(forKey: id) }
    return signal.hasFired
  }

  // MARK: Connections

  /// Registers a connection.
  ///
  /// - Returns: The connection's number and its script, or `nil` if the server is stopping.
  func connectionAccepted(_ socket: consuming BlockingSocket) -> (number: Int, script: TestServer.Script?)? {
    let (entered, due) = state.withLock { state in
      guard !state.isStopping else { return (nil as (Int, TestServer.Script?)?, [] as [Completion]) }
      let due = Self.count(.connections, in: &state)
      let number = state.tallies[.connections] ?? 0
      state.sockets[number] = socket
      return ((number, state.scripts.isEmpty ? state.defaultScript : state.scripts.removeFirst()), due)
    }
    for suspension in due { suspension.set(.success(())) }
    return entered.map { ($0.0, $0.1) }
  }

  /// Returns the socket of a connection, for its thread.
  func socket(_ number: Int) -> BlockingSocket? { state.withLock { $0.sockets[number] } }

  /// Drops the core's reference to a socket, which leaves the connection's thread as its only owner.
  func forgetSocket(_ number: Int) { state.withLock { _ = $0.sockets.removeValue(forKey: number) } }

  func connectionClosed() { tally(.closedConnections) }

  // MARK: The ledger

  private func tally(_ tally: Tally) {
    let due = state.withLock { Self.count(tally, in: &$0) }
    for suspension in due { suspension.set(.success(())) }
  }

  /// Adds one to a count.
  ///
  /// - Returns: The waiters whose count is reached, for the caller to resume.
  private static func count(_ tally: Tally, in state: inout State) -> [Completion] {
    let count = (state.tallies[tally] ?? 0) + 1
    state.tallies[tally] = count
    let due = state.waiters.filter { $0.tally == tally && $0.count <= count }
    if !due.isEmpty { state.waiters.removeAll { $0.tally == tally && $0.count <= count } }
    return due.map(\.suspension)
  }

  func count(_ tally: Tally) -> Int { state.withLock { $0.tallies[tally] ?? 0 } }

  /// Suspends until the count has been reached.
  func wait(for tally: Tally, _ count: Int) async throws {
    let suspension = Completion()
    let id: Int? = try state.withLock { state in
      guard (state.tallies[tally] ?? 0) < count else { return nil }
      guard !state.isStopping || state.living > 0 else { throw TestServer.Stopped() }
      state.nextWaiter += 1
      state.waiters.append((state.nextWaiter, tally, count, suspension))
      return state.nextWaiter
    }
    guard let id else { return }
    try await withTaskCancellationHandler {
      try await suspension.get()?.get()
    } onCancel: {
      state.withLock { $0.waiters.removeAll { $0.id == id } }
      suspension.set(.failure(CancellationError()))
    }
  }

  /// Records a request.
  ///
  /// - Returns: The record's number among all requests since the start.
  @discardableResult
  func record(_ request: TestServer.Request) -> Int {
    let (recordNumber, due) = state.withLock { state in
      (state.requests.append(request), Self.count(.requests, in: &state))
    }
    for suspension in due { suspension.set(.success(())) }
    return recordNumber
  }

  /// Replaces the record of a request, of which only the head was known, by the complete request.
  func amendRequest(_ recordNumber: Int, with request: TestServer.Request) {
    state.withLock { $0.requests.replace(recordNumber, with: request) }
  }

  var requests: [TestServer.Request] { state.withLock { $0.requests.latest } }

  /// Records a handshake.
  ///
  /// - Returns: The record's number among all handshakes since the start.
  @discardableResult
  func record(_ handshake: TestServer.Handshake) -> Int {
    let (recordNumber, due) = state.withLock { state in
      (state.handshakes.append(handshake), Self.count(.handshakes, in: &state))
    }
    for suspension in due { suspension.set(.success(())) }
    return recordNumber
  }

  func amendHandshake(_ recordNumber: Int, with handshake: TestServer.Handshake) {
    state.withLock { $0.handshakes.replace(recordNumber, with: handshake) }
  }

  var handshakes: [TestServer.Handshake] { state.withLock { $0.handshakes.latest } }

  /// Records a WebSocket whose opening handshake the server answers.
  ///
  /// - Returns: The record's number among all WebSockets since the start.
  func record(_ webSocket: TestServer.WebSocket) -> Int {
    let (recordNumber, due) = state.withLock { state in
      (state.webSockets.append(webSocket), Self.count(.webSockets, in: &state))
    }
    for suspension in due { suspension.set(.success(())) }
    return recordNumber
  }

  /// Changes the record of a WebSocket in place, and adds one to a count.
  func amendWebSocket(
    _ recordNumber: Int, counting tally: Tally? = nil, _ change: (inout TestServer.WebSocket) -> Void
  ) {
    let due = state.withLock { state in
      state.webSockets.amend(recordNumber, change)
      return tally.map { Self.count($0, in: &state) } ?? []
    }
    for suspension in due { suspension.set(.success(())) }
  }

  var webSockets: [TestServer.WebSocket] { state.withLock { $0.webSockets.latest } }

  func fail(_ message: String) { state.withLock { $0.failures.append(message) } }

  var failures: [String] { state.withLock { $0.failures } }

  // MARK: Routes and scripts

  var router: Router { state.withLock { $0.router } }

  func add(_ route: Router.Route) { state.withLock { $0.router.add(route) } }

  /// Removes the server's own routes.
  func replaceRoutes(by route: Router.Route) {
    state.withLock {
      $0.router = Router(only: route)
      $0.uploads = []
    }
  }

  /// Returns the latest route of resumable uploads that takes the path.
  func uploads(at path: String) -> TestServer.Uploads? { state.withLock { $0.uploads.last { $0.takes(path) } } }

  func add(_ uploads: TestServer.Uploads) { state.withLock { $0.uploads.append(uploads) } }

  func enqueue(_ scripts: [TestServer.Script]) { state.withLock { $0.scripts += scripts } }

  var scriptsPending: Int { state.withLock { $0.scripts.count } }

  var defaultScript: TestServer.Script? {
    get { state.withLock { $0.defaultScript } }
    set { state.withLock { $0.defaultScript = newValue } }
  }
}
