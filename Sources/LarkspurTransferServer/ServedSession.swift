import LarkspurBytes
import LarkspurIO
import LarkspurTransfers
import Synchronization

/// One session in the service: its executor, its tasks, and the program that is attached.
final class ServedSession: Sendable {
  typealias Factory = @Sendable (TransferSession) throws(TransferLinkError) -> any TransferLink

  private struct State {
    var session: TransferSession
    var link: (any TransferLink)?
    /// Opens when the last link has given the session up. `nil` if it has, or there was none.
    var closing: Latch?
    /// Counts the links. Notices of an earlier link have no effect.
    var generation = 0
    var table = TransferTable()
    var subscriber: TransferSubscriber?
    /// The questions that no program has answered, with their tasks.
    var questions: [UInt64: (task: Int, question: TransferQuestion)] = [:]
    /// Whether the program is to be launched: a task has ended that no program knows of, or waits for a program's answer. A
    /// program that dies seems attached until the end of its connection is read.
    var hasNews = false
    /// Whether the service ends.
    var isClosed = false

    /// Whether all tasks that are to be carried out wait for a program's answers.
    var isWaitingForProgram: Bool {
      let waiting = Set(questions.values.filter { $0.question.waitsForProgram }.map(\.task))
      return !waiting.isEmpty && table.working.isSubset(of: waiting)
    }

    /// Removes the oldest question of a task about a handshake if there are more than `handshakesMax`.
    mutating func removeOldestHandshake(of task: Int) -> UInt64? {
      let open = questions.filter { $0.value.task == task && !$0.value.question.waitsForProgram }
      guard open.count > ServedSession.handshakesMax, let oldest = open.min(by: { $0.key < $1.key }) else { return nil }
      questions[oldest.key] = nil
      return oldest.key
    }
  }

  /// Maximum number of open questions of a task about handshakes, which fail by themselves in time. A server that changes
  /// its certificates with each attempt, and a program that never answers, would fill the memory.
  static let handshakesMax = 64

  private let factory: Factory
  private let log: @Sendable (String) -> Void
  /// Called when the session may have no work any more.
  private let changed: @Sendable () -> Void
  /// Held while a program attaches: a second one waits, and finds it attached.
  private let gate = Mutex(())
  /// Held while a command is passed on, so that the executor gets commands in the order of the table's changes.
  private let commands = Mutex(())
  private let state: Mutex<State>

  init(
    _ session: TransferSession, factory: @escaping Factory, log: @escaping @Sendable (String) -> Void,
    changed: @escaping @Sendable () -> Void
  ) {
    self.factory = factory
    self.log = log
    self.changed = changed
    state = Mutex(State(session: session))
  }

  var session: TransferSession { state.withLock { $0.session } }
  var records: [TransferRecord] { state.withLock { $0.table.records } }
  var isAttached: Bool { state.withLock { $0.subscriber != nil } }
  var isOpen: Bool { state.withLock { $0.link != nil } }
  /// Whether there is an executor, or one that has not given the session up.
  var isInUse: Bool { state.withLock { $0.link != nil || $0.closing != nil } }

  // MARK: - The executor

  /// The time that an executor may take to give a session up.
  private static let patience = Duration.seconds(5)

  private static let over = TransferLinkError.unavailable(reason: "the transfer service ends")

  /// Makes the executor, unless there is one. Waits for an earlier one that gives the session up.
  func open() throws(TransferLinkError) {
    try gate.withLock { (_) throws(TransferLinkError) in try makeLocked()?() }
  }

  /// Opens a session that an earlier service has left. Events that no program has taken launch their program once more:
  /// the earlier service may have been killed before it did so, or the program before it took them.
  func restore() throws(TransferLinkError) {
    try gate.withLock { (_) throws(TransferLinkError) in
      let start = try makeLocked()
      state.withLock { state in
        if state.subscriber == nil { state.hasNews = state.table.hasEnd }
      }
      start?()
    }
  }

  /// Makes the executor, unless there is one.
  ///
  /// - Returns: A function that starts it.
  private func makeLocked() throws(TransferLinkError) -> (() -> Void)? {
    guard !isOpen else { return nil }
    if let closing = state.withLock({ $0.closing }) {
      let isGone = closing.wait(until: LinuxKernel.shared.now().advanced(by: Self.patience))
      guard isGone else { throw .unavailable(reason: "an earlier executor of the session has not ended") }
    }
    let session = session
    guard !state.withLock({ $0.isClosed }) else { throw Self.over }
    let link = try factory(session)
    let generation = state.withLock { state -> Int? in
      guard !state.isClosed else { return nil }
      state.link = link
      state.generation += 1
      state.table = TransferTable(link.records)
      state.questions = [:]
      return state.generation
    }
    guard let generation else {
      link.close {}
      throw Self.over
    }
    do throws(TransferJournalError) {
      try TransferSessionFile.write(session)
    } catch {
      log("session \"\(session.identifier)\" does not outlive the service: \(error)")
    }
    return { link.start { [weak self] in self?.receive($0, generation) } }
  }

  private func receive(_ notice: TransferNotice, _ generation: Int) {
    enum Next {
      case nothing
      case answer(any TransferLink, UInt64, TransferAnswer)
      case end(TransferSubscriber?)
    }
    let (next, mayBeOver) = state.withLock { state -> (Next, Bool) in
      guard state.generation == generation, let link = state.link else { return (.nothing, false) }
      if case .lost(let reason) = notice {
        log("session \"\(state.session.identifier)\" has lost its executor: \(reason)")
        state.link = nil
        return (.end(state.subscriber), true)
      }
      var isEnd = false
      if case .changed(let record) = notice {
        isEnd = record.state == .completed && state.table[record.task].map { $0.state != .completed } ?? false
      }
      state.table.apply(notice)
      if isEnd { state.hasNews = true }
      if case .changed(let record) = notice, record.state == .completed {
        state.questions = state.questions.filter { $0.value.task != record.task }
      }
      let isTaken = state.subscriber?.send(notice) ?? false
      if case .question(let number, let task, let question) = notice {
        if !isTaken, !question.waitsForProgram { return (.answer(link, number, question.byDefault), false) }
        state.questions[number] = (task, question)
        if let oldest = state.removeOldestHandshake(of: task) { return (.answer(link, oldest, .cancel), false) }
        if !isTaken {
          state.hasNews = true
          return (.nothing, true)
        }
      }
      return (.nothing, isEnd)
    }
    switch next {
    case .nothing: break
    case .answer(let link, let number, let answer): link.send(.answer(question: number, answer))
    case .end(let subscriber): subscriber?.close()
    }
    if mayBeOver { changed() }
  }

  // MARK: - Programs

  /// Attaches a program, and sends it the tasks.
  ///
  /// The program's settings and launch command replace earlier ones. If the settings differ from those of the present
  /// executor, the executor is replaced, and running tasks continue from their latest checkpoint.
  func attach(
    _ subscriber: TransferSubscriber, _ session: TransferSession
  ) throws(TransferLinkError) {
    try gate.withLock { (_) throws(TransferLinkError) in
      try waitForEnd()
      let before = self.session
      let old = state.withLock { state -> Ending? in
        let isOther = state.session.settings != session.settings
        guard state.session.identifier == session.identifier || state.link == nil else { return nil }
        state.session = session
        return isOther ? Self.take(&state) : nil
      }
      guard self.session == session else {
        throw .unavailable(reason: "the directory \(session.directory) belongs to another session")
      }
      end(old)
      if isOpen { writeSession(session) }
      let start: (() -> Void)?
      do throws(TransferLinkError) {
        start = try makeLocked()
      } catch {
        // Settings that cannot be used do not end what goes on with the earlier ones.
        state.withLock { $0.session = before }
        if old != nil { try? makeLocked()?() }
        throw error
      }
      // The first questions find the program attached.
      defer { start?() }
      let failure = state.withLock { state -> TransferMessageError? in
        do throws(TransferMessageError) {
          try subscriber.send(state.table.records)
        } catch {
          return error
        }
        state.subscriber = subscriber
        for (number, open) in state.questions.sorted(by: { $0.key < $1.key }) {
          _ = subscriber.send(.question(number, task: open.task, open.question))
        }
        return nil
      }
      if let failure { throw .unavailable(reason: "\(failure)") }
    }
  }

  /// The time that the connection of a program that was killed may take to end: its last commands are carried out. Less
  /// than the 5 s for which the next program waits.
  private static let endPatience = Duration.milliseconds(4_500)

  /// Waits for the end of a program that has gone, so that it can be started again at once.
  private func waitForEnd() throws(TransferLinkError) {
    let deadline = LinuxKernel.shared.now().advanced(by: Self.endPatience)
    while let subscriber = state.withLock({ $0.subscriber }) {
      let now = LinuxKernel.shared.now()
      guard now < deadline, subscriber.hasGone(until: now) else { throw .inUse }
      // Its connection's thread reads the end, and detaches it.
      WakeUp().wait(until: now.advanced(by: .milliseconds(1)))
    }
  }

  private func writeSession(_ session: TransferSession) {
    do throws(TransferJournalError) { try TransferSessionFile.write(session) } catch {
      log("session \"\(session.identifier)\": \(error)")
    }
  }

  /// Lets a program go. Its open questions are answered by default, except those that wait for the next program.
  func detach(_ subscriber: TransferSubscriber) {
    let (link, questions) = state.withLock { state -> ((any TransferLink)?, [UInt64: TransferQuestion]) in
      guard state.subscriber === subscriber else { return (nil, [:]) }
      state.subscriber = nil
      // A program that has taken its events is not launched for them.
      state.hasNews = state.table.hasEnd || state.isWaitingForProgram
      let answered = state.questions.filter { !$0.value.question.waitsForProgram }
      for number in answered.keys { state.questions[number] = nil }
      return (state.link, answered.mapValues(\.question))
    }
    subscriber.close()
    for (number, question) in questions.sorted(by: { $0.key < $1.key }) {
      link?.send(.answer(question: number, question.byDefault))
    }
    changed()
  }

  /// Carries out a command of the attached program.
  ///
  /// - Returns: `false` if the program has more tasks than any session may have.
  func carryOut(_ command: TransferCommand) -> Bool {
    commands.withLock { _ in
      let (link, isPossible) = state.withLock { state -> ((any TransferLink)?, Bool) in
        if case .create = command, state.table.count >= TransferSession.tasksMax { return (nil, false) }
        state.table.apply(command)
        if case .answer(let question, _) = command { state.questions[question] = nil }
        return (state.link, true)
      }
      link?.send(command)
      return isPossible
    }
  }

  /// Carries out a command of the user, and tells the attached program of it.
  ///
  /// - Returns: The number of tasks that it has changed.
  func administer(_ change: TransferAdministration.Change, _ tasks: TransferAdministration.Tasks) -> Int {
    commands.withLock { _ in
      let (link, changed) = state.withLock { state -> ((any TransferLink)?, [TransferCommand]) in
        var commands: [TransferCommand] = []
        let numbers =
          switch tasks {
          case .all: state.table.records.map(\.task)
          case .some(let list): list
          }
        for number in numbers {
          guard let before = state.table[number] else { continue }
          let command: TransferCommand =
            switch change {
            case .pause: .suspend(task: number)
            case .resume: .resume(task: number)
            case .cancel: .cancel(task: number, isKeepingContent: false)
            }
          state.table.apply(command)
          guard let after = state.table[number], after != before else { continue }
          commands.append(command)
          _ = state.subscriber?.send(.changed(after))
        }
        return (state.link, commands)
      }
      for command in changed { link?.send(command) }
      return changed.count
    }
  }

  /// Calls a function once all commands so far are on the disk.
  func flush(_ completion: @escaping @Sendable () -> Void) {
    commands.withLock { _ in
      guard let link = state.withLock({ $0.link }) else { return completion() }
      link.flush { _ in completion() }
    }
  }

  // MARK: - The end

  /// An executor that is to give the session up.
  struct Ending {
    fileprivate var link: any TransferLink
    fileprivate var isGone: Latch
  }

  private static func take(_ state: inout State) -> Ending? {
    guard let link = state.link else { return nil }
    let isGone = Latch()
    state.link = nil
    state.closing = isGone
    return Ending(link: link, isGone: isGone)
  }

  /// Makes an executor give the session up.
  func end(_ ending: Ending?) {
    guard let ending else { return }
    ending.link.close { [self] in
      state.withLock { state in
        if state.closing === ending.isGone { state.closing = nil }
      }
      ending.isGone.open()
      changed()
    }
  }

  /// Lets the executor go if no task needs it and no program is attached. Called while no connection uses the session.
  ///
  /// - Returns: The executor, for `end`, and the session if its program is to be launched: for its events, or because all
  ///   tasks that are left wait for its answers.
  func letGo() -> (ending: Ending?, launching: TransferSession?) {
    state.withLock { state in
      guard state.subscriber == nil else { return (nil, nil) }
      let isWaiting = state.isWaitingForProgram
      let ending = state.table.isWorking ? nil : Self.take(&state)
      guard ending != nil || isWaiting && state.link != nil else { return (nil, nil) }
      guard state.hasNews, isWaiting || state.table.hasEnd, !state.session.launchCommand.isEmpty else {
        return (ending, nil)
      }
      state.hasNews = false
      return (ending, state.session)
    }
  }

  /// Ends the connection of the attached program and the executor: the tasks stay in the journal. Waits until the
  /// executor has given the session up.
  func close(until deadline: Deadline) {
    let (ending, subscriber, closing) = state.withLock { state -> (Ending?, TransferSubscriber?, Latch?) in
      defer { state.subscriber = nil }
      state.isClosed = true
      let ending = Self.take(&state)
      return (ending, state.subscriber, state.closing)
    }
    subscriber?.close()
    end(ending)
    closing?.wait(until: deadline)
  }
}

extension TransferQuestion {
  /// The answer of a program without the delegate method.
  fileprivate var byDefault: TransferAnswer {
    switch self {
    case .beginDelayed: .continueLoading
    case .challenge, .trust, .clientCertificate: .challenge(disposition: .performDefaultHandling, credential: nil)
    }
  }
}
