import LarkspurBytes

/// A timer that ends waits at a poller in time.
///
/// A timeout passed to each `epoll_wait` makes the kernel set its clock for each wait. On a virtual machine, setting
/// the hypervisor's clock costs as much as receiving a response. Most waits end long before their timeout, and the next
/// wait may take longer. So the timer is set once, and stays as it is while it fires early enough. When it fires too
/// early, the loop sets it again for the next wait (decision 22).
///
/// The timer belongs to the thread that runs the tick.
public struct PollerTimer: ~Copyable {
  private let timer: Descriptor
  /// The moment for which the timer is set, or `never` if it is not set or the poller has reported it.
  private var moment = Deadline.never

  /// The slot of the poller event that reports the timer.
  public static let slot = UInt32.max - 1

  public init(at poller: borrowing Poller, kernel: any Kernel) throws(Errno) {
    let timer = try Descriptor(kernel.openTimer(), kernel: kernel)
    try poller.watcher.watch(timer, slot: Self.slot, registration: 0)
    self.init(timer)
  }

  private init(_ timer: consuming Descriptor) { self.timer = timer }

  /// Makes waits at the poller end at `deadline` at the latest. Sets the timer only if it is not set or would fire
  /// later.
  public mutating func arm(by deadline: Deadline) {
    guard deadline < moment else { return }
    moment = deadline
    timer.kernel.setTimer(timer.number, to: deadline)
  }

  /// Notes that the poller has reported the timer.
  public mutating func fired() { moment = .never }
}
