/// What a request operation is doing, and what has to be done next.
///
///     ready --start--> executing --loadEnded--> finished
///       |  ^             |    ^
///    pause resume     pause  resume
///       v  |             v    |
///     paused           paused (begun)
///
/// It owns the state and whether a load is under way. It knows nothing of requests, threads or `Foundation.Operation`.
///
/// Invariants: at most one load is under way. A load that was stopped by a pause ends before the next one begins, so
/// that no two ever write to one stream. Nothing leads out of `finished`.
struct OperationMachine: Hashable, Sendable {
  /// The numbers are those that archives have.
  enum State: Int, Sendable {
    case paused = -1
    case ready = 1
    case executing = 2
    case finished = 3
  }

  enum Action: Hashable, Sendable {
    /// Nothing changes.
    case nothing
    /// The operation is ready, or is not any more: queues want to know.
    case tellReadiness
    /// The operation executes from now on: begin a load.
    case load
    /// As `load`, when the load that was stopped has ended.
    case loadLater
    /// Stop the load; its end is no end of the operation.
    case stopLoad
    /// Stop the load; its end is the operation's.
    case cancelLoad
    /// End with the error of a cancelled request.
    case finishCancelled
    /// End with what the load has brought.
    case finish
  }

  private(set) var state = State.ready
  private(set) var isCancelled = false
  /// Whether it has been started, or executed when it was paused.
  private var hasBegun = false
  private var isLoading = false
  /// The load that is under way has been stopped by a pause.
  private var isStopped = false
  /// The load that is under way is about to end, and cannot be stopped any more.
  private var isEnding = false

  /// Whether the load that is under way has to go on.
  var wantsLoad: Bool { isLoading && !isStopped && !isCancelled }

  init(state: State = .ready) { self.state = state }

  /// - Parameter isReady: Whether all that the operation depends on is done.
  mutating func started(isReady: Bool) -> Action {
    switch state {
    case .ready where isCancelled: return finishing(.finishCancelled)
    case .ready: return isReady ? begin() : .nothing
    case .paused:
      // A queue may have been on its way to start it, and does so once.
      if isReady { hasBegun = true }
      return .nothing
    case .executing, .finished: return .nothing
    }
  }

  mutating func paused() -> Action {
    guard !isCancelled else { return .nothing }
    switch state {
    case .ready:
      state = .paused
      return .tellReadiness
    // What it has brought is not to be loaded again.
    case .executing where isEnding: return .nothing
    case .executing:
      state = .paused
      guard isLoading, !isStopped else { return .nothing }
      isStopped = true
      return .stopLoad
    case .paused, .finished: return .nothing
    }
  }

  mutating func resumed() -> Action {
    guard state == .paused else { return .nothing }
    guard hasBegun else {
      state = .ready
      return .tellReadiness
    }
    state = .executing
    guard isLoading else { return begin() }
    return .loadLater
  }

  mutating func cancelled() -> Action {
    guard !isCancelled, state != .finished else { return .nothing }
    isCancelled = true
    switch state {
    case .executing where isLoading: return .cancelLoad
    case .executing: return finishing(.finishCancelled)
    case .paused where hasBegun: return isLoading ? .cancelLoad : finishing(.finishCancelled)
    case .paused:
      // Its queue is to start it, and see it end.
      state = .ready
      return .tellReadiness
    case .ready, .finished: return .tellReadiness
    }
  }

  /// The load that is under way has nothing more to come, and its end follows. False: nobody wants what it has brought.
  mutating func loadEnds() -> Bool {
    isEnding = wantsLoad
    return isEnding
  }

  /// The load that was under way is over.
  mutating func loadEnded() -> Action {
    guard isLoading else { return .nothing }
    isLoading = false
    isEnding = false
    let wasStopped = isStopped
    isStopped = false
    if isCancelled { return finishing(.finishCancelled) }
    guard wasStopped else { return finishing(.finish) }
    return state == .executing ? begin() : .nothing
  }

  private mutating func begin() -> Action {
    state = .executing
    hasBegun = true
    isLoading = true
    return .load
  }

  private mutating func finishing(_ action: Action) -> Action {
    state = .finished
    return action
  }
}
