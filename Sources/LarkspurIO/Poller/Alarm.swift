import LarkspurBytes

/// Ends waits at a poller in time.
///
/// To say with each wait how long it may take sets the kernel's clock for each: where that is a hypervisor's, it costs as much as
/// to receive a response. But most waits end long before, and the next one may take longer. So an alarm is set once, and left
/// alone as long as it goes off in time for whoever waits; the one who is told that it went off, perhaps too soon, sets it anew.
///
/// It belongs to those who take turns at the poller, one at a time.
public struct Alarm: ~Copyable {
  private let timer: Descriptor
  /// When it goes off, if nobody has been told of that yet.
  private var moment = Deadline.never

  /// What the poller reports then.
  public static let slot = UInt32.max - 1

  public init(at poller: borrowing Poller, kernel: any Kernel) throws(Errno) {
    let timer = try Descriptor(kernel.openTimer(), kernel: kernel)
    try poller.watcher.watch(timer, slot: Self.slot, registration: 0)
    self.init(timer)
  }

  private init(_ timer: consuming Descriptor) { self.timer = timer }

  /// Whoever waits at the poller from now on is woken at `deadline` at the latest.
  public mutating func goOff(by deadline: Deadline) {
    guard deadline < moment else { return }
    moment = deadline
    timer.kernel.setTimer(timer.number, to: deadline)
  }

  /// The poller has reported it.
  public mutating func wentOff() { moment = .never }
}
