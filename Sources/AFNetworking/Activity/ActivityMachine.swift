/// Decides whether an activity indicator is visible: only for activity that lasts, and without flicker between
/// requests.
///
/// ```
///                 activity                 the delay is over, activity
///   idle ---------------------> delayingStart -----------------> active
///    ^ ^                              |                           |  ^
///    | '- delay over, no activity ----'                no activity|  | activity
///    |                                                            v  |
///    '---------------- the delay is over -------------------- delayingEnd
/// ```
///
/// Times are in nanoseconds of one clock. Without a delay, a delaying state is left at once.
struct ActivityMachine: Sendable {
  enum State: Hashable, Sendable {
    case idle
    case delayingStart(until: UInt64)
    case active
    case delayingEnd(until: UInt64)
  }

  private(set) var state = State.idle
  /// Number of requests in progress. Counted while the machine is not enabled, too.
  private(set) var activityCount = 0
  private(set) var isEnabled = false
  var activationDelay: UInt64 = 1_000_000_000
  var completionDelay: UInt64 = 170_000_000

  var isVisible: Bool {
    switch state {
    case .idle, .delayingStart: false
    case .active, .delayingEnd: true
    }
  }

  /// The time at which to call ``expire(now:)``.
  var deadline: UInt64? {
    switch state {
    case .delayingStart(let until), .delayingEnd(let until): until
    case .idle, .active: nil
    }
  }

  mutating func enable(_ isEnabled: Bool, now: UInt64) {
    self.isEnabled = isEnabled
    if isEnabled { update(now: now) } else { state = .idle }
  }

  mutating func increment(now: UInt64) {
    if activityCount < .max { activityCount += 1 }
    update(now: now)
  }

  mutating func decrement(now: UInt64) {
    activityCount = max(activityCount - 1, 0)
    update(now: now)
  }

  /// Leaves a delaying state whose time is over. Does nothing before.
  mutating func expire(now: UInt64) {
    switch state {
    case .delayingStart(let until) where now >= until: state = activityCount > 0 ? .active : .idle
    case .delayingEnd(let until) where now >= until: state = .idle
    default: break
    }
  }

  private mutating func update(now: UInt64) {
    guard isEnabled else { return }
    switch (state, activityCount > 0) {
    case (.idle, true): state = .delayingStart(until: Self.sum(now, activationDelay))
    case (.active, false): state = .delayingEnd(until: Self.sum(now, completionDelay))
    case (.delayingEnd, true): state = .active
    // The delay of the start goes to its end even without activity: new activity within the delay does not prolong it.
    case (.delayingStart, _), (.idle, false), (.active, true), (.delayingEnd, false): break
    }
    expire(now: now)
  }

  private static func sum(_ time: UInt64, _ delay: UInt64) -> UInt64 {
    let (sum, overflows) = time.addingReportingOverflow(delay)
    return overflows ? .max : sum
  }
}
