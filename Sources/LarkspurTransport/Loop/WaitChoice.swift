/// Whether one who waits for a single near answer sleeps, or looks until it is there.
///
/// Theory of operation. A sleep costs a processor that falls asleep and has to be woken: in a virtual machine that may be more
/// than the answer takes to come. Then it is cheaper, and several times as quick, to look. Which of the two is cheaper depends on
/// machine and server. So both are tried, by the processor time that is taken from one wait to the next for a number of waits, with
/// all that is done in between; and what is looked for goes on to be measured, since machines and servers change their pace.
///
/// ```
///   resting --> measuringSleep --> measuringLook --not dearer--> looking
///      ^               ^                 |                         |  |
///      |               '-----------------+----dearer, or long-----'  |
///      '-----dearer, or looks in vain----'<---------looks in vain-----'
/// ```
///
/// A look in vain ends all that, unless enough looks before it have brought something. A rest is twice as long as the last one after
/// each failure, and half as long after each success. It knows no clock: processor times are arguments.
struct WaitChoice {
  private enum Phase {
    case resting
    case measuringSleep
    case measuringLook
    case looking
    /// For tests.
    case alwaysLooking
  }

  private var phase = Phase.resting
  /// How many waits this phase has left.
  private var left = Self.restMin
  /// How long the last rest was, less what has gone well since.
  private var rest = Self.restMin
  /// How many looks have gone well since the last one in vain, as far as it matters.
  private var luck = 0
  private var costOfSleep: UInt64 = 0
  /// How many waits have been looked for since it was measured.
  private var looked = 0
  private var measurement = Measurement()

  // In waits.
  static let restMin = 64
  static let restMax = 4_096
  static let measuredCount = 32
  /// After so many looks it is seen whether they are far dearer.
  static let glanceCount = 8
  static let lookingCount = 4_096
  /// After so many looks it is seen whether they have become dearer.
  static let watchedCount = 128
  /// So many looks pay for one in vain.
  static let luckMax = 64

  init() {}

  /// It looks whether or not that is cheaper: for tests.
  static var always: WaitChoice {
    var choice = WaitChoice()
    (choice.phase, choice.left) = (.alwaysLooking, .max)
    return choice
  }

  /// How the next wait is to be done.
  ///
  /// - Parameters:
  ///   - thread: Whoever waits. What a wait costs after which another goes on is not known.
  ///   - processorTime: What it has taken so far, in nanoseconds. Asked for only while that is measured.
  mutating func looks(on thread: UInt64 = 0, processorTime: () -> UInt64) -> Bool {
    switch phase {
    case .measuringSleep: measurement.take(processorTime(), on: thread)
    case .measuringLook:
      measurement.take(processorTime(), on: thread)
      // Where sleeps are cheap a look takes twice as much: it need not be done often to see that.
      if measurement.count == Self.glanceCount, isFarDearer { giveUp() }
    case .looking where left == 0: measurement.take(processorTime(), on: thread)
    case .resting, .looking, .alwaysLooking: break
    }
    if left == 0 {
      goOn()
      measurement = Measurement(at: processorTime(), on: thread)
    }
    left -= 1
    switch phase {
    case .resting, .measuringSleep: return false
    case .measuringLook, .looking, .alwaysLooking: return true
    }
  }

  /// A look has brought what it was for.
  mutating func found() { luck = min(luck + 1, Self.luckMax) }

  /// Nothing has come for as long as it is worth to look.
  mutating func lookedInVain() {
    if luck < Self.luckMax, phase == .measuringLook || phase == .looking { giveUp() }
    luck = 0
  }

  /// It could not be looked: what this wait costs says nothing.
  mutating func couldNotLook() { measurement.leaveOut() }

  private var isFarDearer: Bool { measurement.sum > costOfSleep * UInt64(Self.glanceCount) * 3 / 2 }

  private mutating func giveUp() {
    rest = min(rest * 2, Self.restMax)
    (phase, left) = (.resting, rest)
  }

  private mutating func measureSleep() { (phase, left) = (.measuringSleep, Self.measuredCount) }

  private mutating func goOn() {
    switch phase {
    case .resting: measureSleep()
    case .measuringSleep:
      guard let mean = measurement.mean else { return giveUp() }
      costOfSleep = mean
      (phase, left) = (.measuringLook, Self.measuredCount)
    case .measuringLook:
      guard let mean = measurement.mean, mean <= costOfSleep else { return giveUp() }
      rest = max(rest / 2, Self.restMin)
      (phase, left, looked) = (.looking, Self.watchedCount, 0)
    case .looking:
      looked += Self.watchedCount
      let isDearer = measurement.sum > costOfSleep * UInt64(Self.watchedCount)
      if isDearer || looked >= Self.lookingCount { return measureSleep() }
      left = Self.watchedCount
    case .alwaysLooking: break
    }
  }
}

extension WaitChoice {
  /// What waits cost, each to the beginning of the next.
  private struct Measurement {
    private var last: (time: UInt64, thread: UInt64) = (0, 0)
    /// Whether the wait since then counts.
    private var isCounted = true
    private(set) var count = 0
    private(set) var sum: UInt64 = 0

    init() {}

    init(at time: UInt64, on thread: UInt64) { last = (time, thread) }

    mutating func take(_ time: UInt64, on thread: UInt64) {
      // (A thread may have the identity of one that has ended, and its clock begins anew.)
      if isCounted, thread == last.thread, time >= last.time {
        count += 1
        sum += time - last.time
      }
      isCounted = true
      last = (time, thread)
    }

    mutating func leaveOut() { isCounted = false }

    /// Nil: there were too few.
    var mean: UInt64? { count < WaitChoice.measuredCount / 2 ? nil : sum / UInt64(count) }
  }
}
