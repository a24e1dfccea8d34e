import LarkspurBytes
import LarkspurHTTP
import TestKit
import Testing

/// The machine agrees with a model that keeps everything in one list and searches that.
@Suite struct NameModelTests {
  typealias Machine = NameMachine<[Int]>

  struct Model {
    enum Life: Equatable {
      case queued
      case running(UInt64)
    }

    var limits: NameLimits
    /// In the order in which they began.
    var lookUps: [(name: HostName, life: Life, waiters: [UInt64])] = []
    var entries: [(name: HostName, answer: NameAnswer<[Int]>, expiry: Deadline)] = []
    var started: UInt64 = 0

    var running: Int { lookUps.count { $0.life != .queued } }

    mutating func startWhatMay() -> Machine.Actions {
      var actions: Machine.Actions = []
      while running < limits.lookUpsMax, let index = lookUps.firstIndex(where: { $0.life == .queued }) {
        started += 1
        lookUps[index].life = .running(started)
        actions.append(.start(started, lookUps[index].name))
      }
      return actions
    }

    mutating func requested(_ name: HostName, _ waiter: UInt64, _ now: Deadline) -> Machine.Actions {
      if let entry = entries.first(where: { $0.name == name && $0.expiry > now }) {
        return [.answer(waiter, entry.answer)]
      }
      entries.removeAll { $0.name == name }
      guard lookUps.reduce(0, { $0 + $1.waiters.count }) < limits.waitersMax else { return [.refuse(waiter)] }
      if let index = lookUps.firstIndex(where: { $0.name == name }) {
        lookUps[index].waiters.append(waiter)
        return []
      }
      if running >= limits.lookUpsMax, lookUps.count - running >= limits.queuedNamesMax { return [.refuse(waiter)] }
      lookUps.append((name, .queued, [waiter]))
      return startWhatMay()
    }

    mutating func abandoned(_ waiter: UInt64) -> Machine.Actions {
      guard let index = lookUps.firstIndex(where: { $0.waiters.contains(waiter) }) else { return [] }
      lookUps[index].waiters.removeAll { $0 == waiter }
      guard lookUps[index].waiters.isEmpty else { return [] }
      if case .running(let number) = lookUps[index].life { return [.cancel(number, lookUps[index].name)] }
      lookUps.remove(at: index)
      return []
    }

    mutating func answered(_ number: UInt64, _ answer: NameAnswer<[Int]>, _ now: Deadline) -> Machine.Actions {
      guard let index = lookUps.firstIndex(where: { $0.life == .running(number) }) else { return [] }
      let ended = lookUps.remove(at: index)
      switch answer {
      case .found: remember(ended.name, answer, now.advanced(by: limits.foundLifetime))
      case .noSuchName: remember(ended.name, answer, now.advanced(by: limits.noSuchNameLifetime))
      case .failed, .unavailable: break
      }
      return ended.waiters.map { .answer($0, answer) } + startWhatMay()
    }

    mutating func remember(_ name: HostName, _ answer: NameAnswer<[Int]>, _ expiry: Deadline) {
      if entries.count >= limits.entriesMax {
        entries.sort { $0.expiry < $1.expiry }
        entries.removeFirst()
      }
      entries.append((name, answer, expiry))
    }

    mutating func cancelled(_ number: UInt64) -> Machine.Actions {
      guard let index = lookUps.firstIndex(where: { $0.life == .running(number) }) else { return [] }
      if lookUps[index].waiters.isEmpty {
        lookUps.remove(at: index)
        return startWhatMay()
      }
      started += 1
      lookUps[index].life = .running(started)
      return [.start(started, lookUps[index].name)]
    }
  }

  @Test func randomScripts() throws {
    var random = SeededGenerator(for: "NameModelTests")
    var limits = NameLimits()
    limits.lookUpsMax = 2
    limits.queuedNamesMax = 3
    limits.waitersMax = 8
    limits.entriesMax = 3
    // No two entries expire at the same moment: the order in which equal ones are evicted is unspecified.
    limits.noSuchNameLifetime = .microseconds(2_000_500)
    let names = try ["a", "b", "c", "d", "e", "f", "g", "g."].map { try HostName($0) }
    for _ in 0..<200 {
      var machine = Machine(limits: limits)
      var model = Model(limits: limits)
      var now = Deadline(nanoseconds: 1)
      var waiter: UInt64 = 0
      var open: Set<UInt64> = []
      for _ in 0..<200 {

        now = now.advanced(by: .milliseconds(1 + Int(random.next() % 1500)))
        var actions: Machine.Actions = []
        let expected: Machine.Actions
        let number = UInt64.random(in: model.started &- min(model.started, 3)...model.started + 1, using: &random)
        switch random.next() % 10 {
        case 0..<5:
          let name = names[Int(random.next() % UInt64(names.count))]
          waiter += 1
          open.insert(waiter)
          machine.requested(name, by: waiter, now: now, into: &actions)
          expected = model.requested(name, waiter, now)
        case 5..<7:
          let gone = open.sorted().randomElement(using: &random) ?? 0
          machine.abandoned(by: gone, into: &actions)
          expected = model.abandoned(gone)
          open.remove(gone)
        case 7..<9:
          let answers: [NameAnswer<[Int]>] = [
            .found([Int(number)]), .noSuchName(reason: "\(number)"), .failed(reason: "\(number)"),
          ]
          let answer = answers[Int(random.next() % 3)]
          machine.answered(number, answer, now: now, into: &actions)
          expected = model.answered(number, answer, now)
        default:
          machine.cancelled(number, into: &actions)
          expected = model.cancelled(number)
        }
        try #require(actions == expected, "seed \(random.seed)")
        for action in actions {
          switch action {
          // Each waiter gets one answer, and only while it waits.
          case .answer(let waiter, _), .refuse(let waiter): try #require(open.remove(waiter) != nil)
          case .start, .cancel: break
          }
        }
        try #require(machine.waiterCount == open.count)
        try #require(machine.runningCount == model.running && machine.runningCount <= limits.lookUpsMax)
        try #require(machine.queuedCount == model.lookUps.count - model.running)
        try #require(machine.entryCount == model.entries.count && machine.entryCount <= limits.entriesMax)
      }
    }
  }
}
