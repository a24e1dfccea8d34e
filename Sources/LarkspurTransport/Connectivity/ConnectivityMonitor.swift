import LarkspurIO
import Synchronization

/// Reports changes of the machine's connectivity: a link, an address or a default route came or went.
///
/// Theory of operation. A thread of the monitor waits for a netlink socket, which costs nothing while nothing changes.
/// A message is only a reason to look: the kernel does not report each route that goes with its link, and drops
/// messages when they come too fast. After each burst of messages the monitor therefore lists everything anew, and
/// calls the observers if the list differs. The thread starts on first use and ends with the monitor. A thread that
/// fails reports that nothing is known, and the next call to the monitor starts another.
///
/// The monitor sees the network namespace of the thread that starts it. Any thread may use it.
///
/// To wait for connectivity without missing a change: observe first, then read `current`, then wait for a call.
public final class ConnectivityMonitor: Sendable {
  /// The monitor that the whole process shares.
  public static let shared = ConnectivityMonitor()

  public typealias Observer = @Sendable (Connectivity) -> Void

  /// The registration of an observer. The registration ends with `cancel`, or when this object is released.
  public final class Observation: Sendable {
    private let core: Core
    private let number: UInt64

    fileprivate init(core: Core, number: UInt64) {
      self.core = core
      self.number = number
    }

    deinit { cancel() }

    /// Ends the registration. No call begins after this; a call in progress on the monitor's thread may still be
    /// running.
    public func cancel() { core.forget(number) }
  }

  private let core: Core

  public convenience init() { self.init(kernel: LinuxKernel.shared) }

  /// - Parameter kernel: Waits for changes. The changes themselves come from the machine's kernel.
  package init(kernel: any Kernel) { core = Core(kernel: kernel) }

  deinit { core.stop() }

  /// The current state. The first access starts the monitor.
  public var current: Connectivity {
    core.startIfNeeded()
    return core.known
  }

  /// Registers an observer. The monitor calls the observer on its own thread after each change, one call at a time. The
  /// observer must not block.
  ///
  /// - Returns: The registration, which ends when it is released.
  public func observe(_ observer: @escaping Observer) -> Observation {
    core.startIfNeeded()
    return Observation(core: core, number: core.add(observer))
  }

  /// The kind of path to an address, according to the routes.
  public enum Path: Hashable, Sendable {
    /// The kernel does not report it.
    case unknown
    /// There is no route, or the route's link is down or has no carrier.
    case none
    case over(NetworkLink.Kind)
  }

  /// Returns whether a route leads to `address` over a link that is up and has a carrier. Loopback counts. This queries
  /// the kernel, which takes some microseconds, and sends nothing: a host with this address need not exist. The result
  /// is `true` if the kernel does not report routes, and for Unix-domain sockets.
  public func canReach(_ address: SocketAddress) -> Bool {
    address.family == .unix || path(to: address) != .none
  }

  /// Returns the path to `address`: whether there is one, and over which kind of link. See ``canReach(_:)``.
  public func path(to address: SocketAddress) -> Path {
    guard address.family != .unix else { return .over(.loopback) }
    core.startIfNeeded()
    do throws(Errno) {
      guard let index = try core.link(to: address) else { return .unknown }
      // The link is newer than the snapshot. A route over such a link counts as good.
      guard let link = core.known.network?.links[index] else { return .over(.other) }
      return link.carries ? .over(link.kind) : .none
    } catch {
      return [.networkUnreachable, .hostUnreachable, .accessDenied, .invalidArgument].contains(error) ? .none : .unknown
    }
  }
}

extension ConnectivityMonitor {
  /// The state that the thread keeps alive. The thread does not keep the monitor alive.
  fileprivate final class Core: Sendable {
    private struct State: ~Copyable {
      var isRunning = false
      var isStopping = false
      /// Wakes the thread. `nil` unless the thread runs.
      var waker: Poller.Waker?
      var known = Connectivity()
      var observers: [UInt64: Observer] = [:]
      var observersSeen: UInt64 = 0
    }

    private let kernel: any Kernel
    private let state = Mutex(State())
    /// Held by a thread during its calls, so that a thread that replaces one that ends calls after it.
    private let calls = Mutex(())
    /// Held during a start, so that concurrent callers wait until there is a result.
    private let starts = Mutex(())
    /// The socket for requests to the kernel, or `nil` before the start. The lock is held during each request.
    private let questions = Mutex<NetlinkRequests?>(nil)

    init(kernel: any Kernel) { self.kernel = kernel }

    var known: Connectivity { state.withLock { $0.known } }

    func add(_ observer: @escaping Observer) -> UInt64 {
      state.withLock { state in
        state.observersSeen += 1
        state.observers[state.observersSeen] = observer
        return state.observersSeen
      }
    }

    func forget(_ number: UInt64) { _ = state.withLock { $0.observers.removeValue(forKey: number) } }

    /// Returns the index of the link over which a route leads to `address`, or `nil` if the kernel cannot be queried.
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

    /// Starts the thread unless it runs. After a failure, the next call tries again.
    func startIfNeeded() {
      if needsStart { starts.withLock { _ in if needsStart { start() } } }
    }

    private var needsStart: Bool { state.withLock { !$0.isRunning && !$0.isStopping } }

    private func start() {
      do throws(Errno) {
        // The socket listens before the first look, so that no change is missed in between.
        let changes = try NetlinkSocket(hearsChanges: true)
        let poller = try Poller(kernel: kernel)
        try changes.watch(with: poller, slot: 0)
        let handOver = Mutex<Poller?>(poller)
        try questions.withLock { questions throws(Errno) in
          if questions == nil { questions = try NetlinkRequests() }
        }
        let network = try look()
        let earlier = state.withLock { state in
          state.known = Connectivity(network: network)
          state.isRunning = true
          return state.observers
        }
        try SystemThread(name: "larkspur-links") { [self] in
          guard var poller = handOver.withLock({ $0.take() }) else { return }
          // Observers from before a failure do not know that the monitor runs again.
          call(earlier, known)
          run(changes, &poller)
        }.detach()
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

    private func run(_ changes: NetlinkSocket, _ poller: inout Poller) {
      do throws(Errno) {
        // The waker's descriptor is closed with the poller.
        defer { state.withLock { $0.waker = nil } }
        let waker = poller.waker
        state.withLock { $0.waker = waker }
        while !state.withLock({ $0.isStopping }) {
          for index in 0..<(try poller.wait(milliseconds: -1)) { _ = poller.event(at: index) }
          if try drain(changes) { notify(Connectivity(network: try look())) }
        }
      } catch {
        // Nothing is known from now on, until another call starts the monitor again: perhaps an observer's own.
        notify(Connectivity(), isAtEnd: true)
      }
    }

    /// Reads all messages.
    ///
    /// - Returns: Whether any of them is relevant.
    private func drain(_ changes: NetlinkSocket) throws(Errno) -> Bool {
      var isRelevant = false
      while true {
        do throws(Errno) {
          let messages = try changes.receive()
          isRelevant = messages.contains(where: NetworkSnapshot.isRelevant) || isRelevant
        } catch {
          switch error {
          case .wouldBlock: return isRelevant
          // Messages were lost, and some of them might have been relevant.
          case .noBufferSpace: isRelevant = true
          default: throw error
          }
        }
      }
    }

    /// - Parameter isAtEnd: Whether the thread ends. An observer that registers after this call starts another thread.
    private func notify(_ connectivity: Connectivity, isAtEnd: Bool = false) {
      let observers = state.withLock { state -> [UInt64: Observer] in
        if isAtEnd { state.isRunning = false }
        guard state.known != connectivity else { return [:] }
        state.known = connectivity
        return state.observers
      }
      call(observers, connectivity)
    }

    private func call(_ observers: [UInt64: Observer], _ connectivity: Connectivity) {
      calls.withLock { _ in
        for (number, observer) in observers where state.withLock({ $0.observers[number] != nil }) {
          observer(connectivity)
        }
      }
    }
  }
}
