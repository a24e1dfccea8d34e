import Foundation
import LarkspurBytes
import LarkspurTransport
import Synchronization

extension Load {
  /// Whether the task has a delegate, its own or the session's. A task may get a delegate at any time.
  var hasDelegate: Bool {
    guard let owner = currentTask?.owner else { return false }
    return owner.isKnown && (core.hasTaskDelegate || owner.read { $0.delegate != nil })
  }

  /// Whether to call a delegate method. Only a `URLSessionSelectiveDelegate` does without some.
  func needsCall(_ call: URLSessionDelegateCall) -> Bool {
    guard let selective else { return true }
    return task.read { $0.delegate != nil } || selective.urlSession(session, wants: call, for: task)
  }
}

/// The delegate queue of a load: the order of its calls, and those that have not returned yet. It belongs to the loop.
///
/// Calls of one task come one after another, also on a queue that runs several operations at once.
final class DelegateCalls {
  /// Calls a delegate.
  ///
  /// - Returns: Whether the delegate is of the kind that can be called.
  typealias Call = @Sendable (URLSession, any URLSessionTaskDelegate) -> Bool

  private let queue: DelegateQueue
  private let loop: ClientLoop
  private let order = CallOrder()
  /// The last call on a queue that runs several operations at once.
  private var pendingNotification: Task<Bool, Never>?
  /// Whether anything has been dispatched to the delegate queue.
  private(set) var hasDispatched = false

  init(on queue: DelegateQueue, _ loop: ClientLoop) {
    self.queue = queue
    self.loop = loop
  }

  /// Whether a call that is not awaited may not have returned yet.
  var isPending: Bool { pendingNotification != nil }

  /// Waits until the calls that are not awaited have returned.
  func waitForPending() async {
    while let notification = pendingNotification { await waitFor(notification) }
  }

  /// Waits until a call has returned. A call that is dispatched meanwhile follows it.
  private func waitFor(_ notification: Task<Bool, Never>) async {
    _ = await notification.value
    if pendingNotification == notification { pendingNotification = nil }
  }

  /// Makes a call after those before it, and returns when it has returned.
  ///
  /// - Parameter isOften: Whether it is one of many calls.
  func run(isOften: Bool = false, _ call: @escaping @Sendable () -> Void) async {
    hasDispatched = true
    await waitForPending()
    guard queue.isConcurrent else {
      await queue.run(call, isOften: isOften, in: order)
      return
    }
    let running = Task(executorPreference: loop) { @concurrent [queue] in await queue.run(call) }
    pendingNotification = running
    await waitFor(running)
  }

  /// Runs `work` on the delegate queue, without waiting: for calls that have no influence on the task.
  ///
  /// - Parameters:
  ///   - isOften: Whether the call is one of many.
  ///   - dropped: Called, on any thread, if the program cancels the operation of `work`.
  func dispatch(
    isOften: Bool = true, dropped: @escaping @Sendable () -> Void = {}, _ work: @escaping @Sendable () -> Void
  ) {
    hasDispatched = true
    guard queue.isConcurrent else { return queue.async(work, isOften: isOften, in: order, otherwise: dropped) }
    // On such a queue only a call that has returned is sure to precede this one.
    let before = pendingNotification
    pendingNotification = Task(executorPreference: loop) { @concurrent [queue] in
      _ = await before?.value
      let isMade = await queue.run(work)
      if !isMade { dropped() }
      return isMade
    }
  }

  /// Calls a completion handler, which must not be lost: if the program cancels its operation, another operation
  /// calls it.
  func insist(_ handler: @escaping @Sendable () -> Void) {
    dispatch(isOften: false, dropped: { [queue] in queue.insist(handler) }, handler)
  }

  /// Makes a call, on the delegate queue.
  static func make(_ call: Call, for task: URLSessionTask, of session: URLSession, _ core: SessionCore) {
    let task = task.owner
    if let own = task.delegate, task.methodProbe.isImplemented(by: own, { call(session, own) }) { return }
    if let delegate = core.taskDelegate { _ = call(session, delegate) }
  }
}

// MARK: - Notifications

extension Load {
  /// Calls the task's own delegate, or the session's if that one does not implement the method, and returns when the
  /// call has returned.
  ///
  /// - Parameter isOften: Whether it is one of many calls.
  func notifyDelegate(isOften: Bool = false, _ call: @escaping DelegateCalls.Call) async {
    guard hasDelegate else { return }
    let (task, session, core) = (task, session, core)
    await calls.run(isOften: isOften) { DelegateCalls.make(call, for: task, of: session, core) }
  }

  /// Calls the delegate as `notifyDelegate` does, without waiting.
  func postToDelegate(_ call: @escaping @Sendable (URLSession, URLSessionTask, any URLSessionTaskDelegate) -> Void) {
    let (task, session, core) = (task, session, core)
    calls.dispatch {
      DelegateCalls.make(
        { session, delegate in
          call(session, task, delegate)
          return true
        }, for: task, of: session, core)
    }
  }

  /// Notifies of content, as `notifyDelegate` does, unless the task has been cancelled before the call's turn: the
  /// object that the delegate works for may be gone by then.
  func notifyDelegateOfContent(_ call: @escaping DelegateCalls.Call) async throws(URLError) {
    let task = task
    await notifyDelegate(isOften: true) { session, delegate in task.state == .canceling || call(session, delegate) }
    if task.state == .canceling { try await awaitInterruption() }
  }

  // MARK: - Questions

  /// Asks the task's own delegate, or the session's if that one does not implement the method, and waits for the
  /// answer. The delegate of a cancelled task is not asked.
  ///
  /// - Parameter standard: The answer if no delegate implements the method.
  func askDelegate<Answer: Sendable>(
    otherwise standard: Answer,
    _ call: @escaping @Sendable (URLSession, any URLSessionTaskDelegate, @escaping @Sendable (Answer) -> Void) -> Bool
  ) async throws(URLError) -> Answer {
    guard hasDelegate else { return standard }
    let (task, owner, session, core) = (task, task.owner, session, core)
    let asked = OneShot<OneShot<Answer>>()
    try await passGate()
    pauseClock()
    await calls.run {
      guard task.state != .canceling else { return }
      let delegates = [owner.delegate, core.taskDelegate]
      for case let delegate? in delegates {
        let question = OneShot<Answer>()
        let hasMethod = owner.methodProbe.isImplemented(by: delegate) {
          call(session, delegate, { question.set($0) })
        }
        if hasMethod { return asked.set(question) }
      }
    }
    resumeClock()
    if task.state == .canceling { try await awaitInterruption() }
    guard let question = asked.value else { return standard }
    let answer = try await waiting(cancellingBy: { question.cancel() }, { await question.get() })
    return answer ?? standard
  }

  /// Waits for the interruption of a task that has been cancelled, so that no other call comes before its end.
  private func awaitInterruption() async throws(URLError) {
    let never = OneShot<Void>()
    _ = try await waiting(cancellingBy: { never.cancel() }, timed: "while cancelling") { await never.get() }
  }

  /// Asks whether a redirection is followed.
  ///
  /// - Returns: The request that is loaded next, or `nil` if the redirecting response is the task's.
  func askDelegate(
    toFollow response: HTTPURLResponse, to next: URLRequest
  ) async throws(URLError) -> URLRequest? {
    let task = task
    // A load that the cache started, which is reported to no delegate, stays with its URL.
    guard task.owner.isKnown else { return nil }
    guard !core.isBackground, needsCall(.redirection) else { return next }
    if isHalted { try await passGate() }
    // If the delegate never answers, the task shows the response when its time would be up, as in FoundationNetworking.
    let timer = startIdleTimer { task.show { $0.response = response } }
    defer { engine.loop.stopTimer(timer) }
    return try await askDelegate(about: response, next, otherwise: next)
  }

  private func askDelegate(
    about response: HTTPURLResponse, _ next: URLRequest, otherwise standard: URLRequest?
  ) async throws(URLError) -> URLRequest? {
    let task = task.owner
    return try await askDelegate(otherwise: standard) { session, delegate, answer in
      delegate.urlSession(
        session, task: task, willPerformHTTPRedirection: response, newRequest: next, completionHandler: answer)
      return true
    }
  }

  /// Asks whether a resumable upload may use an upload resource of another origin: the server sends the file elsewhere,
  /// as by a redirection. Only an answer is an agreement. Without one the upload works as with a server that knows no
  /// resumable uploads, while a redirection that is not followed would leave the program without its response.
  ///
  /// - Returns: The request to the resource, or `nil` if the resource must not be used.
  func askDelegate(_ question: ResumableUpload.Question) async throws(URLError) -> URLRequest? {
    guard !core.isBackground, needsCall(.redirection) else { return nil }
    let task = task as? URLSessionUploadTask
    task?.isAskedForResource.store(true, ordering: .sequentiallyConsistent)
    defer { task?.isAskedForResource.store(false, ordering: .sequentiallyConsistent) }
    return try await askDelegate(about: question.response, question.request, otherwise: nil)
  }
}
