import LarkspurHTTP

/// One task of a background session, as each side has it: the program, the service, and the runner.
///
/// The journal stores the record, messages carry it, and the program shows it. The other parts are not stored: the
/// progress of the task and of its delegate calls. `apply` is the only mutation. State that only the program changes is
/// taken from the program: suspension, cancellation, properties, and the acknowledged events. A notice may have been
/// made before the runner has seen the latest commands. The page BackgroundTransfers has the graph of the phases.
package struct TransferTask: Hashable, Sendable {
  package enum Phase: Hashable, Sendable, CaseIterable {
    /// No runner has been sent the task.
    case new
    /// A runner has been sent the task, or has it from an earlier process.
    case sent
    /// The task has ended, and its last calls are due.
    case ending
    /// The delegate has left the file of the download: the last calls will be repeated.
    case left
    /// The session ends without the file. The journal keeps the end of the task for the next session.
    case kept
  }

  package enum Event: Hashable, Sendable {
    // The program's changes. The runner alone knows their moments.
    case resumed(at: TransferMoment? = nil)
    case suspended(at: TransferMoment? = nil)
    case cancelled(isKeepingContent: Bool)
    case updated(TransferProperties)
    /// The program has been given the first events.
    case acknowledged(Int)

    // Notices of the runner.
    case changed(TransferRecord)
    case progressed(TransferRecord.Counts)

    // The program's side.
    /// A runner that does not have the task is sent its record.
    case sent
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
    /// The runner has lost the end, and carries the task out once more.
    case endLost

    // The runner's side.
    /// The program has answered the question about the start, perhaps with another request.
    case startAnswered(TransferRequest?)
    case attemptBegan
    /// An attempt has failed, as the last of so many in a row. The next one begins at a time in seconds since 1970.
    case attemptFailed(failures: UInt32, next: Double)
    case redirected(url: String)
    /// The download continues an earlier task's.
    case continued(offset: Int64, expected: Int64)
    /// The bytes up to the point are on the disk, or those in the file belong to no version.
    case resumePoint(ResumePoint?)
    case uploadPoint([UInt8]?)
    case contentFile(isThere: Bool)
    /// An attempt has succeeded. Without a response, the server asked for another attempt.
    case loaded(TransferResponse?)
    /// The request behind the redirects of the last attempt.
    case reached(TransferRequest)
    case ended(TransferRecord.Failure?, underlying: TransferRecord.Failure? = nil)
    /// The record is about to be written by the clocks of a moment.
    case timed(TransferMoment)
    /// The record has no room in the journal.
    case leftOut(until: Int)
  }

  package private(set) var record: TransferRecord
  package private(set) var phase: Phase
  /// Whether the received bytes stay after the program's cancellation. `nil` if the program has not cancelled the task.
  package private(set) var keepsContent: Bool?
  /// Whether the delegate call for a continued download has been made, or is due.
  package private(set) var hasReportedResumption = false
  /// Whether a call for the progress is due.
  package private(set) var isReportDue = false
  /// Whether the task has ended, and its runner has lost the end.
  package private(set) var isEndLost = false
  /// The count of the latest call for the progress, in bytes.
  private var reportedBytes: Int64
  /// The highest count that delegates have seen, in bytes. The count of a task falls when an attempt starts over.
  private var seenBytes: Int64
  /// The events that were acknowledged last, which the runner may not have removed yet.
  private var acknowledged: [TransferRecord.Event] = []

  /// - Parameter isNew: `false` if a runner has the task.
  package init(_ record: TransferRecord, isNew: Bool) {
    self.record = record
    phase = isNew ? .new : record.state == .completed ? .ending : .sent
    reportedBytes = record.progressBytes
    seenBytes = record.progressBytes
    if isNew, record.state == .canceling { keepsContent = false }
  }

  package var isCancelled: Bool { keepsContent != nil }
  /// Whether the task is running or being cancelled. Suspended tasks need no runner.
  package var isWorking: Bool { record.state == .running || record.state == .canceling }
  /// Whether the task has ended, and the program has taken all events.
  package var isOver: Bool { record.state == .completed && record.events.isEmpty }
  /// Whether the delegate has not been called for the current counts.
  package var hasProgress: Bool { record.progressBytes != reportedBytes && !isCancelled }
  /// The number of bytes that no delegate has seen.
  package var unseenBytes: Int64 { max(record.progressBytes - seenBytes, 0) }

  package mutating func apply(_ event: Event) {
    switch event {
    case .resumed(let moment):
      guard record.state == .suspended else { return }
      record.state = .running
      if let moment, let start = record.suspendedSeconds.take() {
        record.pausedSeconds += max(record.seconds(at: moment) - start, 0)
      }
    case .suspended(let moment):
      guard record.state == .running else { return }
      record.state = .suspended
      record.suspendedSeconds = moment.map(record.seconds)
    case .cancelled(let isKeepingContent):
      keepsContent = isKeepingContent
      guard record.state != .completed else { return }
      record.state = .canceling
      if !isKeepingContent { (record.resumePoint, record.uploadPoint) = (nil, nil) }
    case .updated(let properties): if record.state != .completed { record.take(properties) }
    case .acknowledged(let count):
      let taken = record.events.prefix(max(count, 0))
      record.events.removeFirst(taken.count)
      acknowledged = (acknowledged + taken).suffix(TransferRecord.eventsMax)

    case .changed(let new): take(new)
    case .progressed(let counts):
      guard phase == .sent else { return }
      let own = TransferProperties(record)
      record.counts = counts
      record.take(own)

    case .sent:
      record.startOver()
      acknowledged = []
      phase = .sent
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

    case .startAnswered(let request):
      record.earliestBeginSeconds = nil
      guard let request else { return }
      // The bytes of an earlier download, or of an upload's resource, belong to their own URL.
      let original = record.originalRequest
      if request.url != original.url { record.resumePoint = nil }
      if (request.url, request.method) != (original.url, original.method) { record.uploadPoint = nil }
      record.currentRequest = request
    case .attemptBegan: record.nextAttemptSeconds = nil
    case .attemptFailed(let failures, let next):
      record.redirects = []
      record.failedAttempts = failures
      record.nextAttemptSeconds = next
    case .redirected(let url):
      let bytes = record.redirects.reduce(url.utf8.count) { $0 + $1.utf8.count }
      if record.redirects.count < TransferRecord.redirectsMax, bytes <= TransferRecord.redirectsBytesMax {
        record.redirects.append(url)
      }
    case .continued(let offset, let expected):
      record.events.append(.resumed(offset: offset, expected: max(expected, -1)))
    case .resumePoint(let point): record.resumePoint = point
    case .uploadPoint(let point): record.uploadPoint = point
    case .contentFile(let isThere): record.hasContentFile = isThere
    case .loaded(let response):
      record.response = response
      record.failedAttempts = 0
      (record.resumePoint, record.uploadPoint) = (nil, nil)
    case .reached(let request): record.currentRequest = request
    case .ended(let failure, let underlying): end(failure, underlying)
    case .timed(let moment): record.adjust(to: moment)
    case .leftOut(let count): record.leaveOutParts(until: count)
    }
  }

  /// Takes a record of a runner. The end of a task is final.
  private mutating func take(_ new: TransferRecord) {
    guard phase == .new || phase == .sent else { return }
    let own = record
    record = new
    record.take(TransferProperties(own))
    if new.events.starts(with: acknowledged + own.events) {
      // The runner had not seen the acknowledgement.
      record.events.removeFirst(acknowledged.count)
    } else {
      acknowledged = []
    }
    if new.state == .completed {
      phase = .ending
    } else {
      record.state = own.state
      phase = .sent
    }
  }

  private mutating func end(_ failure: TransferRecord.Failure?, _ underlying: TransferRecord.Failure?) {
    phase = .ending
    record.state = .completed
    (record.suspendedSeconds, record.nextAttemptSeconds) = (nil, nil)
    (record.failure, record.underlyingFailure) = (failure, underlying)
    if failure == nil, record.hasContentFile { record.events.append(.downloaded) }
    record.events.append(.completed)
    if failure != nil, record.resumePoint == nil { record.hasContentFile = false }
  }
}

extension TransferCommand {
  /// The task that the command changes, and its event.
  var change: (task: Int, event: TransferTask.Event)? {
    switch self {
    case .create, .answer: nil
    case .resume(let task): (task, .resumed())
    case .suspend(let task): (task, .suspended())
    case .cancel(let task, let isKeepingContent): (task, .cancelled(isKeepingContent: isKeepingContent))
    case .update(let task, let properties): (task, .updated(properties))
    case .acknowledge(let task, let count): (task, .acknowledged(count))
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
