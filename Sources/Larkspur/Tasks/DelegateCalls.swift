import Foundation
import LarkspurBytes
import LarkspurTransport
import Synchronization

extension Transfer {
  /// Whether the task has a delegate, its own or the session's. A task may get a delegate at any time.
  var hasDelegate: Bool {
    guard let currentTask else { return false }
    return currentTask.isKnown && (core.hasTaskDelegate || currentTask.read { $0.delegate != nil })
  }

  /// Whether a delegate method is to be called. Only a `URLSessionSelectiveDelegate` does without some.
  func wants(_ call: URLSessionDelegateCall) -> Bool {
    guard let selective else { return true }
    return task.read { $0.delegate != nil } || selective.urlSession(session, wants: call, for: task)
  }
}

/// A load's calls of its delegates, on the session's delegate queue. It belongs to the loop.
///
/// Calls of one task come one after another, also on a queue that runs several operations at once.
final class DelegateCalls {
  /// Calls a delegate.
  ///
  /// - Returns: Whether the delegate is of the kind that can be called.
  typealias Call = @Sendable (URLSession, any URLSessionTaskDelegate) -> Bool

  private unowned let transfer: Transfer
  private let order = CallOrder()
  /// The last call on a queue that runs several operations at once.
  private var pendingNotification: Task<Bool, Never>?
  /// Whether anything has been dispatched to the delegate queue.
  private(set) var hasDispatched = false

  init(of transfer: Transfer) { self.transfer = transfer }

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

  // MARK: - Notifications

  /// Calls the task's own delegate, or the session's if that one does not implement the method, and returns when the
  /// call has returned.
  ///
  /// - Parameter isOften: Whether it is one of many calls.
  func notify(isOften: Bool = false, _ call: @escaping Call) async {
    guard transfer.hasDelegate else { return }
    hasDispatched = true
    let (task, session, core) = (transfer.task, transfer.session, transfer.core)
    await run(isOften: isOften) { Self.make(call, for: task, of: session, core) }
  }

  /// Makes a call after those before it, and returns when it has returned.
  private func run(isOften: Bool = false, _ call: @escaping @Sendable () -> Void) async {
    let queue = transfer.core.delegateQueue
    await waitForPending()
    guard queue.isConcurrent else {
      await queue.run(call, isOften: isOften, in: order)
      return
    }
    let running = Task(executorPreference: transfer.engine.loop) { @concurrent in await queue.run(call) }
    pendingNotification = running
    await waitFor(running)
  }

  /// Calls the delegate as `notify` does, without waiting.
  func post(_ call: @escaping @Sendable (URLSession, URLSessionTask, any URLSessionTaskDelegate) -> Void) {
    let (task, session, core) = (transfer.task, transfer.session, transfer.core)
    dispatch {
      Self.make(
        { session, delegate in
          call(session, task, delegate)
          return true
        }, for: task, of: session, core)
    }
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
    let queue = transfer.core.delegateQueue
    guard queue.isConcurrent else { return queue.async(work, isOften: isOften, in: order, otherwise: dropped) }
    // On such a queue only a call that has returned is sure to have come before.
    let before = pendingNotification
    pendingNotification = Task(executorPreference: transfer.engine.loop) { @concurrent in
      _ = await before?.value
      let isMade = await queue.run(work)
      if !isMade { dropped() }
      return isMade
    }
  }

  /// Calls a completion handler, which must not be lost: if the program cancels its operation, another one calls it.
  func insist(_ handler: @escaping @Sendable () -> Void) {
    let queue = transfer.core.delegateQueue
    dispatch(isOften: false, dropped: { queue.insist(handler) }, handler)
  }

  /// Notifies of content, as `notify` does, unless the task has been cancelled before the call's turn: the object that
  /// the delegate works for may be gone by then.
  func notifyOfContent(_ call: @escaping Call) async throws(URLError) {
    let task = transfer.task
    await notify(isOften: true) { session, delegate in task.state == .canceling || call(session, delegate) }
    if task.state == .canceling { try await awaitInterruption() }
  }

  /// Makes a call, on the delegate queue.
  static func make(_ call: Call, for task: URLSessionTask, of session: URLSession, _ core: SessionCore) {
    if let own = task.delegate, task.methodProbe.isImplemented(by: own, { call(session, own) }) { return }
    if let delegate = core.taskDelegate { _ = call(session, delegate) }
  }

  // MARK: - Questions

  /// Asks the task's own delegate, or the session's if that one does not implement the method, and waits for the
  /// answer. The delegate of a cancelled task is not asked.
  ///
  /// - Parameter standard: The answer if no delegate implements the method.
  func ask<Answer: Sendable>(
    otherwise standard: Answer,
    _ call: @escaping @Sendable (URLSession, any URLSessionTaskDelegate, @escaping @Sendable (Answer) -> Void) -> Bool
  ) async throws(URLError) -> Answer {
    guard transfer.hasDelegate else { return standard }
    hasDispatched = true
    let (task, session, core) = (transfer.task, transfer.session, transfer.core)
    let asked = OneShot<OneShot<Answer>>()
    try await transfer.passGate()
    transfer.pauseClock()
    await run {
      guard task.state != .canceling else { return }
      let delegates = [task.delegate, core.taskDelegate]
      for case let delegate? in delegates {
        let question = OneShot<Answer>()
        let hasMethod = task.methodProbe.isImplemented(by: delegate) {
          call(session, delegate, { question.set($0) })
        }
        if hasMethod { return asked.set(question) }
      }
    }
    transfer.resumeClock()
    if task.state == .canceling { try await awaitInterruption() }
    guard let question = asked.value else { return standard }
    let answer = try await transfer.waiting(givingUpBy: { question.giveUp() }, { await question.get() })
    return answer ?? standard
  }

  /// Waits for the interruption of a task that has been cancelled, so that no other call comes before its end.
  private func awaitInterruption() async throws(URLError) {
    let never = OneShot<Void>()
    _ = try await transfer.waiting(givingUpBy: { never.giveUp() }, timed: "while cancelling") { await never.get() }
  }

  /// Asks whether a redirection is followed.
  ///
  /// - Returns: The request that is loaded next, or `nil` if the redirecting response is the task's.
  func askRedirection(_ response: HTTPURLResponse, _ next: URLRequest) async throws(URLError) -> URLRequest? {
    let task = transfer.task
    // A load of the cache's own, which is reported to no delegate, stays with its URL.
    guard task.isKnown else { return nil }
    guard !transfer.core.isBackground, transfer.wants(.redirection) else { return next }
    if transfer.isHalted { try await transfer.passGate() }
    // If the delegate never answers, the task shows the response when its time would be up, as in FoundationNetworking.
    let timer = transfer.startIdleTimer { task.show { $0.response = response } }
    defer { transfer.engine.loop.stopTimer(timer) }
    return try await askRedirection(response, next, otherwise: next)
  }

  private func askRedirection(
    _ response: HTTPURLResponse, _ next: URLRequest, otherwise standard: URLRequest?
  ) async throws(URLError) -> URLRequest? {
    let task = transfer.task
    return try await ask(otherwise: standard) { session, delegate, answer in
      delegate.urlSession(
        session, task: task, willPerformHTTPRedirection: response, newRequest: next, completionHandler: answer)
      return true
    }
  }

  /// Asks whether a resumable upload may use an upload resource of another origin: the server sends the file elsewhere,
  /// as by a redirection. Only an answer is an agreement. Without one the upload works as with a server that knows no
  /// resumable uploads, while a redirection that is not followed would leave the program without its response.
  ///
  /// - Parameters:
  ///   - response: The response that names the resource.
  ///   - next: The request to propose.
  /// - Returns: The request to the resource, or `nil` if the resource must not be used.
  func askUploadResource(_ response: HTTPURLResponse, _ next: URLRequest) async throws(URLError) -> URLRequest? {
    guard !transfer.core.isBackground, transfer.wants(.redirection) else { return nil }
    let task = transfer.task as? URLSessionUploadTask
    task?.isAskedForResource.store(true, ordering: .sequentiallyConsistent)
    defer { task?.isAskedForResource.store(false, ordering: .sequentiallyConsistent) }
    return try await askRedirection(response, next, otherwise: nil)
  }
}
