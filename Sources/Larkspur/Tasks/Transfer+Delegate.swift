import Foundation
import LarkspurTransport

/// Calls to the owner.
extension Transfer {
  /// Whether there is anybody to call. A task may get a delegate at any time.
  var hasDelegate: Bool {
    guard let currentTask else { return false }
    return currentTask.isKnown && (core.hasTaskDelegate || currentTask.read { $0.delegate != nil })
  }

  /// Whether a call is to be made. Nobody but a delegate that is asked does without it.
  func wants(_ call: URLSessionDelegateCall) -> Bool {
    guard let selective else { return true }
    return task.read { $0.delegate != nil } || selective.urlSession(session, wants: call, for: task)
  }

  typealias Teller = @Sendable (URLSession, any URLSessionTaskDelegate) -> Bool

  /// Calls the task's own delegate, or the session's if that one has no word, and returns when the call has returned. `call`
  /// returns whether the delegate is of the kind that can be called.
  ///
  /// - Parameter isOften: It is one of many calls.
  func tell(isOften: Bool = false, _ call: @escaping Teller) async {
    guard hasDelegate else { return }
    hasTold = true
    let (task, session, core) = (task, session, core)
    if lastTold != nil { await waitForTold() }
    await core.delegateQueue.run({ Self.call(call, for: task, of: session, core) }, isOften: isOften)
  }

  /// Has `tell` run on the queue, without waiting: for what has no influence on the task. If somebody cancels the call's operation,
  /// `otherwise` is called, on any thread.
  func runLater(otherwise: @escaping @Sendable () -> Void = {}, _ tell: @escaping @Sendable () -> Void) {
    hasTold = true
    let queue = core.delegateQueue
    guard queue.isConcurrent else { return queue.async(tell, isOften: true, otherwise: otherwise) }
    // On such a queue only what has returned is sure to have come before.
    let before = lastTold
    lastTold = Task(executorPreference: engine.loop) { @concurrent in
      await before?.value
      if await !queue.run(tell) { otherwise() }
    }
  }

  /// Calls as `tell` does, without waiting.
  func tellLater(
    _ call: @escaping @Sendable (URLSession, URLSessionTask, any URLSessionTaskDelegate) -> Void
  ) {
    let (task, session, core) = (task, session, core)
    runLater {
      Self.call(
        { session, delegate in
          call(session, task, delegate)
          return true
        }, for: task, of: session, core)
    }
  }

  /// Tells how much of a body of `expected` bytes has left.
  func tellLater(of sentBytes: Untold<SentBytes>, expected: Int64) {
    let (task, session, core) = (task, session, core)
    runLater(otherwise: { sentBytes.callIsLost() }) {
      while let sent = sentBytes.take() {
        Self.call(
          { session, delegate in
            delegate.urlSession(
              session, task: task, didSendBodyData: sent.to - sent.from, totalBytesSent: sent.to,
              totalBytesExpectedToSend: expected)
            return true
          }, for: task, of: session, core)
      }
    }
  }

  func waitForTold() async {
    while let told = lastTold.take() { await told.value }
  }

  static func call(_ call: Teller, for task: URLSessionTask, of session: URLSession, _ core: SessionCore) {
    if let own = task.delegate, task.delegateWord.isGiven(by: own, { call(session, own) }) { return }
    if let delegate = core.taskDelegate { _ = call(session, delegate) }
  }

  /// Tells of content, as `tell` does, unless the task has been cancelled while the call was waiting for its turn: whom the
  /// delegate works for may be gone by then.
  func tellOfContent(_ call: @escaping Teller) async throws(URLError) {
    await tell(isOften: true) { [task] session, delegate in task.state == .canceling || call(session, delegate) }
    if task.state == .canceling { try await endCancelled() }
  }

  /// Somebody has cancelled the task, and this performer is about to hear of it: nothing else may come before.
  private func endCancelled() async throws(URLError) {
    let word = Question<Void>()
    _ = try await waiting(givingUpBy: { word.giveUp() }, timeCounts: true) { await word.wait() }
  }

  /// Asks the task's own delegate, or the session's if that one has no word, and waits for the answer. A task that has been
  /// cancelled asks nobody.
  func ask<Answer: Sendable>(
    otherwise standard: Answer,
    _ call: @escaping @Sendable (URLSession, any URLSessionTaskDelegate, @escaping @Sendable (Answer) -> Void) -> Bool
  ) async throws(URLError) -> Answer {
    guard hasDelegate else { return standard }
    hasTold = true
    let (task, session, core) = (task, session, core)
    let asked = Handover<Question<Answer>>()
    try await passGate()
    pauseClock()
    if lastTold != nil { await waitForTold() }
    await core.delegateQueue.run {
      guard task.state != .canceling else { return }
      let delegates = [task.delegate, core.taskDelegate]
      for case let delegate? in delegates {
        let question = Question<Answer>()
        let hasWord = task.delegateWord.isGiven(by: delegate) {
          call(session, delegate, { question.answer($0) })
        }
        if hasWord { return asked.value = question }
      }
    }
    resumeClock()
    if task.state == .canceling { try await endCancelled() }
    guard let question = asked.value else { return standard }
    let answer = try await waiting(givingUpBy: { question.giveUp() }, { await question.wait() })
    return answer ?? standard
  }

  /// What comes after a redirection.
  func redirection(_ response: HTTPURLResponse, to next: URLRequest) async throws(URLError) -> TaskMachine.Step {
    let step = machine.redirectionAnswered(try await askRedirection(response, next))
    // Whatever was said of credentials was about the request before.
    authentication = nil
    return step
  }

  private func askRedirection(_ response: HTTPURLResponse, _ next: URLRequest) async throws(URLError) -> URLRequest? {
    // What the delegate cannot be asked about does not leave its place.
    guard task.isKnown else { return nil }
    guard !core.isBackground, wants(.redirection) else { return next }
    if isHeldUp { try await passGate() }
    let task = task
    // Who never answers finds it there when the time would be up, as in FoundationNetworking.
    let timer = startIdleTimer { task.show { $0.response = response } }
    defer { engine.loop.stopTimer(timer) }
    return try await ask(otherwise: next) { session, delegate, answer in
      delegate.urlSession(
        session, task: task, willPerformHTTPRedirection: response, newRequest: next, completionHandler: answer)
      return true
    }
  }

  /// A new task goes on in place of the present one, and the delegate hears of it.
  func become(
    _ other: URLSessionTask,
    _ call: @escaping @Sendable (URLSession, any URLSessionDataDelegate, URLSessionTask, URLSessionTask) -> Void
  ) async throws(URLError) {
    let old = task
    // At once: whoever suspends or cancels the old one does so before, and it holds for the new one, or not at all.
    let details = old.read { details in
      defer {
        details.transfer = nil
        details.state = .completed
      }
      return details
    }
    other.read {
      // Who was about to let the old one go on finds it over.
      $0.state = details.isResuming ? .running : details.state
      $0.hasBegun = true
      $0.suspensions = details.suspensions
      $0.adopt(details.shown)
      $0.delegate = details.delegate
      $0.description = details.description
      $0.priority = details.priority
      $0.earliestBeginDate = details.earliestBeginDate
      $0.clientExpectsToSend = details.clientExpectsToSend
      $0.clientExpectsToReceive = details.clientExpectsToReceive
      $0.progress = details.progress
      $0.transfer = self
    }
    if let progress = details.progress { other.isSteered(by: progress) }
    core.replace(old, by: other, of: session)
    continues(as: other)
    if details.isResuming { suspensionChanged(of: other) }
    await tell { session, delegate in
      guard let delegate = delegate as? any URLSessionDataDelegate else { return false }
      // It is of the old one that a delegate without the method says so.
      return old.delegateWord.isGiven(by: delegate) {
        call(session, delegate, old, other)
        return true
      }
    }
  }

  // MARK: - The end

  /// Completes the task, and tells its owner: the last thing that happens to a load.
  func finish(_ failure: (any Error)?, _ metrics: URLSessionTaskMetrics?) {
    // The request's observer refers to the load.
    load = nil
    guard let task = currentTask ?? core.end(self) else {
      self.failure = failure
      return resultHasCome()
    }
    if currentTask == nil { showContent(by: task) }
    var failure = failure ?? (hasGivenFile ? nil : cancellation)
    var kept: Data?
    if let error = failure as? URLError, let data = resumeData(after: error) {
      kept = data
      failure = error.adding(resumeData: data)
    }
    challenges?.isOver(task)
    failure = task.complete(failure, isGiven: hasGivenFile)
    if case .dataResult = output {
      self.failure = failure
      core.ended(task)
      return resultHasCome()
    }
    let ending = TaskEnding(task, self, core, failure, content)
    ending.resumeData = kept
    ending.metrics = metrics
    ending.file = file
    file = nil
    if case .delegate = output, !hasTold, !wants(.endOnQueue) { ending.isForAnyThread = true }
    if case .fileResult = output, isCallersOwn { return ending.complete() }
    engine.loop.completeAfterTick(ending)
  }

  /// Why the task is to end, if it has been cancelled and the load has not heard of it yet.
  var cancellation: URLError? {
    currentTask?.state == .canceling ? .make(.cancelled, "cancelled").failing(at: machine.request.url) : nil
  }

  /// A download's delegate takes the file, or loses it.
  func giveFile() async {
    guard case .delegate = output, let file, let download = task as? URLSessionDownloadTask else { return }
    hasGivenFile = true
    await tell { session, delegate in
      guard let delegate = delegate as? any URLSessionDownloadDelegate else { return false }
      delegate.urlSession(session, downloadTask: download, didFinishDownloadingTo: file.url)
      return true
    }
  }
}
