import LarkspurBytes

/// Decides which of a host's addresses is tried when: happy eyeballs, RFC 8305.
///
/// Theory of operation. Addresses are tried in their order. The next one begins when one has failed, or when none has
/// answered for the attempt delay; those that have begun go on. The first that answers wins, and the others are
/// abandoned.
///
/// ```
///  ready --begin--> racing --attemptSucceeded--> over   (abandon the others, succeed)
///                     |  \---attemptFailed, last--> over   (fail)
///                     |  ^   attemptFailed, timerFired: start the next
///                     |  +---+
///                     +---ended--> over   (abandon all)
/// ```
///
/// It does not know: addresses (only how many there are), sockets, the clock. Invariant: every `start` is followed by
/// exactly one of the attempt's own facts and `abandon`, and a race has exactly one of `succeed`, `fail` and `ended`.
public struct DialMachine: Sendable {
  public enum State: Hashable, Sendable {
    case ready
    case racing
    case over
  }

  public enum Action: Hashable, Sendable {
    case start(Int)
    /// The attempt is not needed any more.
    case abandon(Int)
    case succeed(Int)
    /// All have failed.
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

  /// RFC 8305 5 recommends a delay of 250 ms.
  public init(count: Int, delay: Duration = .milliseconds(250)) {
    self.count = count
    self.delay = delay
  }

  public mutating func begin(now: Deadline, into actions: inout Actions) {
    guard state == .ready else { return }
    state = .racing
    startNext(now, &actions)
  }

  public mutating func attemptFailed(_ attempt: Int, now: Deadline, into actions: inout Actions) {
    guard state == .racing, let place = running.firstIndex(of: attempt) else { return }
    running.remove(at: place)
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

  /// Nobody waits any more: the time is up, the task is cancelled, or nothing can be tried.
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
