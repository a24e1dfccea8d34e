/// Decides about the states of a request operation, and about its loads.
///
///     ready --start--> executing --loadEnded--> finished
///       |  ^             |    ^
///    pause resume     pause  resume
///       v  |             v    |
///     paused           paused (begun)
///
/// The machine owns the state, and whether a load is in progress. The machine does not depend on requests, threads or
/// `Foundation.Operation`.
///
/// Invariants: at most one load is in progress. A load that was stopped by a pause ends before the next one starts,
/// so that two loads never write to one stream. Nothing leads out of `finished`.
struct OperationMachine: Hashable, Sendable {
  /// The raw values are those in archives.
  enum State: Int, Sendable {
    case paused = -1
    case ready = 1
    case executing = 2
    case finished = 3
  }

  enum Action: Hashable, Sendable {
    /// Nothing changes.
    case nothing
    /// Readiness has changed: notify the queues.
    case notifyReadiness
    /// The operation executes from now on: start a load.
    case load
    /// The operation executes from now on: start a load when the stopped one has ended.
    case loadLater
    /// Stop the load; its end is not the end of the operation.
    case stopLoad
    /// Stop the load; its end is the end of the operation.
    case cancelLoad
    /// Finish with the error of a cancelled request.
    case finishCancelled
    /// Finish with the result of the load.
    case finish
  }

  private(set) var state = State.ready
  private(set) var isCancelled = false
  /// Whether the operation has been started.
  private var hasStarted = false
  private var isLoading = false
  /// Whether the current load has been stopped by a pause.
  private var isStopped = false
  /// Whether the current load is about to end, and cannot be stopped any more.
  private var isEnding = false

  /// Whether the current load has to continue.
  var needsLoad: Bool { isLoading && !isStopped && !isCancelled }

  init(state: State = .ready) { self.state = state }

  /// - Parameter isReady: Whether all dependencies have finished.
  mutating func started(isReady: Bool) -> Action {
    switch state {
    case .ready where isCancelled: return finishing(.finishCancelled)
    case .ready: return isReady ? start() : .nothing
    case .paused:
      // A queue may have decided to start the operation before the pause, and does so only once.
      if isReady { hasStarted = true }
      return .nothing
    case .executing, .finished: return .nothing
    }
  }

  mutating func paused() -> Action {
    guard !isCancelled else { return .nothing }
    switch state {
    case .ready:
      state = .paused
      return .notifyReadiness
    // Keep the content, which is complete, instead of loading it again.
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
    guard hasStarted else {
      state = .ready
      return .notifyReadiness
    }
    state = .executing
    guard isLoading else { return start() }
    return .loadLater
  }

  mutating func cancelled() -> Action {
    guard !isCancelled, state != .finished else { return .nothing }
    isCancelled = true
    switch state {
    case .executing where isLoading: return .cancelLoad
    case .executing: return finishing(.finishCancelled)
    case .paused where hasStarted: return isLoading ? .cancelLoad : finishing(.finishCancelled)
    case .paused:
      // The queue has to start the operation, to see it finish.
      state = .ready
      return .notifyReadiness
    case .ready, .finished: return .notifyReadiness
    }
  }

  /// The current load has no more content, and its end follows.
  ///
  /// - Returns: `false` if the result is not wanted any more.
  mutating func loadEnds() -> Bool {
    isEnding = needsLoad
    return isEnding
  }

  /// The current load is over.
  mutating func loadEnded() -> Action {
    guard isLoading else { return .nothing }
    isLoading = false
    isEnding = false
    let wasStopped = isStopped
    isStopped = false
    if isCancelled { return finishing(.finishCancelled) }
    guard wasStopped else { return finishing(.finish) }
    return state == .executing ? start() : .nothing
  }

  private mutating func start() -> Action {
    state = .executing
    hasStarted = true
    isLoading = true
    return .load
  }

  private mutating func finishing(_ action: Action) -> Action {
    state = .finished
    return action
  }
}
