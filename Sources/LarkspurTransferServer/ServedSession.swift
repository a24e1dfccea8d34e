import LarkspurBytes
import LarkspurIO
import LarkspurTransfers
import Synchronization

/// One session in the service: carries out the actions of `ServedSessionMachine`.
///
/// Any thread reports facts. One thread at a time carries the actions out, in the machine's order and outside of the lock:
/// the one whose fact has found no other at it. No action blocks for longer than a write to the disk.
final class ServedSession: Sendable {
  /// The functions of the service that a session calls, on any thread.
  struct Service: Sendable {
    /// Makes a runner. May block.
    var factory: @Sendable (TransferSession) throws(TransferLinkError) -> any TransferLink
    var launch: @Sendable (TransferSession) -> Void
    /// Called when nothing uses a session any more.
    var rests: @Sendable () -> Void
    var log: @Sendable (String) -> Void
  }

  /// One use of the session. Belongs to the thread that calls `enter`.
  final class Visit: Sendable {
    fileprivate let id: ServedSessionMachine.VisitID
    /// The visitor's connection, if the visitor is a program.
    fileprivate let subscriber: TransferSubscriber?
    private let words = Mutex<[ServedSessionMachine.Word]>([])
    private let wakeUp = WakeUp()

    fileprivate init(_ id: ServedSessionMachine.VisitID, _ subscriber: TransferSubscriber?) {
      self.id = id
      self.subscriber = subscriber
    }

    fileprivate func say(_ word: ServedSessionMachine.Word) {
      words.withLock { $0.append(word) }
      wakeUp.signal()
    }

    /// Returns the next word, or `nil` if there is none until the deadline.
    fileprivate func next(until deadline: Deadline) -> ServedSessionMachine.Word? {
      while true {
        let word = words.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        if word != nil || LinuxKernel.shared.now() >= deadline { return word }
        wakeUp.wait(until: deadline)
      }
    }
  }

  enum Entrance {
    case admitted(Visit)
    case refused(TransferLinkError)
    /// The service ends. Because it gets no answer, the program starts a new service.
    case over
  }

  private struct State {
    var machine: ServedSessionMachine
    /// The actions that no thread has carried out.
    var actions: ServedSessionMachine.Actions = []
    var isPerforming = false
    var link: (any TransferLink)?
    var lastVisit = 0
    var visits: [ServedSessionMachine.VisitID: Visit] = [:]
    var lastFlush = 0
    var flushes: [ServedSessionMachine.FlushID: @Sendable (Bool) -> Void] = [:]
  }

  private let service: Service
  private let state: Mutex<State>
  private let isOver = Latch()

  init(_ session: TransferSession, _ service: Service) {
    self.service = service
    state = Mutex(State(machine: ServedSessionMachine(session)))
  }

  /// Returns what the machine says of itself.
  func read<Value>(_ body: (borrowing ServedSessionMachine) -> Value) -> Value { state.withLock { body($0.machine) } }

  // MARK: - Facts

  /// Reports a fact, and carries out the resulting actions unless another thread does so.
  private func take<Value>(
    _ fact: (inout ServedSessionMachine, inout ServedSessionMachine.Actions) -> Value
  ) -> Value {
    let (value, isFirst) = state.withLock { state in
      let value = fact(&state.machine, &state.actions)
      defer { state.isPerforming = true }
      return (value, !state.isPerforming)
    }
    while isFirst, let actions = nextActions() {
      for action in actions { perform(action) }
    }
    return value
  }

  private func nextActions() -> ServedSessionMachine.Actions? {
    state.withLock { state in
      defer { state.actions = [] }
      state.isPerforming = !state.actions.isEmpty
      return state.isPerforming ? state.actions : nil
    }
  }

  /// Blocks until the session is open for a visit. One that is admitted ends with `leave`.
  ///
  /// - Parameter socket: The connection of a program. It gets the answers to `open`, a refusal included.
  func enter(_ wish: ServedSessionMachine.Wish, _ socket: BlockingSocket? = nil) -> Entrance {
    let id = state.withLock { state in
      state.lastVisit += 1
      return state.lastVisit
    }
    let visit: Visit
    do throws(Errno) {
      var subscriber: TransferSubscriber?
      if let socket {
        subscriber = try TransferSubscriber(socket, log: service.log) { [weak self] in
          self?.take { $0.questionTaken(id, into: &$1) }
        }
      }
      visit = Visit(id, subscriber)
    } catch {
      let error = TransferLinkError.unavailable(reason: "the transfer service has no thread left: \(error)")
      socket?.refuse(error)
      return .refused(error)
    }
    state.withLock { $0.visits[id] = visit }
    take { $0.enter(visit.id, wish, into: &$1) }
    var deadline = Deadline.never
    while true {
      switch visit.next(until: deadline) {
      case nil:
        deadline = .never
        take { $0.waitedTooLong(visit.id, into: &$1) }
      case .wait(let wait): deadline = LinuxKernel.shared.now().advanced(by: wait.patience)
      case .make(let session):
        deadline = .never
        make(session, visit)
      case .admitted: return .admitted(visit)
      case .refused(let error):
        visit.subscriber?.refuse(error)
        remove(visit)
        return .refused(error)
      case .over:
        visit.subscriber?.close()
        remove(visit)
        return .over
      }
    }
  }

  private func remove(_ visit: Visit) { state.withLock { _ = $0.visits.removeValue(forKey: visit.id) } }

  private func make(_ session: TransferSession, _ visit: Visit) {
    do throws(TransferLinkError) {
      let link = try service.factory(session)
      let records = link.records
      state.withLock { $0.link = link }
      take { $0.made(visit.id, records, into: &$1) }
    } catch {
      take { $0.notMade(visit.id, error, into: &$1) }
    }
  }

  /// Ends a visit that was admitted.
  func leave(_ visit: Visit) {
    visit.subscriber?.close()
    remove(visit)
    take { $0.leave(visit.id, into: &$1) }
  }

  /// Carries out a command of the program.
  ///
  /// - Returns: `false` if the program has more tasks than any session may have.
  func perform(_ command: TransferCommand, of visit: Visit) -> Bool {
    take { $0.commanded(visit.id, command, into: &$1) }
  }

  /// Carries out a command of the user.
  ///
  /// - Returns: The number of tasks that it has changed.
  func administer(_ change: TransferAdministration.Change, _ tasks: TransferAdministration.Tasks) -> Int {
    take { $0.administered(change, tasks, into: &$1) }
  }

  /// Calls a function once all commands so far are on the disk, or with `false` if they cannot come there any more.
  private func flush(_ completion: @escaping @Sendable (_ isConfirmed: Bool) -> Void) {
    let flush = state.withLock { state in
      state.lastFlush += 1
      state.flushes[state.lastFlush] = completion
      return state.lastFlush
    }
    take { $0.flush(flush, into: &$1) }
  }

  /// Answers a program's `flush`, after all commands and notices so far.
  func flush(_ number: UInt64, of visit: Visit) {
    flush { isConfirmed in
      // Without a runner the connection ends.
      if isConfirmed { visit.subscriber?.sendFlushed(number) }
    }
  }

  /// Blocks until the runner has carried out all commands so far, or is gone.
  func catchUp() {
    let isDone = Latch()
    flush { _ in isDone.open() }
    isDone.wait()
  }

  /// Ends the connection of the attached program and the runner: the tasks stay in the journal.
  func end() { take { $0.end(into: &$1) } }

  /// Waits, after `end`, until the runner has released the session.
  func waitForEnd(until deadline: Deadline) { isOver.wait(until: deadline) }

  // MARK: - Actions

  private var link: (any TransferLink)? { state.withLock { $0.link } }

  private func visit(_ id: ServedSessionMachine.VisitID) -> Visit? { state.withLock { $0.visits[id] } }

  private func perform(_ action: ServedSessionMachine.Action) {
    switch action {
    case .say(let id, let word): visit(id)?.say(word)
    case .probe(let id):
      // The end of a connection that has been shut down here is being read.
      let hasGone = visit(id)?.subscriber?.hasGone ?? true
      take { $0.probed(id, hasGone: hasGone, into: &$1) }
    case .store(let session): store(session)
    case .welcome(let id, let records): visit(id)?.subscriber?.send(records)
    case .notify(let id, let notice): visit(id)?.subscriber?.send(notice)
    case .dismiss(let id): visit(id)?.subscriber?.close()
    case .launch(let session): service.launch(session)
    case .start(let generation):
      link?.start { [weak self] notice in self?.take { $0.received(notice, from: generation, into: &$1) } }
    case .pass(let command): link?.send(command)
    case .flush(let flush):
      link?.flush { [self] isConfirmed in take { $0.flushed(flush, isConfirmed: isConfirmed, into: &$1) } }
    case .close: state.withLock { $0.link.take() }?.close { [self] in take { $0.closed(into: &$1) } }
    case .complete(let flush, let isConfirmed):
      state.withLock { $0.flushes.removeValue(forKey: flush) }?(isConfirmed)
    case .log(let line): service.log(line)
    case .rest: service.rests()
    case .finish: isOver.open()
    }
  }

  private func store(_ session: TransferSession) {
    do throws(TransferJournalError) { try TransferSessionFile.write(session) } catch {
      service.log("session \"\(session.identifier)\" does not outlive the service: \(error)")
    }
  }
}

extension ServedSessionMachine.Wait {
  /// The time that the wait may take.
  fileprivate var patience: Duration {
    switch self {
    // The last commands of a program that was killed are carried out. Less than the 5 s for which the next program waits.
    case .program: .milliseconds(4_500)
    case .runner: .seconds(5)
    }
  }
}
