import LarkspurHTTP

/// Decides, for one task of a background session in its runner, when an attempt begins, what follows from its end, and
/// what the record says meanwhile.
///
/// The page TransferService has the graph of the phases. A task that is suspended keeps its phase, and begins nothing. The
/// machine has no clock: facts have their moment. The runner writes the record when a fact has changed it.
package struct TransferAttemptMachine: Hashable, Sendable {
  package enum Phase: Hashable, CaseIterable, Sendable {
    /// No attempt: the task waits for its time, for its turn, or to be resumed.
    case waiting
    /// The program is being asked about the start.
    case asking
    /// The discretionary task has had its turn, and waits for a quiet machine.
    case looking
    case loading
    case over
  }

  /// What the runner does for a task that may be due.
  package enum Step: Hashable, Sendable {
    case nothing
    /// The time for the resource is over.
    case timeOut
    case wait(seconds: Double, byWallClock: Bool)
    case ask
    /// Another discretionary task has its turn, or is being loaded. `isDue` says whether the other task can begin now:
    /// its timer may be late, because the clock was set or the machine slept.
    case queue(isDue: Bool)
    /// Look whether the machine is quiet.
    case look
    case load
  }

  /// What follows from the program's answer to the question about the start.
  package enum Consent: Hashable, Sendable {
    case begin
    case cancel
    /// The new request has no room in the journal.
    case tooLarge
  }

  package var task: TransferTask
  package private(set) var phase: Phase
  /// The time for the whole task, in seconds.
  private let secondsForResource: Double
  /// The bytes that the current attempt's download had at its start.
  private var startOffset = 0

  package init(_ record: TransferRecord, secondsForResource: Double) {
    task = TransferTask(record, isNew: false)
    self.secondsForResource = secondsForResource
    phase = record.state == .completed ? .over : .waiting
  }

  package var record: TransferRecord { task.record }

  /// Whether the task is being loaded, and not suspended.
  package var isLoading: Bool { phase == .loading && record.state == .running }

  /// The rest of the time for the resource in seconds. The time stands still while the task is suspended.
  package func secondsLeft(at moment: TransferMoment) -> Double {
    record.createdSeconds + record.pausedSeconds + secondsForResource - record.seconds(at: moment)
  }

  // MARK: - The beginning

  /// Returns what is due for the task at a moment.
  ///
  /// - Parameter all: The tasks of the session. Only discretionary tasks look at them.
  package func next(at moment: TransferMoment, among all: some Sequence<Self>) -> Step {
    guard record.state == .running, phase != .loading, phase != .over else { return .nothing }
    let left = secondsLeft(at: moment)
    guard left > 0 else { return .timeOut }
    if let earliest = record.earliestBeginSeconds, earliest > moment.wallSeconds {
      return .wait(seconds: min(earliest - moment.wallSeconds, left), byWallClock: true)
    }
    if let next = record.nextAttemptSeconds, !record.isDue(at: moment) {
      return .wait(seconds: min(next - record.seconds(at: moment), left), byWallClock: false)
    }
    if phase == .asking { return .wait(seconds: left, byWallClock: false) }
    if record.earliestBeginSeconds != nil { return .ask }
    guard record.isDiscretionary else { return .load }
    guard !all.contains(where: \.isLoading), let first = Self.firstDiscretionary(at: moment, among: all) else {
      return .queue(isDue: false)
    }
    return first.record.task == record.task ? .look : .queue(isDue: first.phase != .looking)
  }

  /// Returns the discretionary task that has its turn: the oldest of those that wait for nothing but the machine.
  package static func firstDiscretionary(at moment: TransferMoment, among all: some Sequence<Self>) -> Self? {
    all.filter {
      $0.record.isDiscretionary && $0.record.state == .running && ($0.phase == .waiting || $0.phase == .looking)
        && $0.record.isDue(at: moment)
    }.min { $0.record.task < $1.record.task }
  }

  /// The program is being asked about the start.
  package mutating func asked() { if phase == .waiting || phase == .looking { phase = .asking } }

  /// The program has answered.
  package mutating func answered(_ answer: TransferAnswer) -> Consent {
    if phase == .asking { phase = .waiting }
    guard case .useNewRequest(let request) = answer else {
      task.apply(.startAnswered(nil))
      return answer == .cancel ? .cancel : .begin
    }
    var next = task
    next.apply(.startAnswered(request))
    guard next.record.fits(TransferRecord.newBytesMax) else {
      task.apply(.startAnswered(nil))
      return .tooLarge
    }
    task = next
    return .begin
  }

  /// The machine has been looked at for the task.
  package mutating func looked(isQuiet: Bool) {
    guard phase == .waiting || phase == .looking else { return }
    phase = isQuiet ? .waiting : .looking
  }

  /// An attempt begins.
  ///
  /// - Returns: Whether the program has to know: the record names no time of the next attempt any more.
  package mutating func began() -> Bool {
    guard phase == .waiting || phase == .looking else { return false }
    phase = .loading
    startOffset = record.resumePoint?.offset ?? 0
    defer { task.apply(.attemptBegan) }
    return record.nextAttemptSeconds != nil
  }

  // MARK: - The end

  /// The attempt has been stopped, or has ended.
  package mutating func stopped() { if phase == .loading { phase = .waiting } }

  /// An attempt has failed for a reason that may pass: the next one begins after a wait.
  ///
  /// - Parameters:
  ///   - delay: The wait that the server asks for, in seconds. A server that always asks to come back at once is asked less
  ///     and less often.
  ///   - fraction: A random number from 0 to 1.
  package mutating func failed(delay: Double?, fraction: Double, at moment: TransferMoment) {
    guard phase != .over else { return }
    phase = .waiting
    let hasAdvanced = (record.resumePoint?.offset ?? 0) - startOffset >= Self.advanceMin
    let (failures, isTooMany) = (hasAdvanced ? 0 : record.failedAttempts).addingReportingOverflow(1)
    let wait = max(delay ?? 0, Self.wait(failures: Int(failures), fraction: fraction))
    task.apply(.attemptFailed(failures: isTooMany ? .max : failures, next: record.seconds(at: moment) + wait))
  }

  /// The number of bytes after which a broken download counts as an advance: the wait before the next try is short again.
  package static let advanceMin = 64 << 10
  /// Maximum wait between two attempts, in seconds, unless the server asks for a longer one.
  static let waitMax = 300.0

  /// Returns the wait before the next attempt, in seconds: 1 s after the first failure, and twice as long after each
  /// further one. Half of the wait is random: the tasks of many programs must not come back all at once.
  static func wait(failures: Int, fraction: Double) -> Double {
    BackOff.delay(failures: failures, first: 1, longest: waitMax, fixedShare: 0.5, fraction: fraction)
  }

  /// The task has ended.
  ///
  /// - Returns: Whether the file with the received bytes should be removed.
  package mutating func ended(
    _ failure: TransferRecord.Failure?, underlying: TransferRecord.Failure? = nil
  ) -> Bool {
    phase = .over
    task.apply(.ended(failure, underlying: underlying))
    return failure != nil && !record.hasContentFile
  }
}
