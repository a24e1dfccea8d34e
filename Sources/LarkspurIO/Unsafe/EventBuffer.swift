import Glibc

/// The readiness of one descriptor, as the kernel reports it.
public struct PollerEvent: Hashable, Sendable {
  /// The slot that the descriptor was registered for, and the number of that registration of the slot.
  public var slot: UInt32
  public var registration: UInt32
  public var isReadable: Bool
  public var isWritable: Bool
  /// Whether the peer has closed its side or the socket has failed. A read shows which.
  public var isHungUp: Bool

  public init(slot: UInt32, registration: UInt32, isReadable: Bool, isWritable: Bool, isHungUp: Bool) {
    self.slot = slot
    self.registration = registration
    self.isReadable = isReadable
    self.isWritable = isWritable
    self.isHungUp = isHungUp
  }
}

/// The buffer for the events of one wait.
@safe
public struct EventBuffer: ~Copyable {
  private let list: UnsafeMutableBufferPointer<larkspur_event>
  public private(set) var count = 0

  public init() {
    unsafe list = .allocate(capacity: Int(LARKSPUR_EVENTS_MAX))
    unsafe list.initialize(repeating: larkspur_event())
  }

  deinit {
    unsafe list.deallocate()
  }

  /// Fills the buffer.
  ///
  /// - Parameter wait: Writes events into the list, and returns their number or a negated error number.
  /// - Returns: The result of `wait`.
  mutating func fill(_ wait: (UnsafeMutableBufferPointer<larkspur_event>) -> Int32) -> Int32 {
    let result = unsafe wait(list)
    count = min(max(Int(result), 0), unsafe list.count)
    return result
  }

  /// Replaces the contents with `events`. For scripted kernels, as the result of a wait.
  public mutating func replace(with events: [PollerEvent]) -> Int32 {
    unsafe fill { list in
      for (index, event) in events.prefix(list.count).enumerated() {
        var flags: UInt32 = 0
        if event.isReadable { flags |= EPOLLIN }
        if event.isWritable { flags |= EPOLLOUT }
        if event.isHungUp { flags |= EPOLLRDHUP }
        unsafe list[index] = larkspur_event(events: flags, slot: event.slot, registration: event.registration)
      }
      return Int32(min(events.count, list.count))
    }
  }

  public subscript(_ index: Int) -> PollerEvent {
    // Safe: `list` is initialized to its capacity, and its subscript traps beyond the capacity.
    let raw = unsafe list[index]
    return PollerEvent(
      slot: raw.slot, registration: raw.registration,
      isReadable: raw.events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP) != 0,
      isWritable: raw.events & (EPOLLOUT | EPOLLHUP | EPOLLERR) != 0,
      isHungUp: raw.events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP) != 0)
  }
}
