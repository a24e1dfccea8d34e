/// Whether a loop that waits for one near answer sleeps, or looks until it is there.
///
/// Theory of operation. A sleep costs a processor that falls asleep and has to be woken: in a virtual machine that may be more
/// than the answer takes to come. Then it is cheaper, and several times as quick, to look. Which of the two is cheaper depends on
/// machine and server. So both are tried, by the processor time that the loop's thread takes for a number of waits, with all that
/// it does in between.
///
/// ```
///   resting --> measuringSleep --> measuringLook --not dearer--> looking
///      ^               ^                 |                         |  |
///      |               '-----------------+-------------------------'  |
///      '-----dearer, or a look in vain---'<---------a look in vain----'
/// ```
///
/// A rest is twice as long as the last one after each failure, and half as long after each success. It knows no clock: processor
/// times are arguments.
struct WaitChoice {
  private enum Phase {
    case resting
    case measuringSleep
    case measuringLook
    case looking
  }

  private var phase = Phase.resting
  /// How many waits this phase has left.
  private var left = Self.restMin
  /// How long the last rest was, less what has gone well since.
  private var rest = Self.restMin
  /// The processor time at the phase's beginning.
  private var began: UInt64 = 0
  private var costOfSleep: UInt64 = 0

  // In waits.
  static let restMin = 64
  static let restMax = 4_096
  static let measuredCount = 32
  static let lookingCount = 1_024

  /// How the next wait is to be done.
  ///
  /// - Parameter processorTime: What the thread has taken so far, in nanoseconds. Asked for between two phases only.
  mutating func looks(processorTime: () -> UInt64) -> Bool {
    if left == 0 { goOn(at: processorTime()) }
    left -= 1
    switch phase {
    case .resting, .measuringSleep: return false
    case .measuringLook, .looking: return true
    }
  }

  /// Nothing has come for as long as it is worth to look.
  mutating func lookedInVain() { giveUp() }

  private mutating func giveUp() {
    rest = min(rest * 2, Self.restMax)
    (phase, left) = (.resting, rest)
  }

  private mutating func goOn(at time: UInt64) {
    // (A clock that went backwards would make this phase dear, and must not trap: nor may what is reckoned with it.)
    let cost = time &- began
    began = time
    switch phase {
    case .resting, .looking: (phase, left) = (.measuringSleep, Self.measuredCount)
    case .measuringSleep:
      costOfSleep = cost
      (phase, left) = (.measuringLook, Self.measuredCount)
    case .measuringLook:
      // (What is saved of the caller's time is worth an eighth.)
      guard cost - min(cost, costOfSleep) <= costOfSleep / 8 else { return giveUp() }
      rest = max(rest / 2, Self.restMin)
      (phase, left) = (.looking, Self.lookingCount)
    }
  }
}
