import LarkspurBytes

/// Decides which of a host's addresses is tried when: happy eyeballs (RFC 8305, decision 9).
///
/// Theory of operation. The machine tries the addresses in their order. The next attempt starts when an attempt has
/// failed, or when the attempt delay has passed without success; attempts in progress continue. The first attempt that
/// succeeds wins, and the machine abandons the others.
///
/// ```
///  ready --start--> racing --attemptSucceeded--> over   (abandon the others, succeed)
///                     |  \---attemptFailed, last--> over   (fail)
///                     |  ^   attemptFailed, timerFired: start the next
///                     |  +---+
///                     +---ended--> over   (abandon all)
/// ```
///
/// The machine does not depend on addresses (only their number), sockets or the clock. Invariant: every `start` is
/// followed by exactly one of `attemptSucceeded`, `attemptFailed` and `abandon`, and a race ends with exactly one of
/// `succeed`, `fail` and `ended`.
public struct DialMachine: Sendable {
  public enum State: Hashable, Sendable {
    case ready
    case racing
    case over
  }

  public enum Action: Hashable, Sendable {
    case start(Int)
    /// Close the attempt: its outcome is not needed any more.
    case abandon(Int)
    case succeed(Int)
    /// All attempts have failed.
    case fail
  }

  public typealias Actions = [Action]

  public private(set) var state = State.ready
  /// When `timerFired` is due.
  public private(set) var timer = Deadline.never

  private let count: Int
  private let delay: Duration
  private var next = 0
  private var running: [Int] = []

  /// - Parameters:
  ///   - count: The number of addresses.
  ///   - delay: The attempt delay; RFC 8305 section 5 recommends 250 ms.
  public init(count: Int, delay: Duration = .milliseconds(250)) {
    self.count = count
    self.delay = delay
  }

  public mutating func start(now: Deadline, into actions: inout Actions) {
    guard state == .ready else { return }
    state = .racing
    startNext(now, &actions)
  }

  public mutating func attemptFailed(_ attempt: Int, now: Deadline, into actions: inout Actions) {
    guard state == .racing, let index = running.firstIndex(of: attempt) else { return }
    running.remove(at: index)
    startNext(now, &actions)
  }

  public mutating func attemptSucceeded(_ attempt: Int, into actions: inout Actions) {
    guard state == .racing, running.contains(attempt) else { return }
    actions += running.filter { $0 != attempt }.map(Action.abandon)
    end()
    actions.append(.succeed(attempt))
  }

  public mutating func timerFired(now: Deadline, into actions: inout Actions) {
    guard state == .racing, timer <= now else { return }
    startNext(now, &actions)
  }

  /// Ends the race from outside and abandons all attempts: its time is up, its task is cancelled, or this machine can
  /// start no attempt.
  public mutating func ended(into actions: inout Actions) {
    guard state == .racing else { return }
    actions += running.map(Action.abandon)
    end()
  }

  private mutating func startNext(_ now: Deadline, _ actions: inout Actions) {
    timer = .never
    if next < count {
      actions.append(.start(next))
      running.append(next)
      next += 1
      if next < count { timer = now.advanced(by: delay) }
    } else if running.isEmpty {
      end()
      actions.append(.fail)
    }
  }

  private mutating func end() {
    state = .over
    timer = .never
    running = []
  }
}
