import LarkspurIO
import Synchronization

/// Whether a loop pauses before it wakes the few callers whose results have come, so that others are woken with them.
///
/// Theory of operation. Where many load at once from a server that is as slow as the loop, or slower, each turn brings a result or
/// two, and to wake somebody for them costs more than all else. While the loop pauses, results come together. Few callers would
/// wait for one another then; of many, the others' requests wait in the server meanwhile, which is not idle. So there are to be
/// many, and where a pause brings little (the server is slow or far away) there is none for a while: for twice as many occasions
/// after each failure, and for half as many after each success. It knows no clock.
struct Gathering {
  /// So many callers have to wait for results, at least.
  static let callersMin = 24
  /// So many are woken without a pause.
  static let gatheredMin = 9
  /// So many more a pause has to bring.
  static let broughtMin = 3
  /// How long a pause is, but for the kernel's slack (50 us most often).
  static let nanoseconds = 20_000
  private static let skipsMax = 1_023

  /// How many there were before the pause that has been made. 0: none has.
  private var before = 0
  /// How many occasions pass without a pause, and how many did after the last failure.
  private var skips = 0
  private var skipsLast = 0

  /// - Parameter count: How many are to be called.
  mutating func pauses(before count: Int) -> Bool {
    guard endPause(with: count), count < Self.gatheredMin else { return false }
    guard skips == 0 else {
      skips -= 1
      return false
    }
    before = count
    return true
  }

  /// The pause is over, if there is one. False: it was in vain.
  ///
  /// - Parameter count: How many are to be called now.
  @discardableResult
  mutating func endPause(with count: Int) -> Bool {
    guard before > 0 else { return true }
    let wasWorthIt = count >= before + Self.broughtMin
    before = 0
    skipsLast = wasWorthIt ? skipsLast / 2 : min(2 * skipsLast + 1, Self.skipsMax)
    if !wasWorthIt { skips = skipsLast }
    return wasWorthIt
  }
}

extension ClientLoop {
  /// How many callers wait for what this loop brings, of those that are woken together. From any thread.
  public var waitingCallers: Int { callersCount.load(ordering: .relaxed) }

  /// So many begin to wait, or have gone on. From any thread.
  public func waitingCallersChange(by count: Int) { callersCount.add(count, ordering: .relaxed) }

  /// Whether there is more to come before callers are woken: something has come in a pause.
  func gathersMore() -> Bool {
    guard waitingCallers >= Gathering.callersMin, waiting.state.successors.areCallers,
      waiting.state.gathering.pauses(before: waiting.state.successors.count)
    else { return false }
    kernel.pause(nanoseconds: Gathering.nanoseconds)
    wait(milliseconds: 0)
    return waiting.state.eventCount > 0
  }

  /// A thread that is woken may take the processor at once, do its bit and sleep again. So callers of Swift's pool whose results
  /// have come together are woken together, by one task there: the loop wakes one thread for them, and not one after the other.
  func callSuccessors() {
    var successors = TurnSuccessors()
    swap(&successors, &waiting.state.successors)
    waiting.state.gathering.endPause(with: successors.count)
    guard successors.callersCount > 1 else { return successors.call() }
    successors.callOthers()
    Task.detached(priority: TaskPriority(rawValue: successors.callersPriority)) { [successors] in
      successors.callCallers()
    }
  }
}
