import Foundation
import LarkspurBytes
import LarkspurHTTP
import LarkspurTLS
import LarkspurTransport
import Synchronization

/// Routes the challenges of new connections to one origin: to the session's delegate, or, if it does not implement the
/// method for connections, to the method for tasks of the decider and then of the session's delegate.
///
/// A connection belongs to no task. The methods for tasks are called with the latest task that has requested a
/// connection and is not over; if there is none, the challenge waits for the next one. The tasks of one router have one
/// decider: a task's delegate never answers for the tasks of another delegate.
final class ChallengeRouter: Sendable {
  /// The session's core. Its engine owns this router by way of a route; the core ends the cycle by releasing the engine
  /// when the session is over.
  private let core: SessionCore
  /// Whether there is a delegate to call.
  let asksDelegate: Bool
  private let hasDecider: Bool
  let state: Mutex<State>

  struct State {
    /// The decider. Its tasks keep it alive.
    weak var decider: (any URLSessionTaskDelegate)?
    /// The tasks that have requested a connection and are not over.
    var tasks: [ObjectIdentifier: URLSessionTask] = [:]
    /// The challenges that wait for a task.
    var waiting: [OneShot<Void>] = []
    /// The questions that delegates have not answered, with the tasks that they are about.
    var questions: [(task: ObjectIdentifier, question: OneShot<SessionCredentials.Reply>)] = []

    /// The latest-made task that is not over. A task that became a download stays in `tasks` although it is over.
    var latest: URLSessionTask? {
      tasks.values.lazy.filter { !$0.isOver }.max { $0.taskIdentifier < $1.taskIdentifier }
    }
  }

  /// - Parameter decider: The tasks' own delegate, or `nil` if the tasks have no delegate that could answer.
  init(_ core: SessionCore, decider: (any URLSessionTaskDelegate)?) {
    self.core = core
    hasDecider = decider != nil
    asksDelegate = core.hasDelegate || hasDecider
    state = Mutex(State(decider: decider))
  }

  /// The delegate that decides for its tasks, or `nil` if there is none or it is gone.
  var decider: (any URLSessionTaskDelegate)? { hasDecider ? state.withLock { $0.decider } : nil }

  /// Adds a task that requests a connection, and resumes the challenges that wait for a task.
  func attach(_ task: URLSessionTask) {
    let waiting = state.withLock { state in
      state.tasks[ObjectIdentifier(task)] = task
      guard !state.waiting.isEmpty else { return [OneShot<Void>]() }
      defer { state.waiting = [] }
      return state.waiting
    }
    for question in waiting { question.set(()) }
  }

  /// Releases a task that is over. A task that continued the load of another task is not in `tasks`: then all
  /// tasks that are over are released. Their questions are asked about the tasks that still wait for the connection: the
  /// delegate may never answer for a task that was cancelled.
  func detach(_ task: URLSessionTask) {
    let (over, questions) = state.withLock { state in
      let task = state.tasks[ObjectIdentifier(task)]
      let over = task.map { [$0] } ?? state.tasks.values.filter(\.isOver)
      for task in over { state.tasks[ObjectIdentifier(task)] = nil }
      return (over, state.questions.filter { state.tasks[$0.task] == nil }.map(\.question))
    }
    for question in questions { question.giveUp() }
    // Releasing a task may run code that calls back: not while the lock is held.
    withExtendedLifetime(over) {}
  }

  // MARK: - Requests of the transport. All but `tunnelCredentials` come on threads other than the loop's.

  /// Asks whether to trust a server: the origin, or a proxy.
  func decide(_ trust: LarkspurTLS.Trust, port: Int) async -> TrustDecision {
    let challenge = TrustChallenge.challenge(trust: trust, port: port)
    return TrustChallenge.decision(await ask(challenge), to: challenge)
  }

  /// Asks for the certificate to send to a server that requests one: the configuration's closure, and then the delegate.
  /// Default handling sends the storage's default identity.
  func identity(
    forHost host: String, port: Int, issuers: [DistinguishedName]
  ) async -> LarkspurTLS.ClientIdentity? {
    if let provide = core.provideIdentity, let identity = await provide(host, port) { return identity.inner }
    let space = URLProtectionSpace(clientCertificateFor: host, port: port, issuers: issuers.map { Data($0.der) })
    let task = state.withLock { $0.latest }
    let stored = core.credentialStorage?.proposedCredential(for: space, task: task)
    let challenge = TrustChallenge.challenge(
      clientCertificateFor: space, proposed: stored?.identity == nil ? nil : stored)
    return TrustChallenge.identity(await ask(challenge), to: challenge)
  }

  /// The source of credentials for a tunnel.
  var tunnelCredentials: SessionCredentials {
    SessionCredentials(
      url: nil, memory: core.memory, storage: core.credentialStorage, task: state.withLock { $0.latest })
  }

  func ask(_ challenge: URLAuthenticationChallenge) async -> SessionCredentials.Reply {
    guard asksDelegate else { return .performDefaultHandling }
    while true {
      let (task, decider) = state.withLock { ($0.latest, $0.decider) }
      // A decider that is gone has no tasks and gets no new ones.
      guard (decider != nil) == hasDecider else { return .cancel }
      guard let session = task?.read({ $0.session }) ?? core.keptSession else {
        // The session has no delegate: the answer has to come from a task, and the task is over.
        guard await awaitTask(after: task) else { return .cancel }
        continue
      }
      if let (question, isOfTask) = await question(challenge, session, task, decider) {
        let reply = await answer(to: question, about: isOfTask ? task : nil)
        // An answer for a task that has ended meanwhile, perhaps because of this answer, does not count for the
        // tasks that still wait.
        guard isOfTask, !Task.isCancelled, let task, isOver(task) else { return reply ?? .cancel }
        guard await awaitTask(after: task) else { return .cancel }
        continue
      }
      guard task == nil else { return .performDefaultHandling }
      guard await awaitTask(after: nil) else { return .cancel }
    }
  }

  /// Waits for the answer to a question.
  ///
  /// - Returns: `nil` if the connection is no longer wanted, or the task of the question is over.
  private func answer(
    to question: OneShot<SessionCredentials.Reply>, about task: URLSessionTask?
  ) async -> SessionCredentials.Reply? {
    let isLate = state.withLock { state in
      guard let task = task.map(ObjectIdentifier.init) else { return false }
      state.questions.append((task, question))
      return state.tasks[task] == nil
    }
    if isLate { question.giveUp() }
    defer { state.withLock { $0.questions.removeAll { $0.question === question } } }
    return await withTaskCancellationHandler {
      await question.get()
    } onCancel: {
      question.giveUp()
    }
  }

  private func isOver(_ task: URLSessionTask) -> Bool {
    task.isOver || state.withLock { $0.tasks[ObjectIdentifier(task)] == nil }
  }

  /// Calls the first delegate that implements its method.
  ///
  /// - Returns: The coming answer, and whether it is the answer for `task`; `nil` if no delegate implements the method.
  private func question(
    _ challenge: URLAuthenticationChallenge, _ session: URLSession, _ task: URLSessionTask?,
    _ decider: (any URLSessionTaskDelegate)?
  ) async -> (OneShot<SessionCredentials.Reply>, isOfTask: Bool)? {
    let asked = OneShot<(OneShot<SessionCredentials.Reply>, isOfTask: Bool)>()
    await core.delegateQueue.run { [core] in
      if let delegate = core.delegate, !challenge.protectionSpace.isHTTPAuthentication {
        let question = OneShot<SessionCredentials.Reply>()
        let hasMethod = challenge.methodProbe.isImplemented(by: delegate) {
          delegate.urlSession(session, didReceive: challenge) { question.set(.init($0, $1)) }
          return true
        }
        if hasMethod { return asked.set((question, false)) }
      }
      guard let task else { return }
      for case let delegate? in [decider, core.delegate as? any URLSessionTaskDelegate] {
        let question = OneShot<SessionCredentials.Reply>()
        let hasMethod = challenge.methodProbe.isImplemented(by: delegate) {
          delegate.urlSession(session, task: task.owner, didReceive: challenge) { question.set(.init($0, $1)) }
          return true
        }
        if hasMethod { return asked.set((question, true)) }
      }
    }
    return asked.value
  }

  /// Suspends until a task requests the connection.
  ///
  /// - Parameter last: The previous task, which is over, or `nil` if there was none.
  /// - Returns: `false` if the connection is no longer wanted.
  private func awaitTask(after last: URLSessionTask?) async -> Bool {
    let newcomer = OneShot<Void>()
    let isThere = state.withLock { state in
      if let latest = state.latest, latest !== last { return true }
      state.waiting.append(newcomer)
      return false
    }
    if isThere { return true }
    let answer: Void? = await withTaskCancellationHandler {
      await newcomer.get()
    } onCancel: {
      newcomer.giveUp()
    }
    state.withLock { $0.waiting.removeAll { $0 === newcomer } }
    return answer != nil
  }
}

extension URLProtectionSpace {
  /// Whether the challenge comes from a response, and not from a handshake.
  fileprivate var isHTTPAuthentication: Bool {
    authenticationMethod != NSURLAuthenticationMethodServerTrust
      && authenticationMethod != NSURLAuthenticationMethodClientCertificate
  }
}

extension URLSessionTask {
  fileprivate var isOver: Bool { read { $0.session == nil } }
}
