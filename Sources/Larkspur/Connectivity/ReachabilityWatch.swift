import Dispatch
import LarkspurTransport
import Synchronization

/// Watches a route for one observer.
///
/// Each change of the network causes a check, on a private serial queue, because the lookup of a name blocks.
/// Changes that come during a check cause one more. A name without a route is looked up again after a while: its name
/// servers may become reachable later than the network.
final class ReachabilityWatch: Sendable {
  /// The time until a name is looked up again, in seconds. Each retry doubles it; a change of the network resets it.
  static let retrySecondsMin = 1
  static let retrySecondsMax = 60

  static func retrySeconds(after seconds: Int) -> Int { min(seconds * 2, retrySecondsMax) }

  private struct State {
    var observation: ConnectivityMonitor.Observation?
    var reported: NetworkReachability.Path?
    /// Whether a check is queued and has not started.
    var isLookComing = false
    var isOver = false
    /// The number of checks. A retry is dropped if another check has started before it.
    var looks = 0
    var retrySeconds = ReachabilityWatch.retrySecondsMin
  }

  private let target: ReachabilityTarget
  private let monitor: ConnectivityMonitor
  private let observer: @Sendable (NetworkReachability.Path) -> Void
  private let queue = DispatchQueue(label: "larkspur.reachability")
  private let state = Mutex(State())

  init(
    _ target: ReachabilityTarget, monitor: ConnectivityMonitor = .shared,
    _ observer: @escaping @Sendable (NetworkReachability.Path) -> Void
  ) {
    self.target = target
    self.monitor = monitor
    self.observer = observer
  }

  func start() {
    // Observe first, then check: no change falls between the two.
    let observation = monitor.observe { [weak self] _ in self?.networkChanged() }
    state.withLock { $0.observation = observation }
    lookSoon()
  }

  func end() {
    let observation = state.withLock { state in
      state.isOver = true
      return state.observation.take()
    }
    observation?.cancel()
  }

  private func networkChanged() {
    state.withLock { $0.retrySeconds = Self.retrySecondsMin }
    lookSoon()
  }

  private func lookSoon() {
    let isFirst = state.withLock { state in
      defer { state.isLookComing = true }
      return !state.isLookComing && !state.isOver
    }
    if isFirst { queue.async { [weak self] in self?.look() } }
  }

  private func look() {
    let isOver = state.withLock { state in
      state.isLookComing = false
      state.looks += 1
      return state.isOver
    }
    guard !isOver else { return }
    let path = target.path(monitor)
    let isNews = state.withLock { state in
      guard !state.isOver, state.reported != path else { return false }
      state.reported = path
      return true
    }
    if isNews { observer(path) }
    if target.isName, !path.isReachable { retryLater() }
  }

  private func retryLater() {
    let (look, seconds) = state.withLock { state in
      defer { state.retrySeconds = Self.retrySeconds(after: state.retrySeconds) }
      return (state.looks, state.retrySeconds)
    }
    queue.asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in
      guard let self, state.withLock({ $0.looks == look && !$0.isOver }) else { return }
      lookSoon()
    }
  }
}
