import Dispatch
import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransfers
import Synchronization

extension BackgroundSession {
  /// Makes the record of a task that has been resumed for the first time.
  static func record(of task: URLSessionTask, in core: SessionCore) throws(URLError) -> TransferRecord {
    if case .refused(let refusal)? = (task as? URLSessionDownloadTask)?.decodedResumeData { throw URLError(refusal) }
    if case .failure(let refusal)? = (task as? ResumedUploadTask)?.resumeData { throw URLError(refusal) }
    guard let identifier = core.configuration.identifier, let request = task.originalRequest else {
      throw URLError.make(.badURL, "the task has no request")
    }
    var file: TransferRecord.UploadFile?
    if case .file(let url) = task.source {
      file = TransferRecord.UploadFile(atPath: url.path)
      guard url.isFileURL, file != nil else {
        throw URLError.make(.fileDoesNotExist, "there is no file \(url.path)", url: request.url)
      }
    }
    let moment = TransferMoment.now
    var record = TransferRecord(
      task: task.taskIdentifier, session: identifier, kind: file == nil ? .download : .upload,
      request: try TransferRequest(request, isUpload: file != nil), uploadFile: file,
      createdSeconds: moment.wallSeconds)
    record.adjust(to: moment)
    record.state = .running
    record.isDiscretionary = core.settings.isDiscretionary
    record.take(TransferProperties(task))
    if let file { record.counts.expectedToSend = Int64(file.identity.size) }
    record.earliestBeginSeconds = task.earliestBeginDate?.timeIntervalSince1970
    if core.handlesCookies(of: request, isRedirected: false), let storage = core.cookieStorage {
      record.cookies = TransferCookies.bytes(for: request, of: storage)
    }
    if case .success(let data)? = (task as? ResumedUploadTask)?.resumeData { record.uploadPoint = data.encoded() }
    guard record.fits(TransferRecord.newBytesMax) else {
      throw URLError.make(
        .dataLengthExceedsMaximum, "the request of a background task may have \(TransferRecord.newBytesMax) bytes",
        url: request.url)
    }
    return record
  }

  /// Moves the file of a download that continues an earlier one to the journal, for a runner that is about to get the
  /// record. The journal's next owner removes files without a record.
  static func moveContent(of task: URLSessionTask, into record: inout TransferRecord, to path: String) {
    guard case .point(let data, _)? = (task as? URLSessionDownloadTask)?.decodedResumeData else { return }
    guard hasMovedOut(data, to: path) || moveOut(data, to: path) else { return }
    record.resumePoint = data.point
    record.hasContentFile = true
  }

  /// Whether the file of resume data has been moved for a service that was lost before it had the task.
  private static func hasMovedOut(_ data: ResumeData, to path: String) -> Bool {
    (try? OpenFile(readingRegular: path).byteCount()) == data.point.offset
  }

  /// Moves the file of resume data.
  ///
  /// - Returns: `false` if there is none with as many bytes as the resume data says.
  private static func moveOut(_ data: ResumeData, to path: String) -> Bool {
    let files = PartialFiles.standard
    guard files.open(data) != nil else { return false }
    if files.moveOut(data, to: URL(fileURLWithPath: path)) { return true }
    // The directory of partial files may be on another file system.
    let source = files.path + "/" + data.fileName
    guard (try? FileManager.default.copyItem(atPath: source, toPath: path)) != nil else { return false }
    files.remove(data)
    return true
  }

  /// Makes the task of a record.
  ///
  /// - Returns: `nil` if the URL of the record is not valid.
  static func task(of record: TransferRecord, _ core: SessionCore) -> URLSessionTask? {
    guard let request = URLRequest(record.originalRequest) else { return nil }
    let task: URLSessionTask
    switch record.kind {
    case .download:
      task = URLSessionDownloadTask(core, request: request, output: .delegate, identifier: record.task)
    case .upload:
      let file = URL(fileURLWithPath: record.uploadFile?.path ?? "/")
      task = URLSessionUploadTask(
        core, request: request, source: .file(file), output: .delegate, identifier: record.task)
    }
    task.read { details in
      details.restore(record)
      details.show { $0.take(record) }
    }
    return task
  }

  /// The data from which another task can continue one that has failed, or `nil`. Takes the file of a download.
  static func resumeData(of record: TransferRecord, _ path: String) -> Data? {
    if let point = record.uploadPoint {
      return (try? UploadResumeData.decoded(point)).flatMap { SignedUploadData.encode($0) }
    }
    guard let point = record.resumePoint, let request = URLRequest(record.originalRequest),
      let file = try? DownloadFile(keptAt: path), (try? file.count()) ?? 0 >= point.offset,
      (try? file.cut(toBytes: point.offset)) != nil
    else { return nil }
    if let data = PartialFiles.standard.keep(file, of: request, at: point) { return data }
    // The directory of partial files may be on another file system.
    guard let copy = try? DownloadFile(), let content = try? OpenFile(readingRegular: path),
      (try? copy.file.write(contentsOf: content)) != nil
    else { return nil }
    return PartialFiles.standard.keep(copy, of: request, at: point)
  }
}

extension URLSessionTask.Details {
  /// Takes the state of a record of an earlier process.
  mutating func restore(_ record: TransferRecord) {
    hasStarted = true
    suspensions = record.state == .suspended ? 1 : 0
    state = record.state == .suspended ? .suspended : .running
    description = record.taskDescription
    priority = Float(record.priority)
    earliestBeginDate = record.earliestBeginSeconds.map { Date(timeIntervalSince1970: $0) }
    clientExpectsToSend = record.counts.clientExpectsToSend
    clientExpectsToReceive = record.counts.clientExpectsToReceive
  }
}

extension TransferProperties {
  init(_ task: URLSessionTask) {
    let (description, priority, toSend, toReceive) = task.read {
      ($0.description, $0.priority, $0.clientExpectsToSend, $0.clientExpectsToReceive)
    }
    self.init(
      description: description.map { TransferRecord.cut($0, toBytes: TransferRecord.descriptionBytesMax) },
      priority: Double(priority), clientExpectsToSend: max(toSend, -1),
      clientExpectsToReceive: max(toReceive, -1))
  }
}

extension DownloadFile {
  /// Opens the file of a background download, which stays when this object goes.
  convenience init(keptAt path: String) throws {
    self.init(
      URL(fileURLWithPath: path), continuing: try OpenFile(updatingRegular: path), isOurs: false)
  }
}

/// The search for the runner.
extension BackgroundSession {
  /// Searches for the first runner, on a dedicated thread: a service that was stopped by a signal, or a disk that hangs,
  /// must not delay the thread that makes the session.
  ///
  /// - Parameter patience: The time for which the calling thread waits for the outcome.
  /// - Returns: The state after that.
  func start(_ session: URLSession, patience: DispatchTimeInterval) -> SessionLinkMachine.State {
    ExitHook.register(self)
    state.withLock { $0.session = session }
    do throws(Errno) {
      try SystemThread(name: "transfers-open") { [self] in connect() }.detach()
    } catch {
      failed(.unavailable(reason: "the program has no thread left: \(error)"), hasEarlierSession: false)
    }
    let isOpen = DispatchSemaphore(value: 0)
    whenOpened { isOpen.signal() }
    _ = isOpen.wait(timeout: .now() + patience)
    return state.withLock { $0.machine.state }
  }

  func report(after time: Duration, _ fact: @escaping @Sendable (inout State) -> Void) {
    let (seconds, attoseconds) = time.components
    let delay = Double(seconds) + Double(attoseconds) * 1e-18
    DispatchQueue.global().asyncAfter(deadline: .now() + delay) { [weak self] in
      self?.report(fact)
    }
  }

  func connect() {
    // An earlier session releases its identifier first, and then its mark. So the marks are counted before the attempt.
    let ownMarks = state.withLock { $0.machine.isEnding } ? 1 : 0
    let hasEarlierSession = EndingSessions.count(directory) > ownMarks
    do throws(TransferLinkError) {
      let link = try BackgroundLink.open(core.configuration, in: directory)
      for record in link.records { core.reserve(record.task) }
      report { state in
        state.found = link
        state.machine.attached(link.records, into: &state.actions)
      }
    } catch {
      failed(error, hasEarlierSession: hasEarlierSession)
    }
  }

  private func failed(_ error: TransferLinkError, hasEarlierSession: Bool) {
    if !hasEarlierSession {
      BackgroundLink.log("background session \"\(core.configuration.identifier ?? "")\": \(error)")
    }
    report { $0.machine.failed(error, hasEarlierSession: hasEarlierSession, into: &$0.actions) }
  }

  /// Makes the task of a record of an earlier process.
  func adopt(_ record: TransferRecord) {
    let session = state.withLock { $0.session }
    // A URL that this version cannot parse: the task can be neither shown nor loaded.
    guard let session, let task = Self.task(of: record, core) else {
      return report { $0.machine.rejected(record.task, isReadable: session == nil, into: &$0.actions) }
    }
    core.adopt(task, session)
    state.withLock { $0.tasks[record.task] = task }
  }
}
