/// Waits for descriptors to become ready.
///
/// A descriptor is registered once, edge-triggered, for all events. The registration never changes: the owner keeps
/// what is ready, and does not query the kernel. Each event carries its slot and the slot's registration number.
/// With these the owner recognizes and drops an event of a descriptor that was closed meanwhile, even if the slot or
/// the descriptor's number is in use again.
///
/// A `Waker` and a `Watcher` may be used on any thread. All other members belong to the owner's thread.
public struct Poller: ~Copyable {
  private let poller: Descriptor
  private let wakeUp: Descriptor
  private var events = EventBuffer()

  /// The slot of the wake-up descriptor, reserved for it.
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

  /// A handle that makes a wait on another thread return.
  public var waker: Waker { Waker(kernel: wakeUp.kernel, descriptor: wakeUp.number) }

  public struct Waker: Sendable {
    let kernel: any Kernel
    let descriptor: Int32

    public func wake() { kernel.wake(descriptor) }
  }

  /// A handle that registers descriptors, even while the owner waits.
  public var watcher: Watcher { Watcher(kernel: poller.kernel, poller: poller.number) }

  public struct Watcher: Sendable {
    let kernel: any Kernel
    let poller: Int32

    public func watch(_ descriptor: borrowing Descriptor, slot: UInt32, registration: UInt32) throws(Errno) {
      let result = kernel.watch(poller, descriptor.number, slot: slot, registration: registration)
      guard result >= 0 else { throw Errno(rawValue: -result) }
    }
  }

  /// Waits until a descriptor is ready.
  ///
  /// - Parameter milliseconds: The longest wait, or -1 to wait without limit.
  /// - Returns: The number of events, 0 after a timeout or a signal.
  public mutating func wait(milliseconds: Int32) throws(Errno) -> Int {
    let result = poller.kernel.wait(poller.number, into: &events, milliseconds: milliseconds)
    guard result >= 0 else {
      let error = Errno(rawValue: -result)
      // A signal ended the wait. The owner's next tick waits again.
      guard error == .interrupted else { throw error }
      return 0
    }
    return events.count
  }

  /// Returns one of the events of the last wait, or `nil` for a wake-up. The owner need not read the wake-up
  /// descriptor, because each write to it is a new edge-triggered event.
  public func event(at index: Int) -> PollerEvent? {
    let event = events[index]
    return event.slot == Self.wakeUpSlot ? nil : event
  }
}
