import Glibc
import LarkspurBytes

/// The signals that ask the process to end: SIGINT (Ctrl-C), SIGTERM and SIGHUP.
public enum CaughtSignal {
  /// Catches the signals from now on: they are noted and wake the poller, and no longer end the process. Each signal is
  /// caught once. A second one of its kind ends the process, in case it is stuck. Signals that the process ignores
  /// already stay ignored.
  public static func catchAll(waking waker: Poller.Waker) { larkspur_catch_ending_signals(waker.descriptor) }

  /// The number of the signal that was caught last, or `nil` if there was none.
  public static var pending: Int32? {
    let number = larkspur_caught_signal()
    return number == 0 ? nil : number
  }

  /// Makes a blocked write of an ``OpenFile`` check its deadline once `deadline` has passed. Call `catchAll` first.
  public static func interruptCalls(at deadline: Deadline) {
    guard deadline != .never else { return }
    let now = Deadline(nanoseconds: larkspur_monotonic_nanoseconds())
    larkspur_interrupt_calls(deadline > now ? deadline.nanoseconds - now.nanoseconds : 0)
  }

  /// Makes a write to a pipe without a reader fail from now on. By default it ends the process.
  public static func ignoreBrokenPipes() { _ = signal(SIGPIPE, SIG_IGN) }
}
