import LarkspurBytes

/// Blocks a thread until a descriptor has an event (poll(2)).
enum EventWait {
  /// Waits for an event, for an error of the descriptor, or for the deadline.
  ///
  /// - Parameter event: `POLLIN`, `POLLOUT` or `POLLRDHUP`.
  /// - Returns: `false` at the deadline, to the millisecond.
  /// - Throws: The error of a kernel that cannot wait, such as one without memory. A signal is no error.
  static func until(_ deadline: Deadline, event: Int32, of descriptor: Int32) throws(Errno) -> Bool {
    while true {
      let timeout = deadline.timeoutMilliseconds(from: Deadline(nanoseconds: larkspur_monotonic_nanoseconds()))
      let result = larkspur_wait_for_event(descriptor, Int16(event), timeout)
      if result > 0 { return true }
      if result < 0, Errno.current != .interrupted { throw .current }
      // The remaining time may exceed the kernel's longest timeout, and a signal may have ended the wait.
      if deadline <= Deadline(nanoseconds: larkspur_monotonic_nanoseconds()) { return false }
    }
  }
}
