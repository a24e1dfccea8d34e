import Testing

@testable import LarkspurTransfers

/// The machine of a served session as a full table: every state crossed with every fact.
///
/// In the table, visit 1 is a program, visit 2 is the first in line, visit 3 is a command of the user, and visit 9 is new.
/// Questions 7 and 8, and flush 5, are open where the state's name says so.
@Suite struct ServedSessionMachineTests {
  typealias Machine = ServedSessionMachine

  /// The states, each with the facts that lead to it.
  enum Start: String, CaseIterable, Sendable {
    case rest, making, making2
    case working, attached, asking, askingAlone, flushing, finished, acknowledged, guest, guestBefore
    case probing, waiting
    case closing, closingBefore, replacing, makingOther, makingEarlier
    case losing, losingWaited
    case endedMaking, endedClosing, ended

    var facts: [Fact] {
      switch self {
      case .rest: []
      case .making: [.attach2]
      case .making2: [.attach2, .attach]
      case .working: Start.attached.facts + [.leave1]
      case .attached: [.attach1, .made1]
      case .asking: Start.attached.facts + [.password, .trust]
      case .askingAlone: Start.asking.facts + [.leave1]
      case .flushing: Start.attached.facts + [.flush]
      case .finished: Start.attached.facts + [.completed]
      case .acknowledged: Start.finished.facts + [.acknowledge]
      case .guest: Start.working.facts + [.open3]
      case .guestBefore: Start.guest.facts + [.other2]
      case .probing: Start.attached.facts + [.attach2]
      case .waiting: Start.probing.facts + [.gone]
      case .closing: [.attach1, .madeIdle1, .leave1]
      case .closingBefore: Start.closing.facts + [.attach2]
      case .replacing: Start.working.facts + [.other2]
      case .makingOther: Start.replacing.facts + [.closed]
      case .makingEarlier: Start.makingOther.facts + [.notMade2]
      case .losing: Start.attached.facts + [.lost]
      case .losingWaited: Start.losing.facts + [.attach2, .gone]
      case .endedMaking: Start.making.facts + [.end]
      case .endedClosing: Start.attached.facts + [.end]
      case .ended: [.end]
      }
    }
  }

  enum Fact: String, CaseIterable, Sendable {
    // Only on the way to a state.
    case attach1, attach2, other2, open3, made1, madeIdle1
    // The columns of the table.
    case attach, other, foreign, open, restore, leave1, leave2, leave3, gone, stays, late2
    case made2, notMade2, closed
    case progress, completed, password, trust, passwordOfNone, lost, stale, taken
    case create, answer, acknowledge, pause, flush, flushed, unflushed, end

    static let columns = allCases.drop { $0 != .attach }

    func report(_ machine: inout Machine) -> Machine.Actions {
      var actions: Machine.Actions = []
      let running = Fixture.plain(.running)
      let generation = machine.generation
      switch self {
      case .attach1: machine.enter(1, .attach(session), into: &actions)
      case .attach2: machine.enter(2, .attach(session), into: &actions)
      case .other2: machine.enter(2, .attach(otherSession), into: &actions)
      case .open3: machine.enter(3, .open, into: &actions)
      case .made1: machine.made(1, [running], into: &actions)
      case .madeIdle1: machine.made(1, [], into: &actions)
      case .attach: machine.enter(9, .attach(session), into: &actions)
      case .other: machine.enter(9, .attach(otherSession), into: &actions)
      case .foreign: machine.enter(9, .attach(foreignSession), into: &actions)
      case .open: machine.enter(9, .open, into: &actions)
      case .restore: machine.enter(9, .restore, into: &actions)
      case .leave1: machine.leave(1, into: &actions)
      case .leave2: machine.leave(2, into: &actions)
      case .leave3: machine.leave(3, into: &actions)
      case .gone: machine.probed(1, hasGone: true, into: &actions)
      case .stays: machine.probed(1, hasGone: false, into: &actions)
      case .late2: machine.waitedTooLong(2, into: &actions)
      case .made2: machine.made(2, [running], into: &actions)
      case .notMade2: machine.notMade(2, .unavailable(reason: "no disk"), into: &actions)
      case .closed: machine.closed(into: &actions)
      case .progress: machine.received(.progress(task: 1, .init()), from: generation, into: &actions)
      case .completed:
        machine.received(.changed(Fixture.plain(.completed, events: [.completed])), from: generation, into: &actions)
      case .password:
        machine.received(.question(7, task: 1, .challenge(Fixture.challenge)), from: generation, into: &actions)
      case .trust: machine.received(.question(8, task: 1, .trust(Fixture.trust)), from: generation, into: &actions)
      case .passwordOfNone:
        machine.received(.question(6, task: 2, .challenge(Fixture.challenge)), from: generation, into: &actions)
      case .lost: machine.received(.lost(reason: "gone"), from: generation, into: &actions)
      case .stale: machine.received(.lost(reason: "gone"), from: generation - 1, into: &actions)
      case .taken: machine.questionTaken(1, into: &actions)
      case .create: _ = machine.commanded(1, .create(Fixture.plain(.running, task: 2)), into: &actions)
      case .answer: _ = machine.commanded(1, .answer(question: 7, .cancel), into: &actions)
      case .acknowledge: _ = machine.commanded(1, .acknowledge(task: 1, count: 1), into: &actions)
      case .pause: _ = machine.administered(.pause, .some([1, 2]), into: &actions)
      case .flush: machine.flush(5, into: &actions)
      case .flushed: machine.flushed(5, isConfirmed: true, into: &actions)
      case .unflushed: machine.flushed(5, isConfirmed: false, into: &actions)
      case .end: machine.end(into: &actions)
      }
      return actions
    }
  }

  static let session = TransferSession(
    identifier: Fixture.session, directory: "/d", settings: [1], launchCommand: ["/app"])
  static let otherSession = TransferSession(identifier: Fixture.session, directory: "/d", settings: [2])
  static let foreignSession = TransferSession(identifier: "other", directory: "/d", settings: [1])

  static func machine(at start: Start) -> Machine {
    var machine = Machine(session)
    for fact in start.facts { _ = fact.report(&machine) }
    return machine
  }

  /// The state of a machine in a few words.
  static func words(_ machine: Machine) -> String {
    var words: [String] = []
    switch machine.runner {
    case .none: words.append("none")
    case .opening(let visit, let session): words.append("opening\(visit)" + (session.settings == [1] ? "" : "Other"))
    case .open: words.append("open")
    case .closing: words.append("closing")
    }
    if let program = machine.program { words.append("program\(program.id)") }
    for visit in machine.line {
      let wait = visit.wait.map { "(\($0))" } ?? ""
      words.append(
        "line\(visit.id)\(visit.isProbing ? "(probing)" : "")\(wait)\(visit.failure == nil ? "" : "(failed)")")
    }
    words += machine.guests.sorted().map { "guest\($0)" }
    words += machine.questions.keys.sorted().map { "question\($0)" }
    words += machine.flushes.sorted().map { "flush\($0)" }
    if machine.isEnded { words.append("ended") }
    return words.joined(separator: " ")
  }

  static func words(_ action: Machine.Action) -> String {
    switch action {
    case .say(let visit, let word):
      switch word {
      case .admitted: "admit\(visit)"
      case .wait(let wait): "wait\(visit)(\(wait))"
      case .make(let session): "make\(visit)" + (session.settings == [1] ? "" : "Other")
      case .refused(.inUse): "inUse\(visit)"
      case .refused: "refuse\(visit)"
      case .over: "over\(visit)"
      }
    case .probe(let visit): "probe\(visit)"
    case .store: "store"
    case .welcome(let visit, let records): "welcome\(visit)(\(records.count))"
    case .notify(let visit, .question(let number, _, _)): "ask\(visit)(\(number))"
    case .notify(let visit, _): "notify\(visit)"
    case .dismiss(let visit): "dismiss\(visit)"
    case .launch: "launch"
    case .start(let generation): "start(\(generation))"
    case .pass(.answer(let question, .cancel)): "cancel(\(question))"
    case .pass(.answer(let question, _)): "default(\(question))"
    case .pass: "pass"
    case .flush(let flush): "flush\(flush)"
    case .close: "close"
    case .complete(let flush, let isConfirmed): isConfirmed ? "confirm\(flush)" : "fail\(flush)"
    case .log: "log"
    case .rest: "rest"
    case .finish: "finish"
    }
  }

  static func cell(_ start: Start, _ fact: Fact) -> String {
    var machine = machine(at: start)
    let before = words(machine)
    let actions = fact.report(&machine).map(words).joined(separator: " ")
    let after = words(machine)
    return [actions, after == before ? "" : "-> \(after)"].filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// The facts that have an effect in a state, with the actions in their order, and the words of the next state if it is
  /// another one. All other facts change nothing.
  static let table: [(Start, String)] = [
    (
      .rest,
      """
      attach, foreign, open, restore: make9 -> opening9 line9
      other: make9Other -> opening9Other line9
      leave1, leave2, leave3: rest
      flush: fail5
      end: finish -> none ended
      """
    ),
    (
      .making,
      """
      attach, other, foreign, open, restore: -> opening2 line2 line9
      made2: store welcome2(1) admit2 start(1) -> open program2
      notMade2: refuse2 rest -> none
      flush: fail5
      end: over2 finish -> opening2 ended
      """
    ),
    (
      .making2,
      """
      attach, other, foreign, open, restore: -> opening2 line2 line9 line9
      made2: store welcome2(1) admit2 start(1) probe2 -> open program2 line9(probing)
      notMade2: refuse2 make9 -> opening9 line9
      flush: fail5
      end: over2 over9 finish -> opening2 ended
      """
    ),
    (
      .working,
      """
      attach: store welcome9(1) admit9 -> open program9
      other: close wait9(runner) -> closing line9(runner)
      foreign: refuse9
      open, restore: admit9 -> open guest9
      completed: log close launch -> closing
      password: launch -> open question7
      trust: default(8)
      passwordOfNone: cancel(6)
      lost: log close -> closing
      pause: pass
      flush: flush5 -> open flush5
      end: close -> closing ended
      """
    ),
    (
      .attached,
      """
      attach, other, foreign: probe1 -> open program1 line9(probing)
      open, restore: admit9 -> open program1 guest9
      leave1: -> open
      progress, completed: notify1
      password: ask1(7) -> open program1 question7
      trust: ask1(8) -> open program1 question8
      passwordOfNone: cancel(6)
      lost: log dismiss1 close -> closing program1
      create, acknowledge: pass
      answer: cancel(7)
      pause: pass notify1
      flush: flush5 -> open program1 flush5
      end: dismiss1 close -> closing ended
      """
    ),
    (
      .asking,
      """
      attach, other, foreign: probe1 -> open program1 line9(probing) question7 question8
      open, restore: admit9 -> open program1 guest9 question7 question8
      leave1: default(8) launch -> open question7
      progress: notify1
      completed: notify1 -> open program1
      password: ask1(7)
      trust: ask1(8)
      passwordOfNone: cancel(6)
      lost: log dismiss1 close -> closing program1
      create, acknowledge: pass
      answer: cancel(7) -> open program1 question8
      pause: pass notify1
      flush: flush5 -> open program1 question7 question8 flush5
      end: dismiss1 close -> closing ended
      """
    ),
    (
      .askingAlone,
      """
      attach: store welcome9(1) ask9(7) admit9 -> open program9 question7
      other: close wait9(runner) -> closing line9(runner)
      foreign: refuse9
      open, restore: admit9 -> open guest9 question7
      completed: log close launch -> closing
      password: launch
      trust: default(8)
      passwordOfNone: cancel(6)
      lost: log close -> closing
      pause: pass
      flush: flush5 -> open question7 flush5
      end: close -> closing ended
      """
    ),
    (
      .flushing,
      """
      attach, other, foreign: probe1 -> open program1 line9(probing) flush5
      open, restore: admit9 -> open program1 guest9 flush5
      leave1: -> open flush5
      progress, completed: notify1
      password: ask1(7) -> open program1 question7 flush5
      trust: ask1(8) -> open program1 question8 flush5
      passwordOfNone: cancel(6)
      lost: log dismiss1 fail5 close -> closing program1
      create, acknowledge: pass
      answer: cancel(7)
      pause: pass notify1
      flush: flush5
      flushed: confirm5 -> open program1
      unflushed: fail5 -> open program1
      end: dismiss1 fail5 close -> closing ended
      """
    ),
    (
      .finished,
      """
      attach, other, foreign: probe1 -> open program1 line9(probing)
      open, restore: admit9 -> open program1 guest9
      leave1: log close launch -> closing
      progress, completed: notify1
      password, answer: cancel(7)
      trust: cancel(8)
      passwordOfNone: cancel(6)
      lost: log dismiss1 close -> closing program1
      create, acknowledge: pass
      flush: flush5 -> open program1 flush5
      end: dismiss1 close -> closing ended
      """
    ),
    (
      .acknowledged,
      """
      attach, other, foreign: probe1 -> open program1 line9(probing)
      open, restore: admit9 -> open program1 guest9
      leave1: log close -> closing
      progress, completed: notify1
      password, answer: cancel(7)
      trust: cancel(8)
      passwordOfNone: cancel(6)
      lost: log dismiss1 close -> closing program1
      create, acknowledge: pass
      flush: flush5 -> open program1 flush5
      end: dismiss1 close -> closing ended
      """
    ),
    (
      .guest,
      """
      attach: store welcome9(1) admit9 -> open program9 guest3
      other: -> open line9 guest3
      foreign: refuse9
      open, restore: admit9 -> open guest3 guest9
      leave3: -> open
      password: -> open guest3 question7
      trust: default(8)
      passwordOfNone: cancel(6)
      lost: log close -> closing guest3
      pause: pass
      flush: flush5 -> open guest3 flush5
      end: close -> closing ended
      """
    ),
    (
      .guestBefore,
      """
      attach, other, foreign: -> open line2 line9 guest3
      open, restore: admit9 -> open line2 guest3 guest9
      leave2: -> open guest3
      leave3: close wait2(runner) -> closing line2(runner)
      password: -> open line2 guest3 question7
      trust: default(8)
      passwordOfNone: cancel(6)
      lost: log close -> closing line2 guest3
      pause: pass
      flush: flush5 -> open line2 guest3 flush5
      end: over2 close -> closing ended
      """
    ),
    (
      .probing,
      """
      attach, other, foreign: -> open program1 line2(probing) line9
      open, restore: admit9 -> open program1 line2(probing) guest9
      leave1: store welcome2(1) admit2 -> open program2
      leave2: -> open program1
      gone: wait2(program) -> open program1 line2(program)
      stays: inUse2 -> open program1
      progress, completed: notify1
      password: ask1(7) -> open program1 line2(probing) question7
      trust: ask1(8) -> open program1 line2(probing) question8
      passwordOfNone: cancel(6)
      lost: log dismiss1 close -> closing program1 line2(probing)
      create, acknowledge: pass
      answer: cancel(7)
      pause: pass notify1
      flush: flush5 -> open program1 line2(probing) flush5
      end: dismiss1 over2 close -> closing ended
      """
    ),
    (
      .waiting,
      """
      attach, other, foreign: -> open program1 line2(program) line9
      open, restore: admit9 -> open program1 line2(program) guest9
      leave1: store welcome2(1) admit2 -> open program2
      leave2: -> open program1
      late2: inUse2 -> open program1
      progress, completed: notify1
      password: ask1(7) -> open program1 line2(program) question7
      trust: ask1(8) -> open program1 line2(program) question8
      passwordOfNone: cancel(6)
      lost: log dismiss1 close -> closing program1 line2(program)
      create, acknowledge: pass
      answer: cancel(7)
      pause: pass notify1
      flush: flush5 -> open program1 line2(program) flush5
      end: dismiss1 over2 close -> closing ended
      """
    ),
    (
      .closing,
      """
      attach, other, foreign, open, restore: wait9(runner) -> closing line9(runner)
      closed: rest -> none
      flush: fail5
      end: -> closing ended
      """
    ),
    (
      .closingBefore,
      """
      attach, other, foreign, open, restore: -> closing line2(runner) line9
      leave2: -> closing
      late2: refuse2 -> closing
      closed: make2 -> opening2 line2
      flush: fail5
      end: over2 -> closing ended
      """
    ),
    (
      .replacing,
      """
      attach, other, foreign, open, restore: -> closing line2(runner) line9
      leave2: -> closing
      late2: refuse2 -> closing
      closed: make2Other -> opening2Other line2
      flush: fail5
      end: over2 -> closing ended
      """
    ),
    (
      .makingOther,
      """
      attach, other, foreign, open, restore: -> opening2Other line2 line9
      made2: store welcome2(1) admit2 start(2) -> open program2
      notMade2: make2 -> opening2 line2(failed)
      flush: fail5
      end: over2 finish -> opening2Other ended
      """
    ),
    (
      .makingEarlier,
      """
      attach, other, foreign, open, restore: -> opening2 line2(failed) line9
      made2: store refuse2 start(2) -> open
      notMade2: refuse2 rest -> none
      flush: fail5
      end: over2 finish -> opening2 ended
      """
    ),
    (
      .losing,
      """
      attach, other, foreign: probe1 -> closing program1 line9(probing)
      open, restore: wait9(runner) -> closing program1 line9(runner)
      leave1: -> closing
      closed: -> none program1
      flush: fail5
      end: dismiss1 -> closing ended
      """
    ),
    (
      .losingWaited,
      """
      attach, other, foreign, open, restore: -> closing program1 line2(program) line9
      leave1: wait2(runner) -> closing line2(runner)
      leave2: -> closing program1
      late2: inUse2 -> closing program1
      closed: -> none program1 line2(program)
      flush: fail5
      end: dismiss1 over2 -> closing ended
      """
    ),
    (
      .endedMaking,
      """
      attach, other, foreign, open, restore: over9
      made2: close -> none ended
      notMade2: -> none ended
      flush: fail5
      """
    ),
    (
      .endedClosing,
      """
      attach, other, foreign, open, restore: over9
      closed: finish -> none ended
      flush: fail5
      """
    ),
    (
      .ended,
      """
      attach, other, foreign, open, restore: over9
      flush: fail5
      """
    ),
  ]

  @Test func theTableIsFull() { #expect(Self.table.map(\.0) == Start.allCases) }

  @Test(arguments: table.indices) func everyFact(row: Int) throws {
    let (start, text) = Self.table[row]
    var cells: [Fact: String] = [:]
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ": ", maxSplits: 1)
      for name in parts[0].split(separator: ", ") {
        cells[try #require(Fact(rawValue: String(name)))] = String(parts[1])
      }
    }
    for fact in Fact.columns { #expect(Self.cell(start, fact) == cells[fact] ?? "", "\(start), \(fact)") }
  }
}
