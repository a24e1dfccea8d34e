import LarkspurBytes

@_implementationOnly import CLarkspurLinux

/// The signals that ask the process to end: interrupt (Ctrl-C), terminate, hang-up.
public enum CaughtSignal {
  /// From now on they no longer end the process but are noted, and wake the waiter. Each is caught once: a
  /// second one ends the process after all, should it be stuck.
  public static func catchAll(waking waker: Poller.Waker) { larkspur_catch_ending_signals(waker.descriptor) }

  /// The number of the one that was caught.
  public static var pending: Int32? {
    let number = larkspur_caught_signal()
    return number == 0 ? nil : number
  }

  /// After `catchAll`: makes a blocked write of an ``OpenFile`` look at its deadline once this one has passed.
  public static func interruptCalls(at deadline: Deadline) {
    guard deadline != .never else { return }
    let now = Deadline(nanoseconds: larkspur_monotonic_nanoseconds())
    larkspur_interrupt_calls(deadline > now ? deadline.nanoseconds - now.nanoseconds : 0)
  }

  /// A write to a pipe that nobody reads fails from now on, in place of ending the process.
  public static func ignoreBrokenPipes() { larkspur_ignore_broken_pipes() }
}
