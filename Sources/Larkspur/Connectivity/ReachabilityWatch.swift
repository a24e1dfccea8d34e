import Dispatch
import LarkspurTransport
import Synchronization

/// One observer's look at a way.
///
/// Whatever changes in the network is a reason to look again, on a serial queue of its own, since a look at a name blocks. Changes
/// that come while it looks make one more look. A name to which there is no way is looked up again after a while: its servers
/// may have come later than the network.
final class ReachabilityWatch: Sendable {
  /// How long it waits before a name is looked up again: twice as long each time, until the network changes.
  static let retrySecondsMin = 1
  static let retrySecondsMax = 60

  static func retrySeconds(after seconds: Int) -> Int { min(seconds * 2, retrySecondsMax) }

  private struct State {
    var observation: ConnectivityMonitor.Observation?
    var told: NetworkReachability.Path?
    /// A look is on its way, and has not begun.
    var isLookComing = false
    var isOver = false
    /// Counts the looks: a retry that another look has overtaken is none.
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

  func begin() {
    // First observe, then look: no change falls between the two.
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
      guard !state.isOver, state.told != path else { return false }
      state.told = path
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
