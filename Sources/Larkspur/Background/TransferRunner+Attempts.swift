import Dispatch
import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTransfers

/// The calls of the inner session about the attempts, and the questions about them to the program. All runs on the runner's
/// queue.
extension TransferRunner {
  // MARK: - Questions

  /// Asks the program, and passes the answer on, on the queue.
  func ask(
    _ question: TransferQuestion, _ task: Int, _ answer: @escaping @Sendable (TransferAnswer) -> Void
  ) {
    lastQuestion += 1
    questions[lastQuestion] = (task, answer)
    report(.question(lastQuestion, task: task, question))
  }

  /// Passes a challenge to the program: to `challengeHandler`, or as a question.
  func challenged(
    _ inner: URLSessionTask, _ challenge: URLAuthenticationChallenge,
    _ answer: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
  ) {
    guard let attempt = attempt(of: inner) else { return answer(.cancelAuthenticationChallenge, nil) }
    if let challengeHandler { return challengeHandler(attempt.record.task, challenge, answer) }
    // By default a server could be trusted that the delegate does not trust.
    guard let question = TransferQuestion(challenge) else { return answer(.cancelAuthenticationChallenge, nil) }
    ask(question, attempt.record.task) { reply in
      let (disposition, credential) = reply.reply(to: challenge)
      answer(disposition, credential)
    }
  }

  // MARK: - Calls of the inner session, on the queue

  func attempt(of inner: URLSessionTask) -> TransferAttempt? {
    guard let attempt = tasks[inner.taskIdentifier].flatMap({ attempts[$0] }), attempt.inner === inner else {
      return nil
    }
    return attempt
  }

  func progressed(_ inner: URLSessionTask) {
    guard let attempt = attempt(of: inner) else { return }
    attempt.readCounts(of: inner)
    if !attempt.isPaused { pace(attempt) }
    let (task, now) = (attempt.record.task, DispatchTime.now().uptimeNanoseconds)
    if now >= attempt.nextProgress {
      attempt.nextProgress = now + UInt64(Self.progressSeconds * 1e9)
      report(.progress(task: task, attempt.record.counts))
    } else if !attempt.isProgressDue {
      // No more bytes may come for a long time.
      attempt.isProgressDue = true
      queue.asyncAfter(deadline: .now() + Self.progressSeconds) { [weak self] in self?.progressIsDue(task) }
    }
    guard attempt.record.kind == .download, !attempt.isCheckpointDue else { return }
    attempt.isCheckpointDue = true
    queue.asyncAfter(deadline: .now() + Self.checkpointSeconds) { [weak self] in self?.checkpointIsDue(task) }
  }

  /// Pauses a discretionary transfer while it is ahead of its rate.
  private func pace(_ attempt: TransferAttempt) {
    guard attempt.record.isDiscretionary, attempt.record.state == .running, let inner = attempt.inner else { return }
    let counts = attempt.record.counts
    let (bytes, _) = counts.sent.addingReportingOverflow(counts.received)
    let pause = attempt.pace.pause(
      bytes: bytes, at: Deadline(nanoseconds: DispatchTime.now().uptimeNanoseconds), isYielding: traffic.isBusy,
      bytesPerSecond: pacedBytesPerSecond)
    guard let pause else {
      if attempt.isPaused { inner.resume() }
      attempt.isPaused = false
      return
    }
    // A pause is one suspension, however often it is prolonged.
    if !attempt.isPaused { inner.suspend() }
    attempt.isPaused = true
    attempt.pauses &+= 1
    let (task, pauses) = (attempt.record.task, attempt.pauses)
    queue.asyncAfter(deadline: .now() + pause.interval) { [weak self, weak inner] in
      guard let self, let inner, let attempt = attempts[task], attempt.inner === inner, attempt.isPaused,
        attempt.pauses == pauses
      else { return }
      pace(attempt)
    }
  }

  private func progressIsDue(_ task: Int) {
    guard let attempt = attempts[task] else { return }
    attempt.isProgressDue = false
    if attempt.inner != nil { report(.progress(task: task, attempt.record.counts)) }
  }

  private func checkpointIsDue(_ task: Int) {
    guard let attempt = attempts[task] else { return }
    attempt.isCheckpointDue = false
    if attempt.inner != nil { checkpoint(attempt) }
  }

  func resumed(_ inner: URLSessionTask, at offset: Int64, expecting expected: Int64) {
    guard let attempt = attempt(of: inner), attempt.reportsResumption else { return }
    attempt.reportsResumption = false
    attempt.apply(.continued(offset: offset, expected: expected))
    report(.changed(attempt.record))
  }

  func received(_ data: Data, of inner: URLSessionTask) {
    guard let attempt = attempt(of: inner) else { return }
    attempt.content.append(data)
    guard attempt.content.count > Self.uploadContentMax else { return }
    stop(attempt)
    end(
      attempt,
      URLError.make(.dataLengthExceedsMaximum, "the response to an upload has more than 1 MiB of content"))
  }

  func redirected(_ inner: URLSessionTask, to request: URLRequest) {
    guard let attempt = attempt(of: inner), let url = request.url?.absoluteString else { return }
    attempt.apply(.redirected(url: url))
  }

  func completed(_ inner: URLSessionTask, _ failure: (any Error)?) {
    guard let attempt = attempt(of: inner) else { return }
    isOver(attempt, inner)
    attempt.readCounts(of: inner)
    if !attempt.record.redirects.isEmpty, let request = inner.read({ $0.shown.currentRequest }) {
      attempt.lastRequest = try? TransferRequest(request, isUpload: attempt.record.kind == .upload)
    }
    guard let failure else { return succeeded(attempt, inner) }
    let error = failure as? URLError ?? URLError.make(.unknown)
    if let place = attempt.place, place.point == nil || error.isOfFullDisk {
      // The bytes in the file may be any of the resource, or the disk needs their room.
      attempt.apply(.resumePoint(nil))
    } else {
      checkpoint(attempt)
    }
    // With a point, the server had all of the upload, and only its response is lost.
    let startsOver = error.isOfLostUpload && attempt.record.uploadPoint == nil
    guard startsOver || TransferRetry.mayHelp(after: error) else { return end(attempt, failure) }
    retry(attempt, in: error.userInfo[AttemptHandler.delayKey] as? Double)
  }

  private func succeeded(_ attempt: TransferAttempt, _ inner: URLSessionTask) {
    switch attempt.record.kind {
    case .download:
      attempt.apply(.loaded(TransferResponse(inner.response)))
      attempt.apply(.contentFile(isThere: true))
      // The record that calls the file complete must not come to the disk before the file.
      do throws(Errno) {
        try journal.syncContent(of: attempt.record.task)
      } catch {
        return end(attempt, URLError.make(.cannotWriteToFile, "the file is gone, or the disk fails: \(error)"))
      }
    case .upload:
      if let response = inner.response as? HTTPURLResponse,
        let delay = TransferRetry.delay(for: response, now: Date().timeIntervalSince1970)
      {
        attempt.apply(.loaded(nil))
        return retry(attempt, in: delay)
      }
      attempt.apply(.loaded(TransferResponse(inner.response)))
      do {
        try store(attempt.content, of: attempt)
      } catch {
        return end(attempt, URLError.make(.cannotWriteToFile, "the response's content: \(error)"))
      }
    }
    end(attempt, nil)
  }

  /// Stores the content of an upload's response.
  private func store(_ content: Data, of attempt: TransferAttempt) throws(Errno) {
    attempt.content = Data()
    attempt.apply(.contentFile(isThere: !content.isEmpty))
    if !content.isEmpty { try journal.storeContent(Array(content), of: attempt.record.task) }
  }

  private func retry(_ attempt: TransferAttempt, in delay: Double?) {
    attempt.machine.failed(delay: delay, fraction: .random(in: 0...1), at: clock())
    write(attempt)
    report(.changed(attempt.record))
    begin(attempt.record.task)
    beginNextDiscretionary()
  }
}

/// The times of the tasks: when an attempt begins, and when the time for the resource is over. All runs on the runner's
/// queue.
extension TransferRunner {
  func timedOut(_ attempt: TransferAttempt) {
    end(attempt, URLError.make(.timedOut, "the time for the resource is over"))
  }

  /// Returns to a task after a time in seconds: to begin an attempt, or to end one whose time is over.
  ///
  /// - Parameter byWallClock: Whether the wait is for a time of the wall clock, and ends with it when the clock is set.
  func wake(_ attempt: TransferAttempt, in seconds: Double, byWallClock: Bool = false) {
    let wait = min(max(seconds, 0), Self.waitMax)
    let timer = attempt.timer ?? makeTimer(of: attempt)
    if byWallClock { timer.schedule(wallDeadline: .now() + wait) } else { timer.schedule(deadline: .now() + wait) }
  }

  /// A source, because a delayed block stays in memory until its time, even if it is cancelled.
  private func makeTimer(of attempt: TransferAttempt) -> any DispatchSourceTimer {
    let (task, timer) = (attempt.record.task, DispatchSource.makeTimerSource(queue: queue))
    timer.setEventHandler { [weak self] in self?.timeHasCome(task) }
    timer.activate()
    attempt.timer = timer
    return timer
  }

  /// Maximum wait in seconds. Longer waits are waited for in parts, because the timers stand still while the machine sleeps.
  private static let waitMax = 3600.0

  private func timeHasCome(_ task: Int) {
    guard let attempt = attempts[task], attempt.record.state == .running else { return }
    // A later boot knows only the wall clock.
    if attempt.record.hasOtherClock(at: clock()) { write(attempt) }
    guard attempt.inner != nil else { return begin(task) }
    let left = attempt.machine.secondsLeft(at: clock())
    guard left <= 0 else { return wake(attempt, in: left) }
    stop(attempt)
    timedOut(attempt)
  }

  /// Begins the next discretionary task soon. Not at once: a thousand tasks whose time is over would end one inside the
  /// other.
  func beginNextDiscretionary() {
    queue.async { [weak self] in
      guard let self, let next = TransferAttemptMachine.firstDiscretionary(at: clock(), among: machines) else { return }
      begin(next.record.task)
    }
  }
}
