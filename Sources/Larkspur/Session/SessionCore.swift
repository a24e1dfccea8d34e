import Foundation
import LarkspurBytes
import LarkspurIO
import LarkspurTransport
import Synchronization

/// What a session's tasks share, for any thread: the configuration, the delegate and its queue, the list of tasks, and the
/// engine, which is made when the first task begins.
///
/// Life of a session:
///
/// ```
///   open --invalidate--> closing --last task ends--> closed: the delegate is told, and let go
///     '--session object gone, no tasks--> closed
/// ```
final class SessionCore: @unchecked Sendable {
  let configuration: URLSessionConfiguration
  let delegateQueue: DelegateQueue
  let hasDelegate: Bool
  /// Whether the session's delegate wants to hear of tasks.
  let hasTaskDelegate: Bool
  /// Whether it wants to be asked what it wants.
  let hasSelectiveDelegate: Bool
  let composer: RequestComposer
  let memory: AuthenticationMemory
  /// Of the configuration.
  let protocolClasses: [URLProtocol.Type]
  // What every task looks at: the configuration as a whole is large to copy.
  let cookieStorage: HTTPCookieStorage?
  /// Whether requests bring cookies along. What servers set is kept all the same.
  let sendsCookies: Bool
  let cookieAcceptPolicy: HTTPCookie.AcceptPolicy?
  let credentialStorage: URLCredentialStorage?
  let cache: URLCache?
  let requestCachePolicy: URLRequest.CachePolicy
  let networkServiceType: URLRequest.NetworkServiceType
  let pipelines: Bool
  let isBackground: Bool
  let waitsForConnectivity: Bool
  /// In nanoseconds.
  let timeoutForRequest: UInt64
  let timeoutForResource: UInt64
  /// How long the end of a task that has been cancelled before it has begun waits for its `resume`. (Tests set another, while
  /// there are no tasks.)
  var unbegunEndDelay = Duration.milliseconds(10)
  private let isShared: Bool

  private enum Phase {
    case open
    case closing
    case closed
  }

  private struct State {
    var phase = Phase.open
    var cancelsTasks = false
    var delegate: (any URLSessionDelegate)?
    // The same, if it is of that kind. To ask an object for its kind takes longer than to call it.
    var taskDelegate: (any URLSessionTaskDelegate)?
    var dataDelegate: (any URLSessionDataDelegate)?
    var selective: (any URLSessionSelectiveDelegate)?
    var tasks = PlaceList<URLSessionTask>()
    /// Those that have no task.
    var transfers = PlaceList<Transfer>()
    /// What the cache is loading for itself.
    var refreshes: Set<URLRequest> = []
    var engine: SessionEngine?
    /// Keeps the session while somebody has to be told of its end.
    var kept: URLSession?
    var isObjectGone = false

    /// Whether nobody is left who could want anything of the session.
    var isOver: Bool { count == 0 && (phase == .closing || phase == .open && isObjectGone) }

    private var count: Int { tasks.members.count + transfers.members.count }

    /// Nil: the session is closed to what wants it.
    ///
    /// - Parameter task: Who wants it: one that existed before the session was invalidated may still run. Nil: none does yet.
    mutating func engine(
      for task: URLSessionTask?, _ configuration: URLSessionConfiguration
    ) throws(URLError) -> SessionEngine? {
      guard phase == .open || task?.place != nil else { return nil }
      if let engine { return engine }
      do throws(Errno) {
        let engine = try SessionEngine(configuration)
        self.engine = engine
        return engine
      } catch {
        throw URLError.make(.resourceUnavailable, "no resources for a session: \(error)")
      }
    }

    /// The task of a transfer that is not over.
    mutating func task(of transfer: Transfer) -> URLSessionTask {
      if let task = transfer.shownTask { return task }
      let task = URLSessionDataTask(of: transfer)
      transfer.shownTask = task
      transfers.remove(transfer)
      tasks.insert(task)
      return task
    }
  }

  private let state: Mutex<State>
  private let lastIdentifier = Atomic(0)
  private let hasDecidedStoring = Atomic(true)
  /// A call that somebody awaits has not begun for long: the queue is suspended, or waits for one of those who await.
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
    cookieStorage = storage.cookieStorage
    sendsCookies = storage.shouldSetCookies
    cookieAcceptPolicy = storage.cookieAcceptPolicy
    credentialStorage = storage.credentialStorage
    cache = storage.cache
    requestCachePolicy = storage.requestCachePolicy
    networkServiceType = storage.networkServiceType
    pipelines = storage.shouldUsePipelining
    isBackground = storage.identifier != nil
    waitsForConnectivity = storage.waitsForConnectivity || isBackground
    timeoutForRequest = LoadClock.nanoseconds(Duration(interval: storage.timeoutForRequest))
    timeoutForResource = LoadClock.nanoseconds(Duration(interval: storage.timeoutForResource))
    state = Mutex(
      State(
        delegate: delegate, taskDelegate: delegate as? any URLSessionTaskDelegate,
        dataDelegate: delegate as? any URLSessionDataDelegate, selective: selective))
  }

  var delegate: (any URLSessionDelegate)? { state.withLock { $0.delegate } }

  var taskDelegate: (any URLSessionTaskDelegate)? {
    hasTaskDelegate ? state.withLock { $0.taskDelegate } : nil
  }

  /// The same object as one that can be told of data, if it is one.
  func dataDelegate(_ delegate: any URLSessionTaskDelegate) -> (any URLSessionDataDelegate)? {
    if let known = state.withLock({ $0.dataDelegate }), known === delegate { return known }
    return delegate as? any URLSessionDataDelegate
  }

  /// Nil: the delegate, if there is one, gets every call.
  var selectiveDelegate: (any URLSessionSelectiveDelegate)? {
    hasSelectiveDelegate ? state.withLock { $0.selective } : nil
  }

  /// Whether the session's delegate may have `willCacheResponse`. Only to ask it shows that it has not.
  var mayDecideStoring: Bool { hasTaskDelegate && hasDecidedStoring.load(ordering: .relaxed) }

  func delegateDoesNotDecideStoring() { hasDecidedStoring.store(false, ordering: .relaxed) }

  /// Those that are under way, also those that the program has not made.
  var tasks: [URLSessionTask] {
    let tasks = state.withLock { state in
      for transfer in state.transfers.members { _ = state.task(of: transfer) }
      return state.tasks.members
    }
    return tasks.filter(\.isUnderWay).sorted { $0.taskIdentifier < $1.taskIdentifier }
  }

  func nextIdentifier() -> Int { lastIdentifier.add(1, ordering: .relaxed).newValue }

  func keepSession(_ session: URLSession) { state.withLock { $0.kept = session } }

  /// The session, if it has a delegate and is not over.
  var keptSession: URLSession? { state.withLock { $0.kept } }

  // MARK: - Tasks

  /// - Parameter isBegun: It runs already. A delegate that hears of it may still cancel or suspend it.
  func register(_ task: URLSessionTask, _ session: URLSession, isBegun: Bool = false) {
    // Before it is on the list: who finds it there may cancel it.
    let own = task.read { details in
      details.session = session
      if isBegun {
        details.hasBegun = true
        details.suspensions = 0
        details.state = .running
      }
      return details.delegate
    }
    let delegate = state.withLock { state in
      if state.phase == .open {
        state.tasks.insert(task)
      }
      // A delegate that has heard of the session's end hears nothing more: it may not have been let go yet.
      return state.phase == .closed ? nil : state.taskDelegate
    }
    guard task.isKnown else { return }
    if let own {
      let hasWord = task.delegateWord.isGiven(by: own) {
        own.urlSession(session, didCreateTask: task)
        return true
      }
      if hasWord { return }
    }
    delegate?.urlSession(session, didCreateTask: task)
  }

  /// Whether the cache may load this for itself: not while it does already. The task that then does is one that the program
  /// does not know; with its end the next may come.
  func beginRefresh(_ request: URLRequest) -> Bool { state.withLock { $0.refreshes.insert(request).inserted } }

  /// For tests: the task is on no list that they see.
  var isRefreshing: Bool { state.withLock { !$0.refreshes.isEmpty } }

  /// A data task that is awaited. Where nobody watches it, it is made when somebody wants to see it.
  func transfer(
    for request: URLRequest, _ session: URLSession, _ delegate: (any URLSessionTaskDelegate)?
  ) throws -> Transfer {
    guard delegate == nil, !hasTaskDelegate else {
      return try transfer(of: URLSessionDataTask(self, request: request, output: .dataResult), session, delegate)
    }
    guard let transfer = try makeTransfer(of: nil, request, identifier: nextIdentifier(), session, isWatched: false)
    else { throw Self.isOver.failing(at: request.url) }
    return transfer
  }

  private static var isOver: URLError { URLError.make(.cancelled, "the session has been invalidated") }

  /// A task that is awaited.
  func transfer(
    of task: URLSessionTask, _ session: URLSession, _ delegate: (any URLSessionTaskDelegate)?
  ) throws -> Transfer {
    if let delegate { task.delegate = delegate }
    register(task, session, isBegun: true)
    do throws(URLError) {
      guard let transfer = try makeTransfer(of: task, session) else { throw Self.isOver }
      return transfer
    } catch {
      TaskEnding.refuse(task, error, self)
      throw error.failing(at: task.originalRequest?.url)
    }
  }

  /// Runs a transfer for an async function, which waits for the result.
  @inline(__always)
  func run(_ transfer: Transfer) async throws {
    let loop = transfer.engine.loop
    if loop.isCurrent {
      transfer.isCallersOwn = true
      if !Task.isCancelled, transfer.performStages() {
        // (What needs no waiting may be wanted again and again, while others wait for the loop.)
        if transfer.hasCome { return await Task.yield() }
        return await Waiter.suspend(for: transfer)
      }
      transfer.isCallersOwn = loop.isPreferred
    }
    if transfer.isCallersOwn {
      return await Waiter.cancellable {
        await transfer.runForCaller()
      } onCancel: {
        cancel(transfer)
      }
    }
    transfer.beginsWhenAwaited = true
    await Waiter.suspend(for: transfer)
  }

  /// Its caller has been cancelled.
  func cancel(_ transfer: Transfer) {
    guard let task = transfer.givenTask ?? state.withLock({ _ in transfer.shownTask }) else {
      return transfer.interrupt()
    }
    task.cancel()
  }

  /// Lets a task run, on its own.
  ///
  /// - Parameter inline: Whether it may begin on the calling thread.
  func begin(_ task: URLSessionTask, inline: Bool = true) {
    do {
      guard let session = task.read({ $0.session }), let transfer = try makeTransfer(of: task, session) else {
        return TaskEnding.refuse(task, Self.isOver, self)
      }
      // What a delegate hears comes behind what its owner says on the queue right after `resume`, most often. (One that says what
      // it wants to hear does not mind.)
      begin(transfer, inline: inline && (hasSelectiveDelegate || transfer.metrics == nil))
    } catch {
      TaskEnding.refuse(task, error, self)
    }
  }

  /// Ends a task that has been cancelled before it has begun: a moment later, unless it is resumed before.
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

  /// Begins a transfer. An inline tick does not call the program's own code, which may want a lock that the caller holds.
  func begin(_ transfer: Transfer, inline: Bool = true) {
    transfer.engine.loop.submit(transfer, inline: inline && !mayHaveProtocols)
  }

  /// Nil: the session is closed to new tasks.
  private func makeTransfer(of task: URLSessionTask, _ session: URLSession) throws(URLError) -> Transfer? {
    let isWatched = task.isKnown && (hasTaskDelegate || task.read { $0.delegate != nil })
    let request = task.originalRequest ?? URLRequest(RequestStorage(url: nil))
    let transfer = try makeTransfer(
      of: task, request, identifier: task.taskIdentifier, session, isWatched: isWatched)
    // Who cancels or suspends from now on tells the transfer; what happened before, it sees.
    task.read { $0.transfer = transfer }
    return transfer
  }

  private func makeTransfer(
    of task: URLSessionTask?, _ request: URLRequest, identifier: Int, _ session: URLSession, isWatched: Bool
  ) throws(URLError) -> Transfer? {
    try state.withLock { state throws(URLError) in
      guard let engine = try state.engine(for: task, configuration) else { return nil }
      let transfer = Transfer(
        of: task, request, identifier: identifier, session, engine, isWatched: isWatched,
        selective: state.selective)
      if task == nil {
        state.transfers.insert(transfer)
      }
      return transfer
    }
  }

  /// The task that a transfer is shown as.
  func task(of transfer: Transfer) -> URLSessionTask {
    transfer.givenTask ?? state.withLock { $0.task(of: transfer) }
  }

  /// An awaited load is over. Its task, if it has one, is not.
  func end(_ transfer: Transfer) -> URLSessionTask? {
    let (task, isLast) = state.withLock { state in
      state.transfers.remove(transfer)
      return (transfer.shownTask, state.isOver)
    }
    if isLast { closeIfOver() }
    return task
  }

  /// Nil: the session is closed to new tasks.
  func engine() throws(URLError) -> SessionEngine? {
    try state.withLock { state throws(URLError) in try state.engine(for: nil, configuration) }
  }

  /// A task is over, and its owner has been told.
  func ended(_ task: URLSessionTask) {
    let session = task.letGo()
    if hasSelectiveDelegate, task.isKnown, let session { selectiveDelegate?.urlSession(session, didEnd: task) }
    let refreshed = task.isKnown ? nil : task.originalRequest
    let isLast = state.withLock { state in
      state.tasks.remove(task)
      if let refreshed { state.refreshes.remove(refreshed) }
      return state.isOver
    }
    if isLast { closeIfOver() }
  }

  /// One task goes on in place of another.
  func replace(_ old: URLSessionTask, by other: URLSessionTask, of session: URLSession) {
    other.read { $0.session = session }
    let isCancelled = state.withLock { state -> Bool in
      state.tasks.insert(other)
      state.tasks.remove(old)
      return state.cancelsTasks
    }
    old.read { $0.state = .completed }
    old.letGo()
    // It was not on the list when the others were cancelled.
    if isCancelled { other.cancel() }
  }

  // MARK: - Invalidation

  func invalidate(cancelsTasks: Bool) {
    guard !isShared else { return }
    let (tasks, transfers) = state.withLock { state -> ([URLSessionTask], [Transfer]) in
      if state.phase == .open { state.phase = .closing }
      if cancelsTasks { state.cancelsTasks = true }
      return cancelsTasks ? (state.tasks.members, state.transfers.members) : ([], [])
    }
    for task in tasks { task.cancel() }
    for transfer in transfers { cancel(transfer) }
    closeIfOver()
  }

  func sessionGone() {
    state.withLock { $0.isObjectGone = true }
    closeIfOver()
  }

  private func closeIfOver() {
    typealias End = (delegate: (any URLSessionDelegate)?, session: URLSession?, engine: SessionEngine?)
    let end = state.withLock { state -> End? in
      guard state.isOver else { return nil }
      state.phase = .closed
      defer { state.engine = nil }
      return (state.delegate, state.kept, state.engine)
    }
    guard let end else { return }
    end.engine?.shutDown()
    cache?.core.writeSoon()
    cookieStorage?.writeSoon()
    guard let delegate = end.delegate, let session = end.session else { return letGo() }
    // It is the session's delegate until it has heard of the end.
    delegateQueue.insist { [self] in
      delegate.urlSession(session, didBecomeInvalidWithError: nil)
      letGo()
    }
  }

  private func letGo() {
    let last = state.withLock { state in
      defer {
        state.delegate = nil
        state.taskDelegate = nil
        state.dataDelegate = nil
        state.selective = nil
        state.kept = nil
      }
      return (state.delegate, state.kept)
    }
    // Whoever goes with these may call back: not while the lock is held.
    withExtendedLifetime(last) {}
  }

  func reset(_ completion: @escaping @Sendable () -> Void) {
    configuration.storage.cookieStorage?.removeCookies(since: .distantPast)
    configuration.storage.cache?.removeAllCachedResponses()
    configuration.storage.credentialStorage?.removeAll()
    memory.removeAll()
    flush(completion)
  }

  func flush(_ completion: @escaping @Sendable () -> Void) {
    let engine = state.withLock { $0.engine }
    let cache = cache
    let renewConnections: @Sendable () -> Void = {
      if let engine { engine.renewConnections(completion) } else { completion() }
    }
    let writeCache: @Sendable () -> Void = {
      if let cache { cache.core.flush(renewConnections) } else { renewConnections() }
    }
    if let jar = configuration.storage.cookieStorage { jar.flush(writeCache) } else { writeCache() }
  }
}
