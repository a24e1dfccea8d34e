import Dispatch
import Foundation
import Larkspur
import Synchronization

/// Shows an activity indicator while requests are in progress.
///
/// ```swift
/// let manager = AFNetworkActivityIndicatorManager.shared()
/// manager.setNetworkingActivityActionWith { isVisible in print(isVisible ? "loading" : "done") }
/// manager.isEnabled = true
/// ```
///
/// The manager counts the tasks of session managers and the operations of AFNetworking 1 and 2, by their notifications.
/// These are posted on the main queue. A program whose main thread does not serve the main queue must call
/// ``incrementActivityCount()`` and ``decrementActivityCount()`` itself. There is no system-wide indicator: the program
/// shows an indicator in the block of ``setNetworkingActivityActionWith(_:)``. Safe to use from any thread.
open class AFNetworkActivityIndicatorManager: NSObject, @unchecked Sendable {
  /// The block belongs to the program and is called on the thread of the views, so it need not be `Sendable`.
  private struct State: @unchecked Sendable {
    var machine = ActivityMachine()
    var block: ((Bool) -> Void)?
    /// The latest value that the block was called with.
    var shown = false
    /// The objects whose start has been notified, and whose end has not.
    var objects: Set<ObjectIdentifier> = []
    /// The earliest time for which a wake-up is scheduled.
    var wakeUp: UInt64?
    var observers: [any NSObjectProtocol] = []
  }

  private static let instance = AFNetworkActivityIndicatorManager()

  private let state = Mutex(State())
  private let now: @Sendable () -> UInt64
  private let schedule: @Sendable (_ time: UInt64, @escaping @Sendable () -> Void) -> Void
  private let scheduler: AFViewScheduler?
  private let counts: @Sendable (URLRequest) -> Bool

  /// Returns the manager of the program.
  open class func shared() -> AFNetworkActivityIndicatorManager { instance }

  /// Creates a manager that is not enabled.
  public override convenience init() {
    self.init(
      now: { DispatchTime.now().uptimeNanoseconds },
      schedule: { time, body in
        DispatchQueue.global().asyncAfter(deadline: DispatchTime(uptimeNanoseconds: time), execute: body)
      })
  }

  /// Creates a manager with another clock.
  ///
  /// - Parameters:
  ///   - now: A clock, in nanoseconds.
  ///   - schedule: Calls a block at a time of the clock, on any thread.
  ///   - scheduler: Calls the program's block; if `nil`, the shared one.
  ///   - counts: Whether a request of a notification counts.
  init(
    now: @escaping @Sendable () -> UInt64,
    schedule: @escaping @Sendable (_ time: UInt64, @escaping @Sendable () -> Void) -> Void,
    scheduler: AFViewScheduler? = nil, counts: @escaping @Sendable (URLRequest) -> Bool = { $0.url != nil }
  ) {
    self.now = now
    self.schedule = schedule
    self.scheduler = scheduler
    self.counts = counts
    super.init()
    let starts: [NSNotification.Name] = [.AFNetworkingTaskDidResume, .AFNetworkingOperationDidStart]
    let ends: [NSNotification.Name] = [
      .AFNetworkingTaskDidSuspend, .AFNetworkingTaskDidComplete, .AFNetworkingOperationDidFinish,
      .taskDidEndUnannounced,
    ]
    let observers =
      starts.map { observe($0) { $0.note($1, hasStarted: true) } }
      + ends.map { observe($0) { $0.note($1, hasStarted: false) } }
    state.withLock { $0.observers = observers }
    Self.count.add(1, ordering: .releasing)
  }

  deinit {
    Self.count.subtract(1, ordering: .releasing)
    for observer in state.withLock({ $0.observers }) {
      NotificationCenter.default.removeObserver(observer)
    }
  }

  /// Number of managers. `init` and `deinit` store with release order, `isWanted` loads with acquire order.
  private static let count = Atomic(0)

  /// Whether there is a manager that counts tasks.
  static var isWanted: Bool { count.load(ordering: .acquiring) > 0 }

  // MARK: - Properties

  /// Whether the indicator is shown. `false` by default. Requests are counted in any case.
  open var isEnabled: Bool {
    get { state.withLock { $0.machine.isEnabled } }
    set { change { $0.enable(newValue, now: $1) } }
  }

  /// Whether the indicator is visible.
  open var isNetworkActivityIndicatorVisible: Bool { state.withLock { $0.machine.isVisible } }

  /// The time in seconds that activity has to last before the indicator becomes visible. 1 by default. Applies to
  /// activity that starts later.
  open var activationDelay: TimeInterval {
    get { state.withLock { Self.seconds($0.machine.activationDelay) } }
    set { state.withLock { $0.machine.activationDelay = Self.nanoseconds(newValue) } }
  }

  /// The time in seconds without activity after which the indicator is hidden. 0.17 by default. Applies to
  /// activity that ends later.
  open var completionDelay: TimeInterval {
    get { state.withLock { Self.seconds($0.machine.completionDelay) } }
    set { state.withLock { $0.machine.completionDelay = Self.nanoseconds(newValue) } }
  }

  private static func seconds(_ nanoseconds: UInt64) -> TimeInterval { Double(nanoseconds) / 1e9 }

  /// At most a year; 0 for a value that is negative or no number.
  private static func nanoseconds(_ seconds: TimeInterval) -> UInt64 {
    seconds > 0 ? UInt64(min(seconds, 31_536_000) * 1e9) : 0
  }

  // MARK: - Activity

  /// Adds a request that is in progress. Only for requests that post no notifications.
  open func incrementActivityCount() { change { $0.increment(now: $1) } }

  /// Removes a request that was in progress. Does nothing if the number is zero.
  open func decrementActivityCount() { change { $0.decrement(now: $1) } }

  /// Sets the block that shows and hides the indicator. The block gets each new value of
  /// ``isNetworkActivityIndicatorVisible``, by `AFViewScheduler.shared`: on the main queue by default.
  open func setNetworkingActivityActionWith(_ block: ((Bool) -> Void)?) { state.put(block, at: \.block) }

  /// See ``setNetworkingActivityActionWith(_:)``.
  public func setNetworkingActivityActionWithBlock(_ block: ((Bool) -> Void)?) {
    setNetworkingActivityActionWith(block)
  }

  private func observe(
    _ name: NSNotification.Name, _ body: @escaping @Sendable (AFNetworkActivityIndicatorManager, AnyObject) -> Void
  ) -> any NSObjectProtocol {
    NotificationCenter.default.addObserver(forName: name, object: nil, queue: nil) { [weak self] notification in
      guard let self, let object = notification.object as AnyObject? else { return }
      body(self, object)
    }
  }

  /// Counts an object once, whatever the number of its notifications: a task that is cancelled while it is suspended
  /// has two ends.
  private func note(_ object: AnyObject, hasStarted: Bool) {
    let request = (object as? URLSessionTask)?.originalRequest ?? (object as? AFURLConnectionOperation)?.request
    guard let request, counts(request) else { return }
    let identifier = ObjectIdentifier(object)
    let isNew = state.withLock { state in
      hasStarted ? state.objects.insert(identifier).inserted : state.objects.remove(identifier) != nil
    }
    guard isNew else { return }
    if hasStarted { incrementActivityCount() } else { decrementActivityCount() }
  }

  private func change(_ body: (inout ActivityMachine, UInt64) -> Void) {
    let now = now()
    let (wakeUp, isChanged) = state.withLock { state -> (UInt64?, Bool) in
      body(&state.machine, now)
      var wakeUp: UInt64?
      if let deadline = state.machine.deadline, state.wakeUp.map({ deadline < $0 }) ?? true {
        state.wakeUp = deadline
        wakeUp = deadline
      }
      return (wakeUp, state.machine.isVisible != state.shown)
    }
    if let wakeUp { schedule(wakeUp) { [weak self] in self?.wokeUp(wakeUp) } }
    if isChanged { (scheduler ?? .shared).perform { [weak self] in self?.show() } }
  }

  private func wokeUp(_ time: UInt64) {
    state.withLock { if $0.wakeUp == time { $0.wakeUp = nil } }
    change { $0.expire(now: max($1, time)) }
  }

  /// Calls the block if the value has changed since its latest call. Calls come one after another, on the thread of the
  /// views: several changes may become one.
  private func show() {
    let (block, isVisible) = state.withLock { state -> (((Bool) -> Void)?, Bool?) in
      let isVisible = state.machine.isVisible
      guard isVisible != state.shown else { return (nil, nil) }
      state.shown = isVisible
      return (state.block, isVisible)
    }
    if let isVisible { block?(isVisible) }
  }
}

extension NSNotification.Name {
  /// A task has ended whose result went to the task's completion handler. Posted on the main queue, only if there is an
  /// ``AFNetworkActivityIndicatorManager``.
  static let taskDidEndUnannounced = NSNotification.Name("org.larkspur.networking.task.end")
}
