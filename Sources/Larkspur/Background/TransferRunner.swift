import Dispatch
import Foundation
import LarkspurHTTP
import LarkspurIO
import LarkspurTransfers
import Synchronization

/// Carries out the tasks of one background session, with an inner session, and keeps their journal.
///
/// All state belongs to a serial queue, on which the inner session calls its delegate as well. Writing the journal blocks
/// the queue, and no caller.
///
/// A task is carried out in attempts, each an inner task. An attempt that fails for a transient reason is followed by
/// another attempt (`TransferRetry`), until the time-out of the resource. The content of a download is written to a
/// file in the journal's directory. `checkpointSeconds` after bytes have arrived, the file is synced, and then the
/// record counts them: after a restart the download continues from there.
package final class TransferRunner: TransferLink, @unchecked Sendable {
  /// The time between two checkpoints of a download to which bytes come, in seconds: the work that a killed process
  /// loses at most.
  static let checkpointSeconds = 1.0
  /// Maximum size of the content that an upload's response may have, in bytes.
  static let uploadContentMax = 1 << 20
  /// The time between two notices of a task's progress, in seconds.
  static let progressSeconds = 0.05

  package let records: [TransferRecord]
  let queue = DispatchQueue(label: "larkspur.background-transfers")
  private let directory: String
  let journal: TransferJournal
  private let log: @Sendable (String) -> Void
  private let session: URLSession
  private let handler: AttemptHandler
  /// Returns the state of the machine. May block.
  private let conditions: @Sendable () -> TransferConditions
  /// Reads the machine's clocks.
  let clock: @Sendable () -> TransferMoment
  let secondsForResource: Double
  let traffic: TransferTraffic
  /// The rate of discretionary transfers while there are others, in bytes per second.
  let pacedBytesPerSecond: Int
  var attempts: [Int: TransferAttempt] = [:]
  var machines: some Sequence<TransferAttemptMachine> { attempts.values.lazy.map(\.machine) }
  /// The tasks of `attempts` by the identifiers of their inner tasks.
  var tasks: [Int: Int] = [:]
  private var notify: (@Sendable (TransferNotice) -> Void)?
  private var noticesBefore: [TransferNotice] = []
  var questions: [UInt64: (task: Int, answer: @Sendable (TransferAnswer) -> Void)] = [:]
  var lastQuestion: UInt64 = 0
  /// Answers the challenges of a task, by the delegate of a program in this process.
  var challengeHandler: ChallengeHandler?

  typealias ChallengeHandler =
    @Sendable (
      _ task: Int, URLAuthenticationChallenge,
      @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) -> Void

  /// Opens the journal, and continues the tasks in it.
  ///
  /// - Parameters:
  ///   - configuration: The settings of the background session.
  ///   - log: Gets messages as text, which quotes no fields of requests.
  package convenience init(
    _ transferSession: TransferSession, _ configuration: URLSessionConfiguration,
    log: @escaping @Sendable (String) -> Void
  ) throws(TransferLinkError) {
    try self.init(transferSession, configuration, traffic: .shared, log: log)
  }

  init(
    _ transferSession: TransferSession, _ configuration: URLSessionConfiguration, traffic: TransferTraffic,
    pacedBytesPerSecond: Int = TransferPace.bytesPerSecond,
    clock: @escaping @Sendable () -> TransferMoment = { .now }, log: @escaping @Sendable (String) -> Void
  ) throws(TransferLinkError) {
    self.traffic = traffic
    self.pacedBytesPerSecond = pacedBytesPerSecond
    self.clock = clock
    conditions = configuration.storage.transferConditions ?? { TransferConditions.current() }
    directory = transferSession.directory
    self.log = log
    let content: TransferJournal.Content
    do throws(TransferJournalError) {
      journal = try TransferJournal(path: directory, session: transferSession.identifier, log: log)
      content = try journal.content()
    } catch .inUse {
      throw .inUse
    } catch {
      throw .unavailable(reason: "the journal of background session \"\(transferSession.identifier)\": \(error)")
    }
    records = content.records.filter { $0.state != .completed || !$0.events.isEmpty }
    for problem in content.problems {
      log("task \(problem.task) of session \"\(transferSession.identifier)\" is lost: \(problem.reason)")
    }
    secondsForResource = configuration.storage.settings.timeoutForResource
    handler = AttemptHandler()
    session = URLSession(
      configuration: configuration.ofAttempts, delegate: handler, delegateQueue: SerialOperationQueue(on: queue))
    handler.runner = self
    // Records of tasks that have ended and have been delivered remain if the process was killed between the two writes.
    let over = content.records.filter { $0.state == .completed && $0.events.isEmpty }
    queue.async { [self] in
      for record in over { remove(record.task) }
      for record in records { attempts[record.task] = makeAttempt(of: record) }
    }
  }

  deinit {
    for attempt in attempts.values { attempt.timer?.cancel() }
    session.invalidateAndCancel()
  }

  func contentPath(of task: Int) -> String { "\(directory)/\(TransferFileName.content(of: task))" }

  package func start(_ notify: @escaping @Sendable (TransferNotice) -> Void) {
    queue.async { [self] in
      self.notify = notify
      for notice in noticesBefore { notify(notice) }
      noticesBefore = []
      for record in records {
        if record.state == .canceling { cancel(record.task, isKeepingContent: false) } else { begin(record.task) }
      }
    }
  }

  /// Makes the runner ask a function of this process about challenges.
  func answerChallenges(by handler: @escaping ChallengeHandler) { queue.async { [self] in challengeHandler = handler } }

  func tell(_ notice: TransferNotice) {
    if let notify { notify(notice) } else { noticesBefore.append(notice) }
  }

  // MARK: - Commands

  package func send(_ command: TransferCommand) { queue.async { [self] in carryOut(command) } }

  package func flush(_ completion: @escaping @Sendable (Bool) -> Void) {
    queue.async { [self] in
      syncJournal()
      completion(true)
    }
  }

  private func syncJournal() {
    do throws(TransferJournalError) { try journal.sync() } catch {
      log("the disk does not confirm new tasks: \(error)")
    }
  }

  package func close(_ completion: @escaping @Sendable () -> Void) {
    queue.async { [self] in
      for attempt in attempts.values {
        attempt.timer?.cancel()
        stop(attempt)
        // The disk may have room by now. No other place has the end of a task that the disk has refused.
        if !attempt.isWritten { write(attempt) }
      }
      attempts = [:]
      questions = [:]
      // Until the inner tasks have ended they may write to their files.
      handler.whenOver = { [self] in
        journal.close()
        completion()
      }
      session.invalidateAndCancel()
    }
  }

  private func carryOut(_ command: TransferCommand) {
    switch command {
    case .create(let record): create(record)
    case .resume(let task): resume(task)
    case .suspend(let task): suspend(task)
    case .cancel(let task, let isKeepingContent): cancel(task, isKeepingContent: isKeepingContent)
    case .update(let task, let properties): update(task, properties)
    case .acknowledge(let task, let count): acknowledge(task, count)
    case .answer(let question, let answer): questions.removeValue(forKey: question)?.answer(answer)
    }
  }

  private func create(_ record: TransferRecord) {
    guard attempts[record.task] == nil else { return }
    let attempt = makeAttempt(of: record)
    // The bytes of an earlier download, which the record counts, must be on the disk before the record.
    if record.hasContentFile, (try? journal.syncContent(of: record.task)) == nil {
      attempt.apply(.resumePoint(nil))
      attempt.apply(.contentFile(isThere: false))
    }
    attempt.tellsResumption = attempt.record.resumePoint != nil
    attempts[record.task] = attempt
    do throws(TransferJournalError) {
      try journal.add(attempt.record)
      // The tasks that are waiting to be created share the sync.
      queue.async { [self] in syncJournal() }
    } catch {
      // A task that is not on the disk would not outlive the process: it is not carried out at all.
      return end(attempt, URLError.make(.cannotWriteToFile, "the task cannot be written to the journal: \(error)"))
    }
    begin(record.task)
  }

  private func makeAttempt(of record: TransferRecord) -> TransferAttempt {
    if let cookies = record.cookies, let storage = session.core.cookieStorage {
      TransferCookies.restore(cookies, to: storage)
    }
    let attempt = TransferAttempt(TransferAttemptMachine(record, secondsForResource: secondsForResource), traffic)
    attempt.apply(.timed(clock()))
    return attempt
  }

  private func resume(_ task: Int) {
    guard let attempt = attempts[task], attempt.record.state == .suspended else { return }
    attempt.apply(.resumed(at: clock()))
    write(attempt)
    guard let inner = attempt.inner else { return begin(task) }
    if attempt.record.isDiscretionary, attempts.values.contains(where: { $0 !== attempt && $0.isLoading }) {
      // Another task has its turn.
      stop(attempt)
      checkpoint(attempt)
      return begin(task)
    }
    wake(attempt, in: attempt.machine.secondsLeft(at: clock()))
    inner.resume()
  }

  private func suspend(_ task: Int) {
    guard let attempt = attempts[task], attempt.record.state == .running else { return }
    attempt.apply(.suspended(at: clock()))
    write(attempt)
    // A pause is a suspension already, which the next `resume` ends in place of the pause's timer.
    if attempt.isPaused { attempt.isPaused = false } else { attempt.inner?.suspend() }
    beginNextDiscretionary()
  }

  private func cancel(_ task: Int, isKeepingContent: Bool) {
    guard let attempt = attempts[task], attempt.record.state != .completed else { return }
    attempt.apply(.cancelled(isKeepingContent: isKeepingContent))
    stop(attempt)
    if isKeepingContent { checkpoint(attempt) }
    end(attempt, URLError.make(.cancelled, "cancelled"))
  }

  private func update(_ task: Int, _ properties: TransferProperties) {
    guard let attempt = attempts[task], attempt.record.state != .completed,
      TransferProperties(attempt.record) != properties
    else { return }
    attempt.apply(.updated(properties))
    attempt.inner?.priority = Float(properties.priority)
    write(attempt)
  }

  private func acknowledge(_ task: Int, _ count: Int) {
    guard let attempt = attempts[task], count > 0 else { return }
    attempt.apply(.acknowledged(count))
    if attempt.machine.task.isOver {
      attempts[task] = nil
      remove(task)
    } else {
      write(attempt)
    }
  }

  private func remove(_ task: Int) {
    do throws(TransferJournalError) {
      try journal.remove(task: task)
    } catch {
      log("task \(task): the record cannot be removed: \(error)")
    }
  }

  /// Writes a record that is in the journal already. A disk that fails costs the change and not the task: the next start
  /// finds an earlier state, which is as true.
  func write(_ attempt: TransferAttempt) {
    attempt.apply(.timed(clock()))
    do throws(TransferJournalError) {
      do throws(TransferJournalError) {
        try journal.write(attempt.record)
      } catch .record {
        // A response or a redirect has parts that no record can hold.
        attempt.apply(.leftOut(until: TransferRecord.bytesMax))
        try journal.write(attempt.record)
      } catch .full {
        attempt.apply(.leftOut(until: 0))
        try journal.write(attempt.record)
      }
      attempt.isWritten = true
    } catch {
      attempt.isWritten = false
      log("task \(attempt.record.task): the record cannot be written: \(error)")
    }
  }

  // MARK: - Attempts

  /// Begins the next attempt of a task that runs, or waits for its time.
  func begin(_ task: Int) {
    guard let attempt = attempts[task] else { return }
    let moment = clock()
    let step = attempt.machine.next(at: moment, among: machines)
    if step == .nothing { return }
    if step == .timeOut { return timedOut(attempt) }
    let left = attempt.machine.secondsLeft(at: moment)
    wake(attempt, in: left)
    switch step {
    case .nothing, .timeOut: break
    case .wait(let seconds, let byWallClock): wake(attempt, in: seconds, byWallClock: byWallClock)
    case .ask:
      // The answer comes later, and leads here again.
      attempt.machine.asked()
      ask(.beginDelayed, task) { [weak self] in self?.begin(task, answer: $0) }
      beginNextDiscretionary()
    case .queue(let isDue): if isDue { beginNextDiscretionary() }
    case .look:
      attempt.machine.looked(isQuiet: conditions().isQuiet)
      if attempt.machine.phase == .looking {
        wake(attempt, in: min(TransferConditions.secondsBetween, left))
      } else {
        load(attempt)
      }
    case .load: load(attempt)
    }
  }

  /// Continues with a task whose earliest begin date has been reached.
  func begin(_ task: Int, answer: TransferAnswer) {
    guard let attempt = attempts[task], attempt.record.state != .completed else { return }
    if case .useNewRequest(let request) = answer {
      attempt.apply(.uploadPoint(attempt.record.uploadPoint.flatMap { Self.point($0, with: request.fields) }))
    }
    switch attempt.machine.answered(answer) {
    case .cancel: return cancel(task, isKeepingContent: false)
    case .tooLarge:
      return end(attempt, URLError.make(.dataLengthExceedsMaximum, "the new request is too large for the journal"))
    case .begin: break
    }
    write(attempt)
    begin(task)
  }

  /// Returns the point of an upload with other fields for its requests, or `nil` if it is damaged.
  private static func point(_ bytes: [UInt8], with fields: FieldList) -> [UInt8]? {
    var data = try? UploadResumeData.decoded(bytes)
    data?.fields = fields
    return data?.encoded()
  }

  private func load(_ attempt: TransferAttempt) {
    attempt.lastRequest = nil
    if attempt.machine.began() { tell(.changed(attempt.record)) }
    let record = attempt.record
    // The journal and other programs of the user can name any URL.
    guard let request = URLRequest(record.currentRequest ?? record.originalRequest),
      request.url.map(Redirection.isOfHTTP) ?? false
    else {
      return end(attempt, URLError.make(.unsupportedURL, "background sessions load http and https only"))
    }
    let inner: URLSessionTask
    switch record.kind {
    case .download:
      let place = place(of: attempt, for: request)
      attempt.place = place
      attempt.apply(.contentFile(isThere: true))
      inner = KeptDownloadTask(session.core, request: request, at: place)
      session.core.register(inner, session)
    case .upload:
      guard let file = record.uploadFile, let present = TransferRecord.UploadFile(atPath: file.path) else {
        return end(attempt, URLError.make(.fileDoesNotExist, "the file to upload is gone", url: request.url))
      }
      guard present == file else {
        return end(
          attempt, URLError.make(.cannotOpenFile, "the file to upload has changed", url: request.url))
      }
      attempt.content = Data()
      inner = upload(attempt, request, file)
    }
    inner.priority = Float(record.priority)
    attempt.inner = inner
    attempt.isPaused = false
    tasks[inner.taskIdentifier] = record.task
    inner.resume()
  }

  /// Makes the task of an upload, which continues an earlier attempt's if the server has said that this is possible.
  private func upload(
    _ attempt: TransferAttempt, _ request: URLRequest, _ file: TransferRecord.UploadFile
  ) -> URLSessionUploadTask {
    let point = attempt.record.uploadPoint.flatMap { try? UploadResumeData.decoded($0) }
    let inner =
      point.map { session.uploadTask(resuming: $0) }
      ?? session.uploadTask(with: request, fromFile: URL(fileURLWithPath: file.path))
    inner.uploadPointHandler = { [weak self, weak inner] point in
      guard let self, let inner else { return }
      queue.async { self.noted(point, of: inner) }
    }
    return inner
  }

  private func noted(_ point: UploadResumeData?, of inner: URLSessionTask) {
    guard let attempt = attempt(of: inner) else { return }
    attempt.apply(.uploadPoint(point?.encoded()))
    write(attempt)
  }

  private func place(of attempt: TransferAttempt, for request: URLRequest) -> DownloadPlace {
    let task = attempt.record.task
    // The file has the bytes up to this point only if the request itself has no range.
    let start = attempt.record.resumePoint.flatMap { $0.offset > 0 && ResumeData.isResumable(request) ? $0 : nil }
    return DownloadPlace(path: contentPath(of: task), start: start) { (response) throws(URLError) in
      guard let delay = TransferRetry.delay(for: response, now: Date().timeIntervalSince1970) else { return }
      throw URLError.make(
        .resourceUnavailable, "the server asks to come back later", more: [AttemptHandler.delayKey: delay])
    } willReplace: { [weak self] in
      await withCheckedContinuation { continuation in
        guard let self else { return continuation.resume(returning: false) }
        self.queue.async { continuation.resume(returning: self.forgetPoint(of: task)) }
      }
    }
  }

  /// Removes the version of a file from its record, before the file gets bytes of another version.
  ///
  /// - Returns: `false` if the record cannot be written. Then the file must keep its bytes.
  private func forgetPoint(of task: Int) -> Bool {
    guard let attempt = attempts[task], attempt.record.resumePoint != nil || !attempt.isWritten else { return true }
    attempt.apply(.resumePoint(nil))
    write(attempt)
    return attempt.isWritten
  }

  /// Writes down how much of a download is safe on the disk.
  func checkpoint(_ attempt: TransferAttempt) {
    guard let place = attempt.place, var point = place.point,
      let file = try? OpenFile(updatingRegular: place.path), let count = try? file.byteCount(), count > 0,
      (try? journal.syncContent(of: attempt.record.task)) != nil, point.total.map({ count <= $0 }) ?? true
    else { return }
    // The file may have been replaced meanwhile, by one with other bytes. Then the point has changed as well.
    guard place.point == point else { return }
    point.offset = count
    attempt.apply(.resumePoint(point))
    write(attempt)
  }

  func stop(_ attempt: TransferAttempt) {
    guard let inner = attempt.inner else { return }
    isOver(attempt, inner)
    attempt.place?.close()
    inner.cancel()
  }

  /// The inner task of an attempt is over. The answers to its questions have no effect any more.
  func isOver(_ attempt: TransferAttempt, _ inner: URLSessionTask) {
    tasks[inner.taskIdentifier] = nil
    attempt.inner = nil
    attempt.machine.stopped()
    dropQuestions(of: attempt)
  }

  private func dropQuestions(of attempt: TransferAttempt) {
    questions = questions.filter { $0.value.task != attempt.record.task }
  }

  /// Ends a task, and notifies the program.
  func end(_ attempt: TransferAttempt, _ failure: (any Error)?) {
    attempt.timer?.cancel()
    attempt.timer = nil
    dropQuestions(of: attempt)
    if let last = attempt.lastRequest { attempt.apply(.reached(last)) }
    let underlying = (failure as? URLError).flatMap { error in
      (error.userInfo[NSUnderlyingErrorKey] as? any Error).map { TransferRecord.Failure($0) }
    }
    let isFileUnused = attempt.machine.ended(failure.map { TransferRecord.Failure($0) }, underlying: underlying)
    write(attempt)
    if isFileUnused {
      // Until this record is on the disk, an earlier one may count the bytes.
      for name in TransferFileName.contents(of: attempt.record.task) { try? FilePaths.remove("\(directory)/\(name)") }
      // A full disk has room now.
      if !attempt.isWritten { write(attempt) }
    }
    tell(.changed(attempt.record))
    beginNextDiscretionary()
  }
}
