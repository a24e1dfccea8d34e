import Foundation
import LarkspurBytes
import LarkspurEngine
import LarkspurHTTP
import LarkspurIO
import LarkspurTransport

/// Download tasks that load their files in segments (``URLSessionConfiguration/segmentedDownloads``): the engine of
/// ``URLSession/download(_:)`` has the requests and the files, and the load shows their progress as the task's.
extension Load {
  /// The files of the task's segments, or `nil` if the task is loaded by one request.
  func segmentsToLoad() -> TaskDownload.Segments? {
    guard let segments = download?.segments, let url = machine.request.url, ResumeData.isResumable(machine.request),
      machine.request.value(forHTTPHeaderField: "Accept-Encoding") == nil,
      (try? LoadTarget.of(url, after: engine.latestTarget)) != nil
    else { return nil }
    return segments
  }

  /// Loads the task's file in segments to its end. After an error that is the answer to another request, such as a status of
  /// 404, the load continues with an ordinary request for the whole: the program gets the content of the error.
  func loadInSegments(_ segments: TaskDownload.Segments) async throws(URLError) {
    guard let download else { throw Self.inconsistency }
    let start = Date()
    let client = SegmentClient(of: task, machine.request, by: session, admitting: download.admit)
    var plan = DownloadPlan(machine.request.url?.absoluteString ?? "", to: segments.path)
    plan.connections = segments.settings.connections
    plan.smallestPiece = segments.settings.smallestPiece
    plan.retry.attemptsMax = Self.segmentAttemptsMax
    // The engine's requests have separate time limits.
    stopIdleTime()
    defer { countIdleTime() }
    var hasTurn = false
    defer { if hasTurn { DownloadHostGate.tasks.leave("") } }
    try await takeTurn(&hasTurn)
    download.beginSegments()
    let run = Download(plan, by: client)
    do throws(URLError) {
      try await follow(run, client, from: segments.point?.offset, &hasTurn)
    } catch {
      run.cancel()
    }
    let result: Result<Download.File, DownloadError>
    do throws(DownloadError) { result = .success(try await run.value) } catch { result = .failure(error) }
    let noted = client.state
    download.segmentsHaveEnded(keeping: run.state, of: noted.response)
    switch result {
    case .success(let file):
      // A file that was complete before the first request has no response that the task could show.
      guard noted.response != nil else { return download.leaveSegments() }
      try await showSegments(of: run.state, total: file.size)
      try download.takeSegments()
      metrics?.collect(
        without: machine.request, noted.response, since: start, bytes: Int64(file.received), .networkLoad)
      enter(.complete)
    case .failure(let error):
      if let interruption { throw interruption }
      if let refusal = noted.refusal { throw refusal }
      switch error.code {
      case .status: download.leaveSegments()
      case .inUse where download.renewSegments(): break
      default: throw URLError(error, url: machine.request.url)
      }
    }
  }

  /// Maximum number of failures in a row without a byte. A task whose server is away must not fail much later than others.
  private static let segmentAttemptsMax = 4
  private static let segmentsPhase = "while the file was loaded in segments"

  /// Waits until few enough tasks load their files in segments.
  private func takeTurn(_ hasTurn: inout Bool) async throws(URLError) {
    let waiter = OneShot<Void>()
    try await waiting(cancellingBy: { waiter.cancel() }, timed: "while waiting for other downloads") {
      hasTurn = await DownloadHostGate.tasks.enter("", waiter)
    }
  }

  /// Shows the progress of a download as the task's, until the download ends.
  ///
  /// - Parameter kept: The number of bytes that the disk has according to resume data.
  private func follow(
    _ run: Download, _ client: SegmentClient, from kept: Int?, _ hasTurn: inout Bool
  ) async throws(URLError) {
    var states = run.states.makeAsyncIterator()
    var isShown = false
    while let state = try await waiting(
      cancellingBy: { run.cancel() }, timed: Self.segmentsPhase, { await states.next() })
    {
      let noted = client.state
      if !isShown, let response = noted.response {
        isShown = true
        if let request = noted.currentRequest { task.show { $0.currentRequest = request } }
        await begin(response, total: state.total, continuedAt: noted.continuedAt.map { kept ?? $0 })
      }
      if isShown { try await showSegments(of: state, total: state.total) }
      guard isHalted else { continue }
      run.pause()
      DownloadHostGate.tasks.leave("")
      hasTurn = false
      try await passGate()
      try await takeTurn(&hasTurn)
      run.resume()
    }
  }

  /// - Parameter offset: The number of bytes that an earlier download has left, if this one continues it.
  private func begin(_ response: HTTPURLResponse, total: Int?, continuedAt offset: Int?) async {
    let expected = total.map(Int64.init) ?? NSURLSessionTransferSizeUnknown
    let response = offset == nil ? response.ofWhole(total) : response
    show(response, length: expected)
    perCallDelegate?.notify(of: response)
    guard let offset = offset.map(Int64.init) else { return }
    task.show { $0.bytesReceived = offset }
    task.updateProgress()
    guard case .delegate = output, let task = task as? URLSessionDownloadTask else { return }
    await notifyDelegate { session, delegate in
      guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
      delegate.urlSession(
        session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: expected)
      return true
    }
  }

  private func showSegments(of state: Download.State, total: Int?) async throws(URLError) {
    let received = Int64(state.received)
    let earlier = task.read { details in
      details.show { shown in
        if let total { shown.bytesExpectedToReceive = Int64(total) }
        // The bytes of another version count no more.
        shown.bytesReceived = min(shown.bytesReceived, received)
        return shown.bytesReceived
      }
    }
    content.pendingCount = Int(received - earlier)
    if content.pendingCount > 0 { try await handOverTaken() }
  }
}

extension URLError {
  /// Creates the error of a task whose file could not be loaded in segments.
  fileprivate init(_ error: DownloadError, url: URL?) {
    switch error.code {
    case .invalidPlan: self.init(.optionInvalid("segmentedDownloads", error.reason), url: url)
    case .requestFailed where error.underlying is URLError: self = error.underlying as? URLError ?? .make(.unknown)
    case .requestFailed: self = .make(.networkConnectionLost, error.reason, url: url)
    case .cancelled: self = .make(.cancelled, error.reason, url: url)
    case .tooSlow: self = .make(.timedOut, error.reason, url: url)
    case .inUse: self = .make(.resourceUnavailable, error.reason, url: url)
    case .diskFull, .disk: self = .make(.cannotWriteToFile, error.description, url: url)
    case .status, .notResumable, .size, .changing, .badResponse, .checksum:
      self = .make(.badServerResponse, error.reason, url: url)
    }
  }
}
