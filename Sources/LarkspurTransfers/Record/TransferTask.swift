/// One task of a background session: its record, and the delegate calls that have been made for it.
///
/// `apply` is the only mutation. What only the program changes is taken from the program: suspension, cancellation and
/// properties. A notice may have been made before the executor has seen the latest commands.
///
/// ```
///         sent         changed, completed        (last call) .
///   new --------> sent -------------------> ending ---------> removed
///                                            |  ^
///                                   fileLeft |  | fileOffered
///                                            v  |
///                                            left --kept--> kept: the next session delivers the file
/// ```
package struct TransferTask: Hashable, Sendable {
  package enum Phase: Hashable, Sendable, CaseIterable {
    /// No executor has been sent the task.
    case new
    /// An executor has been sent the task, or has it from an earlier process.
    case sent
    /// The task has ended, and its last calls are due.
    case ending
    /// The delegate has left the file of the download: the last calls will be repeated.
    case left
    /// The session ends without the file. The journal keeps the end of the task for the next session.
    case kept
  }

  package enum Event: Hashable, Sendable {
    case resumed
    case suspended
    /// The program has cancelled the task.
    case cancelled(isKeepingContent: Bool)
    case updated(TransferProperties)
    /// An executor that does not have the task is sent its record.
    case sent
    case changed(TransferRecord)
    case progressed(TransferRecord.Counts)
    /// The call for the continued download is due.
    case resumptionReported
    /// A call for the progress is due.
    case reportDue
    /// The delegate is being called with the counts.
    case reported
    case fileLeft
    /// The delegate is being called once more for the file that it has left.
    case fileOffered
    case kept
    /// The executor has lost the end, and carries the task out once more.
    case endLost
  }

  package private(set) var record: TransferRecord
  package private(set) var phase: Phase
  /// Whether the received bytes stay after the program's cancellation. `nil` if the program has not cancelled the task.
  package private(set) var keepsContent: Bool?
  /// Whether the delegate call for a continued download has been made, or is due.
  package private(set) var hasReportedResumption = false
  /// Whether a call for the progress is due.
  package private(set) var isReportDue = false
  /// Whether the task has ended, and its executor has lost the end.
  package private(set) var isEndLost = false
  /// The count of the latest call for the progress, in bytes.
  private var reportedBytes: Int64
  /// The highest count that delegates have seen, in bytes. The count of a task falls when an attempt starts over.
  private var seenBytes: Int64

  /// - Parameter isNew: `false` if an executor has the task.
  package init(_ record: TransferRecord, isNew: Bool) {
    self.record = record
    phase = isNew ? .new : record.state == .completed ? .ending : .sent
    reportedBytes = record.progressBytes
    seenBytes = record.progressBytes
    if isNew, record.state == .canceling { keepsContent = false }
  }

  package var isCancelled: Bool { keepsContent != nil }
  /// Whether the delegate has not been called for the current counts.
  package var hasProgress: Bool { record.progressBytes != reportedBytes && !isCancelled }
  /// The number of bytes that no delegate has seen.
  package var unseenBytes: Int64 { max(record.progressBytes - seenBytes, 0) }

  package mutating func apply(_ event: Event) {
    switch event {
    case .resumed: if record.state == .suspended { record.state = .running }
    case .suspended: if record.state == .running { record.state = .suspended }
    case .cancelled(let isKeepingContent):
      keepsContent = isKeepingContent
      if record.state != .completed { record.state = .canceling }
    case .updated(let properties): record.take(properties)
    case .sent:
      record.startOver()
      phase = .sent
    case .changed(let new): take(new)
    case .progressed(let counts):
      guard phase == .sent else { return }
      let own = TransferProperties(record)
      record.counts = counts
      record.take(own)
    case .resumptionReported: hasReportedResumption = true
    case .reportDue: isReportDue = true
    case .reported:
      isReportDue = false
      reportedBytes = record.progressBytes
      seenBytes = max(seenBytes, reportedBytes)
    case .fileLeft: if phase == .ending { phase = .left }
    case .fileOffered: if phase == .left { phase = .ending }
    case .kept: phase = .kept
    case .endLost: isEndLost = true
    }
  }

  /// Takes a record of an executor. The end of a task is final.
  private mutating func take(_ new: TransferRecord) {
    guard phase == .new || phase == .sent else { return }
    let own = record
    record = new
    record.take(TransferProperties(own))
    if new.state == .completed {
      phase = .ending
    } else {
      record.state = own.state
      phase = .sent
    }
  }
}

extension TransferProperties {
  package init(_ record: TransferRecord) {
    self.init(
      description: record.taskDescription, priority: record.priority,
      clientExpectsToSend: record.counts.clientExpectsToSend,
      clientExpectsToReceive: record.counts.clientExpectsToReceive)
  }
}

extension TransferRecord {
  package mutating func take(_ properties: TransferProperties) {
    taskDescription = properties.description
    priority = properties.priority
    counts.clientExpectsToSend = properties.clientExpectsToSend
    counts.clientExpectsToReceive = properties.clientExpectsToReceive
  }

  /// The count whose growth is the progress of the task, in bytes.
  fileprivate var progressBytes: Int64 { max(kind == .download ? counts.received : counts.sent, 0) }

  /// Removes what attempts have brought: the journal that had it has been lost.
  fileprivate mutating func startOver() {
    counts.sent = 0
    counts.received = 0
    counts.expectedToReceive = -1
    hasContentFile = false
    resumePoint = nil
    redirects = []
    response = nil
    suspendedSeconds = nil
    nextAttemptSeconds = nil
    failedAttempts = 0
    events = []
  }
}
