/// Decides on a program's side of a background session: how the session gets its runner and keeps it, what the runner
/// is sent, and which calls of the delegate are due.
///
/// The owner reports facts, and carries out the actions of each fact in their order. The page BackgroundTransfers has the
/// graph of the states. The session's end (`willEnd`) is independent of them: an invalidated session has its runner until
/// its last task is over. `TransferTask` has the states of a task.
///
/// Invariants: each task ends exactly once, by `call(.end)` or `refuse`, unless the journal keeps it; each flush is
/// confirmed exactly once; commands go only to the runner that is attached; in the state `closed`, only a flush has an
/// answer. A fact that does not fit the state changes nothing. The machine does not depend on links, threads or time:
/// tasks, questions and flushes are numbers.
package struct SessionLinkMachine: Sendable {
  package enum State: Hashable, Sendable {
    /// The first runner is searched for.
    case searching
    /// An earlier session of the process has the identifier, and releases it at its end.
    case waiting(Attempt)
    case attached
    case lost(Attempt)
    /// The session has no runner and will not get one.
    case refused(TransferLinkError)
    case closing(Closing)
    case closed
  }

  package enum Attempt: Hashable, Sendable, CaseIterable {
    case pausing, connecting
  }

  package enum Closing: Hashable, Sendable, CaseIterable {
    /// The runner releases the session. The session's end waits for that.
    case link
    /// The session is over. An attempt to connect is in flight.
    case attempt
    /// The session is over. The runner that the attempt has found releases the session.
    case late
  }

  package enum Refusal: Error, Hashable, Sendable {
    /// The program has cancelled the task before a runner was sent it, or the session is over.
    case cancelled
    case link(TransferLinkError)
  }

  package enum Action: Hashable, Sendable {
    /// Report `pauseOver` after this time.
    case pause(Duration)
    /// Connect, and report `attached` or `failed`.
    case connect
    /// Send all further commands to the runner that was found last.
    case attach
    /// The runner is gone. Release it.
    case detach
    /// Pass the runner's notices to the machine.
    ///
    /// - Parameter link: The number of the runner, for `received`.
    case listen(link: Int)
    /// Report `held` after this time.
    ///
    /// - Parameter link: The number of the runner.
    case watch(Duration, link: Int)
    /// Make the runner release the session, and report `linkClosed`.
    case closeLink
    case send(TransferCommand)
    /// Send `create` with the record and the file that the task continues, if there is one.
    case create(TransferRecord)
    /// Ask the runner for a confirmation, and report `flushed`.
    case flush(Int)
    /// Make the task of a record of an earlier process, or report `rejected`.
    case adopt(TransferRecord)
    /// Show the counts of a task.
    case show(Int)
    /// Make a delegate call when it has its turn.
    case call(Call)
    /// Ask the delegate, and report `answered` with this number of the runner.
    case ask(UInt64, task: Int, TransferQuestion, link: Int)
    /// End a task that no runner carries out.
    case refuse(Int, Refusal)
    /// All tasks of earlier processes are there, or the session does not wait for them any more.
    case finishOpening
    case confirmFlush(Int)
    /// Another session may have the identifier.
    case releaseIdentifier
    /// The session is over.
    case finishClosing
  }

  package enum Call: Hashable, Sendable {
    /// The download was continued. Then report `acknowledgeResumption` with this number of the runner.
    case resumed(Int, offset: Int64, expected: Int64, link: Int)
    /// Call `report` for the bytes.
    case progress(Int)
    /// Make the last calls of a task, and report `ended` or `left`.
    case end(Int)
    /// Make the last calls of the tasks of `offerLeft`.
    case left
    /// The events of earlier processes have been delivered.
    case finishEvents
  }

  package typealias Actions = [Action]

  /// The pause before the second attempt to connect. Each later pause is twice as long, up to `pauseMax`. The first
  /// attempt after the first loss starts without a pause.
  static let pauseMin = Duration.milliseconds(40)
  /// Maximum pause between two attempts to connect: a service that ends again and again is not started again and again.
  static let pauseMax = Duration.seconds(30)

  package private(set) var state = State.searching
  /// Whether the session has been invalidated.
  package private(set) var isEnding = false
  /// Whether sessions with the same identifier wait for the end of this one.
  private var hasIdentifier = false
  /// The number of runners so far. Notices and answers that belong to an earlier one have no effect.
  package private(set) var link = 0
  /// The tasks that have begun and are not over, and those that the journal keeps.
  package internal(set) var tasks: [Int: TransferTask] = [:]
  /// The flushes that have not been confirmed.
  private var flushes: Set<Int> = []
  /// How often a runner has been lost, or was not found, since one has held for `pauseMax`.
  private var losses = 0

  package init() {}

  /// Whether there is nothing that a journal could confirm, because no runner has been found and no task waits for one.
  package var hasNothingToFlush: Bool {
    switch state {
    case .searching, .waiting: tasks.isEmpty
    case .attached, .lost, .refused, .closing, .closed: false
    }
  }

  // MARK: - The runner

  /// A runner was found.
  ///
  /// - Parameter records: Its tasks.
  package mutating func attached(_ records: [TransferRecord], into actions: inout Actions) {
    let isFirst: Bool
    switch state {
    case .searching, .waiting(.connecting): isFirst = true
    case .lost(.connecting): isFirst = false
    case .closing(.attempt):
      state = .closing(.late)
      actions += [.attach, .closeLink]
      return
    case .attached, .waiting, .lost, .refused, .closing, .closed: return
    }
    state = .attached
    link += 1
    actions.append(.attach)
    continueTasks(records, adopting: isFirst, into: &actions)
    actions.append(.listen(link: link))
    if losses > 0 { actions.append(.watch(Self.pauseMax, link: link)) }
    if isFirst { actions.append(.finishOpening) }
    actions += flushes.sorted().map(Action.flush)
  }

  /// There is no usable runner.
  ///
  /// - Parameter hasEarlierSession: Whether another session of the process was about to release the identifier before the
  ///   attempt.
  package mutating func failed(
    _ error: TransferLinkError, hasEarlierSession: Bool, into actions: inout Actions
  ) {
    switch state {
    case .searching where hasEarlierSession:
      // The earlier session may have the identifier for days, if its tasks are to end first.
      actions.append(.finishOpening)
      state = .waiting(pause(into: &actions))
    case .searching: refuse(error, into: &actions)
    case .waiting(.connecting) where error == .inUse && !hasEarlierSession: refuse(error, into: &actions)
    case .waiting(.connecting): state = .waiting(pause(into: &actions))
    case .lost(.connecting): state = .lost(pause(into: &actions))
    case .closing(.attempt):
      state = .closed
      actions.append(.releaseIdentifier)
    case .attached, .waiting, .lost, .refused, .closing, .closed: break
    }
  }

  package mutating func pauseOver(into actions: inout Actions) {
    switch state {
    case .waiting(.pausing): state = .waiting(.connecting)
    case .lost(.pausing): state = .lost(.connecting)
    case .searching, .attached, .waiting, .lost, .refused, .closing, .closed: return
    }
    actions.append(.connect)
  }

  /// The time of `watch` is over. If the runner is still there, its loss is a first one.
  package mutating func held(_ number: Int) { if number == link, state == .attached { losses = 0 } }

  /// The runner has ended.
  private mutating func lost(into actions: inout Actions) {
    guard state == .attached else { return }
    actions.append(.detach)
    state = .lost(pause(into: &actions))
  }

  private mutating func pause(into actions: inout Actions) -> Attempt {
    losses += 1
    let doublings = min(losses - 2, 16)
    actions.append(.pause(doublings < 0 ? .zero : min(Self.pauseMin * (1 << doublings), Self.pauseMax)))
    return .pausing
  }

  private mutating func refuse(_ error: TransferLinkError, into actions: inout Actions) {
    let isFirst = state == .searching
    state = .refused(error)
    actions += tasks.keys.sorted().map { .refuse($0, .link(error)) }
    tasks = [:]
    confirmFlushes(into: &actions)
    if isFirst { actions.append(.finishOpening) }
  }

  /// Accepts a notice.
  ///
  /// - Parameter number: The number of the runner (`link`) that has sent the notice.
  package mutating func received(_ notice: TransferNotice, from number: Int, into actions: inout Actions) {
    guard number == link, state == .attached else { return }
    switch notice {
    case .changed(let record): changed(record, into: &actions)
    case .progress(let task, let counts): progressed(task, counts, into: &actions)
    case .question(let question, let task, let content):
      guard let asked = tasks[task] else {
        return actions.append(.send(.answer(question: question, content.byDefault)))
      }
      // The runner drops the questions of a task that ends.
      if asked.phase == .sent, !asked.isCancelled { actions.append(.ask(question, task: task, content, link: link)) }
    case .lost: lost(into: &actions)
    }
  }

  /// The delegate has answered a question of the runner with this number.
  package mutating func answered(
    _ question: UInt64, _ answer: TransferAnswer, to number: Int, into actions: inout Actions
  ) {
    if number == link, state == .attached { actions.append(.send(.answer(question: question, answer))) }
  }

  // MARK: - Flushes

  /// Confirms later that the journal has all tasks that have been resumed, or that there will be no runner.
  ///
  /// - Parameter number: A number that no earlier flush has had.
  package mutating func flush(_ number: Int, into actions: inout Actions) {
    switch state {
    case .attached:
      flushes.insert(number)
      actions.append(.flush(number))
    // The next runner is asked.
    case .searching, .waiting, .lost: flushes.insert(number)
    case .refused, .closing, .closed: actions.append(.confirmFlush(number))
    }
  }

  /// The runner has confirmed a flush, or is gone before that. Then the next one is asked.
  package mutating func flushed(_ number: Int, isConfirmed: Bool, into actions: inout Actions) {
    guard isConfirmed || state == .closing(.link), flushes.remove(number) != nil else { return }
    actions.append(.confirmFlush(number))
  }

  private mutating func confirmFlushes(into actions: inout Actions) {
    actions += flushes.sorted().map(Action.confirmFlush)
    flushes = []
  }

  // MARK: - The end

  /// The session has been invalidated.
  ///
  /// - Returns: Whether a session with the same identifier has to wait for `releaseIdentifier`. `true` once.
  package mutating func willEnd() -> Bool {
    guard !isEnding else { return false }
    isEnding = true
    if case .refused = state { return false }
    hasIdentifier = true
    return true
  }

  /// The session has no tasks and will not get any. Called once, after `willEnd`.
  package mutating func close(into actions: inout Actions) {
    switch state {
    case .attached:
      state = .closing(.link)
      actions.append(.closeLink)
    case .searching, .waiting(.connecting), .lost(.connecting):
      if state == .searching { actions.append(.finishOpening) }
      state = .closing(.attempt)
      confirmFlushes(into: &actions)
      actions.append(.finishClosing)
    case .waiting(.pausing), .lost(.pausing), .refused:
      state = .closed
      confirmFlushes(into: &actions)
      actions += hasIdentifier ? [.releaseIdentifier, .finishClosing] : [.finishClosing]
    case .closing, .closed: return
    }
    tasks = [:]
  }

  /// The runner has released the session.
  package mutating func linkClosed(into actions: inout Actions) {
    guard case .closing(let closing) = state, closing != .attempt else { return }
    state = .closed
    confirmFlushes(into: &actions)
    actions += closing == .link ? [.releaseIdentifier, .finishClosing] : [.releaseIdentifier]
  }
}
