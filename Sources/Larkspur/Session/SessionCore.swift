import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport
import Synchronization

/// The state that a session's tasks share: the configuration, the delegate and its queue, the list of tasks, and the
/// engine, which is made when the first task starts. For any thread.
final class SessionCore: @unchecked Sendable {
  let configuration: URLSessionConfiguration
  let delegateQueue: DelegateQueue
  let hasDelegate: Bool
  /// Whether the session's delegate conforms to `URLSessionTaskDelegate`.
  let hasTaskDelegate: Bool
  /// Whether the session's delegate conforms to `URLSessionSelectiveDelegate`.
  let hasSelectiveDelegate: Bool
  let composer: RequestComposer
  let memory: AuthenticationMemory
  /// The `URLProtocol` classes of the configuration.
  let protocolClasses: [URLProtocol.Type]
  // Performance: the values that tasks read, because each read of the class `configuration` copies its storage.
  let settings: URLSessionConfiguration.Settings
  let cookieStorage: HTTPCookieStorage?
  let credentialStorage: URLCredentialStorage?
  let cache: URLCache?
  let provideIdentity: (@Sendable (_ host: String, _ port: Int) async -> ClientIdentity?)?
  let isBackground: Bool
  /// Whether tasks wait while there is no route to the server. Those of background sessions always do.
  var waitsForNetwork: Bool { settings.waitsForConnectivity || isBackground }
  let uploadRetry: UploadRetry?
  let interceptors: [any URLSessionInterceptor]
  /// The timeouts in nanoseconds.
  let timeoutForRequest: UInt64
  let timeoutForResource: UInt64
  /// The limits of the parts of each exchange, or `nil` for none.
  let exchangeTimeouts: Timeouts?
  /// How long a task that was cancelled before its first `resume` waits for one before it ends. Tests change the value
  /// while there are no tasks.
  var unbegunEndDelay = Duration.milliseconds(10)
  /// The order of protocols' starts. Tests replace it while there are no tasks.
  var protocolTurns = ProtocolTurns()
  let isShared: Bool

  let state: Mutex<State>
  let lastIdentifier = Atomic(0)
  private let hasDecidedStoring = Atomic(true)
  /// Whether an awaited load has stopped waiting for its metrics call, which had not started within 1 s
  /// (`Load.callMax`): the delegate queue is suspended, or blocked by code that waits for the load.
  let isQueueStuck = Atomic(false)

  init(
    _ configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, queue: OperationQueue?,
    isShared: Bool = false
  ) {
    self.configuration = configuration
    self.isShared = isShared
    delegateQueue = DelegateQueue(queue)
    hasDelegate = delegate != nil
    hasTaskDelegate = delegate is any URLSessionTaskDelegate
    let selective = delegate as? any URLSessionSelectiveDelegate
    hasSelectiveDelegate = selective != nil
    let storage = configuration.storage
    memory = AuthenticationMemory(storage: storage.credentialStorage)
    protocolClasses = storage.protocolClasses?.compactMap { $0 as? URLProtocol.Type } ?? []
    composer = RequestComposer(additional: storage.additionalHeaders)
    settings = storage.settings
    cookieStorage = storage.cookieStorage
    credentialStorage = storage.credentialStorage
    cache = storage.cache
    provideIdentity = storage.trust.provideIdentity
    isBackground = storage.identifier != nil
    uploadRetry = storage.uploadRetry
    interceptors = storage.interceptors
    timeoutForRequest = LoadClock.nanoseconds(Duration(interval: settings.timeoutForRequest))
    timeoutForResource = LoadClock.nanoseconds(Duration(interval: settings.timeoutForResource))
    exchangeTimeouts = settings.timeouts.concernsExchanges ? settings.timeouts : nil
    state = Mutex(
      State(
        delegate: delegate, taskDelegate: delegate as? any URLSessionTaskDelegate,
        dataDelegate: delegate as? any URLSessionDataDelegate, selective: selective))
  }

  var delegate: (any URLSessionDelegate)? { state.withLock { $0.delegate } }

  var taskDelegate: (any URLSessionTaskDelegate)? {
    hasTaskDelegate ? state.withLock { $0.taskDelegate } : nil
  }

  /// Returns the delegate as a `URLSessionDataDelegate`, or `nil` if it does not conform to the protocol.
  func dataDelegate(_ delegate: any URLSessionTaskDelegate) -> (any URLSessionDataDelegate)? {
    if let known = state.withLock({ $0.dataDelegate }), known === delegate { return known }
    return delegate as? any URLSessionDataDelegate
  }

  /// The delegate that chooses its calls, or `nil` if the delegate gets every call or there is none.
  var selectiveDelegate: (any URLSessionSelectiveDelegate)? {
    hasSelectiveDelegate ? state.withLock { $0.selective } : nil
  }

  /// Whether the session's delegate may implement `willCacheResponse`. Only a call of the method shows that it is
  /// missing.
  var mayDecideStoring: Bool { hasTaskDelegate && hasDecidedStoring.load(ordering: .relaxed) }

  func delegateDoesNotDecideStoring() { hasDecidedStoring.store(false, ordering: .relaxed) }

  /// The tasks that have been resumed and are not over, in the order of their numbers. They include tasks that the
  /// cache has made.
  var tasks: [URLSessionTask] {
    let tasks = state.withLock { state in
      for load in state.loads.members { _ = state.task(of: load) }
      return state.tasks.members
    }
    return tasks.filter(\.isUnderWay).sorted { $0.taskIdentifier < $1.taskIdentifier }
  }

  func nextIdentifier() -> Int { lastIdentifier.add(1, ordering: .relaxed).newValue }

  func keepSession(_ session: URLSession) { state.withLock { $0.kept = session } }

  /// The session, or `nil` if it has no delegate or is over.
  var keptSession: URLSession? { state.withLock { $0.kept } }

  // MARK: - Tasks

  /// Adds a task to the list, and reports the task to its delegate.
  ///
  /// - Parameter isStarted: Whether the task already runs. A delegate that is notified of the task may still cancel or
  ///   suspend it.
  func register(_ task: URLSessionTask, _ session: URLSession, isStarted: Bool = false) {
    // Before the task is on the list: a thread that finds the task there may cancel it.
    let own = task.read { details in
      details.session = session
      if isStarted {
        details.hasStarted = true
        details.suspensions = 0
        details.state = .running
      }
      return details.delegate
    }
    let delegate = state.withLock { state in
      // A segment of a task that still runs is no new task.
      if state.phase == .open || task.owner.indexInSet != nil {
        state.tasks.insert(task)
      }
      // A delegate that has been called for the session's end gets no more calls. The session may not have released it
      // yet.
      return state.phase == .closed ? nil : state.taskDelegate
    }
    guard task.isKnown else { return }
    if let own {
      let hasMethod = task.methodProbe.isImplemented(by: own) {
        own.urlSession(session, didCreateTask: task)
        return true
      }
      if hasMethod { return }
    }
    delegate?.urlSession(session, didCreateTask: task)
  }

  /// Whether a task may still run, although the session may have been invalidated.
  private func takes(_ task: URLSessionTask) -> Bool {
    state.withLock { $0.phase == .open || task.indexInSet != nil }
  }

  /// The tasks that have been resumed and are not over.
  var knownTasks: [URLSessionTask] { tasks.filter(\.isKnown) }

  /// Reserves a request for a refresh by the cache. The program does not see the task of the refresh. The reservation
  /// ends with the task.
  ///
  /// - Returns: `false` if the cache is already refreshing the request.
  func startRefresh(_ request: URLRequest) -> Bool { state.withLock { $0.refreshes.insert(request).inserted } }

  /// Whether the cache is refreshing anything. For tests: the task of a refresh is on no list that they see.
  var isRefreshing: Bool { state.withLock { !$0.refreshes.isEmpty } }

  /// Makes an awaited data load. If no delegate observes the load, its task is made only when the program asks for it
  /// or a stage needs it.
  func load(
    for request: URLRequest, _ session: URLSession, _ delegate: (any URLSessionTaskDelegate)?
  ) throws -> Load {
    guard delegate == nil, !hasTaskDelegate, !isBackground else {
      return try load(of: URLSessionDataTask(self, request: request, output: .dataResult), session, delegate)
    }
    guard let load = try makeLoad(of: nil, request, identifier: nextIdentifier(), session, isWatched: false)
    else { throw Self.invalidated.failing(at: request.url) }
    return load
  }

  private static var invalidated: URLError { URLError.make(.cancelled, "the session has been invalidated") }

  /// Makes the awaited load of a task.
  func load(
    of task: URLSessionTask, _ session: URLSession, _ delegate: (any URLSessionTaskDelegate)?
  ) throws -> Load {
    if let delegate { task.delegate = delegate }
    register(task, session, isStarted: true)
    do throws(URLError) {
      if isBackground, takes(task), let background = try openedBackground { _ = try background.begin(task) }
      guard let load = try makeLoad(of: task, session) else { throw Self.invalidated }
      return load
    } catch {
      TaskCompletion.refuse(task, error, self)
      throw error.failing(at: task.originalRequest?.url)
    }
  }

  /// Runs a load for an async function, and returns when the result is there.
  @inline(__always)
  func run(_ load: Load) async throws {
    let loop = load.engine.loop
    if loop.isCurrent {
      load.caller = .onLoop
      if !Task.isCancelled, load.performStages() {
        if load.hasCome { return await Task.yield() }
        return await TaskContinuation.suspend(for: load)
      }
      if loop.isPreferred {
        return await TaskContinuation.cancellable {
          await load.runForCaller()
        } onCancel: {
          cancel(load)
        }
      }
      load.caller = .elsewhere
    }
    await TaskContinuation.suspend(for: load)
    if case .served = load.caller { await Task.yield() }
  }

  /// Cancels a load whose caller has been cancelled.
  func cancel(_ load: Load) {
    guard let task = load.givenTask ?? state.withLock({ _ in load.shownTask }) else {
      return load.interrupt()
    }
    task.cancel()
  }

  /// Starts a task that has been resumed.
  ///
  /// - Parameter inline: Whether the task may start on the calling thread.
  func start(_ task: URLSessionTask, inline: Bool = true) {
    do {
      if isBackground, takes(task), let background = try openedBackground, try background.begin(task) { return }
      guard let session = task.read({ $0.session }), let load = try makeLoad(of: task, session) else {
        return TaskCompletion.refuse(task, Self.invalidated, self)
      }
      // If a delegate observes the task, the task starts on the loop's thread: an operation that the caller adds to the
      // delegate queue right after `resume` usually comes before the delegate's first call. A delegate that chooses its
      // calls needs no such order.
      start(load, inline: inline && (hasSelectiveDelegate || load.metrics == nil))
    } catch {
      TaskCompletion.refuse(task, error, self)
    }
  }

  /// Ends a task that was cancelled before its first `resume`, after `unbegunEndDelay`, unless the task is resumed
  /// before.
  func endSoon(_ task: URLSessionTask) {
    guard let loop = try? engine()?.loop else { return task.endUnbegun() }
    loop.post { [unbegunEndDelay] in
      var timer: ClientLoop.Timer?
      timer = loop.startTimer(loop.now.advanced(by: unbegunEndDelay)) {
        if let timer { loop.stopTimer(timer) }
        task.endUnbegun()
      }
    }
  }

  /// Starts a load. Not inline if there are `URLProtocol` classes: an inline tick must not call the program's code,
  /// because that may need a lock that the caller holds.
  func start(_ load: Load, inline: Bool = true) {
    load.engine.loop.submit(load, inline: inline && !mayHaveProtocols)
  }

  /// - Returns: The load, or `nil` if the session takes no new tasks.
  private func makeLoad(of task: URLSessionTask, _ session: URLSession) throws(URLError) -> Load? {
    let isWatched = task.isKnown && (hasTaskDelegate || task.read { $0.delegate != nil })
    let request = task.originalRequest ?? URLRequest(RequestStorage(url: nil))
    let load = try makeLoad(
      of: task, request, identifier: task.taskIdentifier, session, isWatched: isWatched)
    // From here on cancellations and suspensions reach the load directly. The load reads the earlier ones from
    // the task.
    task.read { $0.load = load }
    return load
  }

  private func makeLoad(
    of task: URLSessionTask?, _ request: URLRequest, identifier: Int, _ session: URLSession, isWatched: Bool
  ) throws(URLError) -> Load? {
    try state.withLock { state throws(URLError) in
      guard let engine = try state.engine(for: task, configuration) else { return nil }
      let load = Load(
        of: task, request, identifier: identifier, session, engine, isWatched: isWatched,
        selective: state.selective)
      if task == nil {
        state.loads.insert(load)
      }
      return load
    }
  }

  /// Returns the task of a load, and makes it if there is none.
  func task(of load: Load) -> URLSessionTask {
    load.givenTask ?? state.withLock { $0.task(of: load) }
  }

  /// Takes an awaited load that is over off the list.
  ///
  /// - Returns: The task of the load, which is not over yet, or `nil` if the load has none.
  func end(_ load: Load) -> URLSessionTask? {
    let (task, isLast) = state.withLock { state in
      state.loads.remove(load)
      return (load.shownTask, state.isOver)
    }
    if isLast { closeIfOver() }
    return task
  }

  /// - Returns: The engine, or `nil` if the session takes no new tasks.
  func engine() throws(URLError) -> SessionEngine? {
    try state.withLock { state throws(URLError) in try state.engine(for: nil, configuration) }
  }

  /// Takes a task off the list. The task is over, and its owner has been notified.
  func ended(_ task: URLSessionTask) {
    task.ended(task.error)
    let session = task.releaseReferences()
    if hasSelectiveDelegate, task.isKnown, let session { selectiveDelegate?.urlSession(session, didEnd: task) }
    let refreshed = task.isKnown ? nil : task.originalRequest
    let isLast = state.withLock { state in
      state.tasks.remove(task)
      if let refreshed { state.refreshes.remove(refreshed) }
      return state.isOver
    }
    if isLast { closeIfOver() }
  }

  /// Puts a task on the list in place of another task, whose load it continues.
  func replace(_ old: URLSessionTask, by other: URLSessionTask, of session: URLSession) {
    other.read { $0.session = session }
    let isCancelled = state.withLock { state -> Bool in
      state.tasks.insert(other)
      state.tasks.remove(old)
      return state.cancelsTasks
    }
    old.read { $0.state = .completed }
    old.releaseReferences()
    // The new task was not on the list when the session cancelled its tasks.
    if isCancelled { other.cancel() }
  }
}
