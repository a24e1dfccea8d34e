import LarkspurIO
import Synchronization

/// Tells when the machine's connectivity may have changed: a link came or went, an address, a default route.
///
/// Theory of operation. A thread of its own waits at a netlink socket, which costs nothing while nothing changes. A change
/// is a reason to look, and no more: the kernel does not tell of every route that goes with its link, and drops messages
/// when they come too fast. So after each burst of changes all is listed anew, and the observers are called if the list is
/// another one. The thread is started when it is first wanted and ends with the monitor.
///
/// The monitor sees the network namespace of the thread that starts it. Any thread may use it.
///
/// To wait for connectivity without missing it: observe first, then look at `current`, then wait for a call.
public final class ConnectivityMonitor: Sendable {
  /// For everybody in the process.
  public static let shared = ConnectivityMonitor()

  public typealias Observer = @Sendable (Connectivity) -> Void

  /// A stay of an observer: it ends with `cancel`, or with this object.
  public final class Observation: Sendable {
    private let core: Core
    private let number: UInt64

    fileprivate init(core: Core, number: UInt64) {
      self.core = core
      self.number = number
    }

    deinit { cancel() }

    /// No call begins after this. One that has begun may still be under way on the monitor's thread.
    public func cancel() { core.forget(number) }
  }

  private let core = Core()

  public init() {}

  deinit { core.stop() }

  /// What is known now. The first call starts the monitor.
  public var current: Connectivity {
    core.startIfNeeded()
    return core.known
  }

  /// Calls `observer` on the monitor's thread after each change, one call at a time, until the result goes. It must not
  /// block.
  public func observe(_ observer: @escaping Observer) -> Observation {
    core.startIfNeeded()
    return Observation(core: core, number: core.add(observer))
  }

  /// A way to somebody, as the routes have it.
  public enum Way: Hashable, Sendable {
    /// The kernel does not tell.
    case unknown
    /// No route, or one over a link that is down or has no carrier.
    case none
    case over(NetworkLink.Kind)
  }

  /// Whether a route leads to `address` over a link that is up and has a carrier. Loopback counts. It asks the kernel, which
  /// takes some microseconds, and sends nothing: whether anybody is there is another question. Where the kernel does not
  /// tell the answer is yes.
  public func canReach(_ address: SocketAddress) -> Bool {
    address.family == .unix || way(to: address) != .none
  }

  /// Over what a route leads to `address`: see ``canReach(_:)``.
  public func way(to address: SocketAddress) -> Way {
    guard address.family != .unix else { return .over(.loopback) }
    core.startIfNeeded()
    do throws(Errno) {
      guard let index = try core.link(to: address) else { return .unknown }
      // A route over a link that has come since the last look is good as well.
      guard let link = core.known.network?.links[index] else { return .over(.other) }
      return link.carries ? .over(link.kind) : .none
    } catch {
      return [.networkUnreachable, .hostUnreachable, .accessDenied, .invalidArgument].contains(error) ? .none : .unknown
    }
  }
}

extension ConnectivityMonitor {
  /// What the thread holds on to: it does not keep the monitor alive.
  fileprivate final class Core: Sendable {
    private struct State: ~Copyable {
      var isRunning = false
      var isStopping = false
      /// While the thread waits at its poller.
      var waker: Poller.Waker?
      var known = Connectivity()
      var observers: [UInt64: Observer] = [:]
      var observersSeen: UInt64 = 0
    }

    private let state = Mutex(State())
    /// Held during a start: whoever comes meanwhile waits until there is something to know.
    private let starts = Mutex(())
    /// Whoever asks the kernel holds this lock meanwhile. Nil until the start.
    private let questions = Mutex<NetlinkQuestions?>(nil)

    var known: Connectivity { state.withLock { $0.known } }

    func add(_ observer: @escaping Observer) -> UInt64 {
      state.withLock { state in
        state.observersSeen += 1
        state.observers[state.observersSeen] = observer
        return state.observersSeen
      }
    }

    func forget(_ number: UInt64) { _ = state.withLock { $0.observers.removeValue(forKey: number) } }

    /// Nil: it cannot be asked.
    func link(to address: SocketAddress) throws(Errno) -> UInt32? {
      try questions.withLock { questions throws(Errno) in
        guard questions != nil else { return nil }
        return try questions?.link(to: address)
      }
    }

    func stop() {
      state.withLock { state in
        state.isStopping = true
        state.waker?.wake()
      }
    }

    /// After a failure, the next who wants something tries again.
    func startIfNeeded() {
      if needsStart { starts.withLock { _ in if needsStart { start() } } }
    }

    private var needsStart: Bool { state.withLock { !$0.isRunning && !$0.isStopping } }

    private func start() {
      do throws(Errno) {
        // It listens before it looks: no change falls between the two.
        let changes = try NetlinkSocket(hearsChanges: true)
        try questions.withLock { questions throws(Errno) in
          if questions == nil { questions = try NetlinkQuestions() }
        }
        let network = try look()
        state.withLock { state in
          state.known = Connectivity(network: network)
          state.isRunning = true
        }
        try SystemThread(name: "larkspur-links") { [self] in run(changes) }.detach()
      } catch {
        state.withLock { state in
          state.isRunning = false
          state.known = Connectivity()
        }
      }
    }

    private func look() throws(Errno) -> NetworkSnapshot? {
      try questions.withLock { questions throws(Errno) in try questions?.snapshot() }
    }

    // MARK: - The thread

    private func run(_ changes: NetlinkSocket) {
      do throws(Errno) {
        var poller = try Poller(kernel: LinuxKernel.shared)
        // The descriptor of the waker is gone with the poller.
        defer { state.withLock { $0.waker = nil } }
        try changes.watch(with: poller, slot: 0)
        let waker = poller.waker
        state.withLock { $0.waker = waker }
        while !state.withLock({ $0.isStopping }) {
          for index in 0..<(try poller.wait(milliseconds: -1)) { _ = poller.event(at: index) }
          if try drain(changes) { tell(Connectivity(network: try look())) }
        }
      } catch {
        // Nothing is known from here on, until somebody asks again and it can be started.
        tell(Connectivity())
      }
      state.withLock { $0.isRunning = false }
    }

    /// Reads all that has come. Whether any of it matters.
    private func drain(_ changes: NetlinkSocket) throws(Errno) -> Bool {
      var isRelevant = false
      while true {
        do throws(Errno) {
          let messages = try changes.receive()
          isRelevant = messages.contains(where: NetworkSnapshot.isRelevant) || isRelevant
        } catch {
          switch error {
          case .wouldBlock: return isRelevant
          // Some were lost: they might have mattered.
          case .noBufferSpace: isRelevant = true
          default: throw error
          }
        }
      }
    }

    private func tell(_ connectivity: Connectivity) {
      let observers = state.withLock { state -> [UInt64: Observer] in
        guard state.known != connectivity else { return [:] }
        state.known = connectivity
        return state.observers
      }
      for (number, observer) in observers where state.withLock({ $0.observers[number] != nil }) {
        observer(connectivity)
      }
    }
  }
}
