import LarkspurHTTP

/// Decides, for one task of a background session in its executor, when an attempt begins, what follows from its end, and
/// what the record says meanwhile.
///
/// ```
///                      .---looked(isQuiet: false)---.
///                      v                            |
///   waiting --next--> asking --answered--> waiting --next--> (look) --> loading --ended--> over
///      ^                                                                   |
///      '--------- stopped; failed, and another attempt may help -----------'
/// ```
///
/// A task that is suspended keeps its phase, and begins nothing. The machine has no clock: facts have their moment. The
/// executor writes the record when a fact has changed it.
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

  /// What the executor does for a task that may be due.
  package enum Step: Hashable, Sendable {
    case nothing
    /// The time for the resource is over.
    case timeOut
    case wait(seconds: Double, byWallClock: Bool)
    case ask
    /// Another discretionary task has its turn, or is being loaded. `isDue` says whether the other one can begin now: its
    /// timer may be late, because the clock was set or the machine slept.
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

  package var record: TransferRecord
  package private(set) var phase: Phase
  /// The time for the whole task, in seconds.
  private let secondsForResource: Double
  /// The bytes that the current attempt's download had at its start.
  private var startOffset = 0

  package init(_ record: TransferRecord, secondsForResource: Double) {
    self.record = record
    self.secondsForResource = secondsForResource
    phase = record.state == .completed ? .over : .waiting
  }

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
    record.earliestBeginSeconds = nil
    guard case .useNewRequest(let request) = answer else { return answer == .cancel ? .cancel : .begin }
    // The bytes of an earlier download, or of an upload's resource, belong to their own URL.
    let original = record.originalRequest
    if request.url != original.url { record.resumePoint = nil }
    if (request.url, request.method) != (original.url, original.method) { record.uploadPoint = nil }
    record.currentRequest = request
    guard record.fits(TransferRecord.newBytesMax) else {
      record.currentRequest = nil
      return .tooLarge
    }
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
    defer { record.nextAttemptSeconds = nil }
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
    record.redirects = []
    if (record.resumePoint?.offset ?? 0) - startOffset >= Self.advanceMin { record.failedAttempts = 0 }
    if record.failedAttempts < .max { record.failedAttempts += 1 }
    let wait = max(delay ?? 0, Self.wait(failures: Int(record.failedAttempts), fraction: fraction))
    record.nextAttemptSeconds = record.seconds(at: moment) + wait
  }

  /// The number of bytes after which a broken download counts as an advance: the wait before the next try is short again.
  package static let advanceMin = 64 << 10
  /// Maximum wait between two attempts, in seconds, unless the server asks for a longer one.
  static let waitMax = 300.0

  /// Returns the wait before the next attempt, in seconds: 1 s after the first failure, and twice as long after each
  /// further one. Half of the wait is random: the tasks of many programs must not come back all at once.
  static func wait(failures: Int, fraction: Double) -> Double {
    let whole = min(Double(1 << (min(max(failures, 1), 30) - 1)), waitMax)
    return whole / 2 + whole / 2 * fraction
  }

  /// The task has ended.
  ///
  /// - Returns: Whether the file with the received bytes should be removed.
  package mutating func ended(
    _ failure: TransferRecord.Failure?, underlying: TransferRecord.Failure? = nil
  ) -> Bool {
    phase = .over
    record.state = .completed
    record.suspendedSeconds = nil
    record.nextAttemptSeconds = nil
    record.failure = failure
    record.underlyingFailure = underlying
    if failure == nil, record.hasContentFile { record.events.append(.downloaded) }
    record.events.append(.completed)
    guard failure != nil, record.resumePoint == nil else { return false }
    record.hasContentFile = false
    return true
  }

  // MARK: - Commands

  /// - Returns: Whether the task was suspended.
  package mutating func resumed(at moment: TransferMoment) -> Bool {
    guard record.state == .suspended else { return false }
    record.state = .running
    if let start = record.suspendedSeconds.take() {
      record.pausedSeconds += max(record.seconds(at: moment) - start, 0)
    }
    return true
  }

  /// - Returns: Whether the task was running.
  package mutating func suspended(at moment: TransferMoment) -> Bool {
    guard record.state == .running else { return false }
    record.state = .suspended
    record.suspendedSeconds = record.seconds(at: moment)
    return true
  }

  /// The program has cancelled the task. `ended` follows, once the bytes that stay have been counted.
  ///
  /// - Returns: Whether the task had not ended.
  package mutating func cancelled(isKeepingContent: Bool) -> Bool {
    guard phase != .over else { return false }
    record.state = .canceling
    if !isKeepingContent {
      record.resumePoint = nil
      record.uploadPoint = nil
    }
    return true
  }

  /// The program has taken events.
  ///
  /// - Returns: Whether the task should be removed.
  package mutating func acknowledged(_ count: Int) -> Bool {
    record.events.removeFirst(min(max(count, 0), record.events.count))
    return phase == .over && record.events.isEmpty
  }
}
