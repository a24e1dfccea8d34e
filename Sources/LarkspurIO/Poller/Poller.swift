/// Waits for descriptors to become ready.
///
/// A descriptor is registered once, edge-triggered, for everything, and never changed: the owner remembers what
/// is ready and asks the kernel nothing. Each event carries its slot and the slot's registration number, so
/// that an event of a descriptor that has been closed meanwhile, whose slot and number may already be somebody
/// else's, can be told and dropped.
///
/// A `Waker` and a `Watcher` may be used on any thread; everything else belongs to the owner's.
public struct Poller: ~Copyable {
  private let poller: Descriptor
  private let wakeUp: Descriptor
  private var events = EventBuffer()

  /// The slot of the wake-up descriptor; nobody else may use it.
  private static let wakeUpSlot = UInt32.max

  public init(kernel: any Kernel) throws(Errno) {
    let poller = try Descriptor(kernel.openPoller(), kernel: kernel)
    let wakeUp = try Descriptor(kernel.openWakeUp(), kernel: kernel)
    let result = kernel.watch(poller.number, wakeUp.number, slot: Self.wakeUpSlot, registration: 0)
    guard result >= 0 else { throw Errno(rawValue: -result) }
    self.init(poller: poller, wakeUp: wakeUp)
  }

  private init(poller: consuming Descriptor, wakeUp: consuming Descriptor) {
    self.poller = poller
    self.wakeUp = wakeUp
  }

  /// Makes a wait on another thread return.
  public var waker: Waker { Waker(kernel: wakeUp.kernel, descriptor: wakeUp.number) }

  public struct Waker: Sendable {
    let kernel: any Kernel
    let descriptor: Int32

    public func wake() { kernel.wake(descriptor) }
  }

  /// Registers descriptors, also while the owner waits.
  public var watcher: Watcher { Watcher(kernel: poller.kernel, poller: poller.number) }

  public struct Watcher: Sendable {
    let kernel: any Kernel
    let poller: Int32

    public func watch(_ descriptor: borrowing Descriptor, slot: UInt32, registration: UInt32) throws(Errno) {
      let result = kernel.watch(poller, descriptor.number, slot: slot, registration: registration)
      guard result >= 0 else { throw Errno(rawValue: -result) }
    }
  }

  /// Waits for at most `milliseconds` (-1: for ever), and returns how many events there are.
  public mutating func wait(milliseconds: Int32) throws(Errno) -> Int {
    let result = poller.kernel.wait(poller.number, into: &events, milliseconds: milliseconds)
    guard result >= 0 else {
      let error = Errno(rawValue: -result)
      // A signal woke us: the owner's next turn waits again.
      guard error == .interrupted else { throw error }
      return 0
    }
    return events.count
  }

  /// One of the events of the last wait. Nil: it was a wake-up. That one need not be read: each write is a new event.
  public func event(at index: Int) -> PollerEvent? {
    let event = events[index]
    return event.slot == Self.wakeUpSlot ? nil : event
  }
}
