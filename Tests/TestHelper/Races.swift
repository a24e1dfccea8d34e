// Races for ThreadSanitizer to find, and code without a race, of which it must report none.
//
//   TestHelper races mutex           threads that count under a lock
//   TestHelper races atomic          threads that count with an atomic integer
//   TestHelper races woken           a thread that wakes a task after its last access
//   TestHelper races race            has a race: nothing orders the threads
//   TestHelper races beside-mutex    has a race: one of the threads does not take the lock that the others take
//   TestHelper races beside-woken    has a race: the thread wakes the task before its last access

import CRuntimeOrder
import LarkspurIO
import LarkspurTransport
import Synchronization

private final class Counters: @unchecked Sendable {
  let locked = Mutex(0)
  let atomic = Atomic(0)
  var plain = 0
}

private let rounds = 100_000
private let threadCount = 4

private func count(_ thread: Int, _ mode: String, _ counters: Counters) {
  for _ in 0..<rounds {
    switch mode {
    case "mutex": counters.locked.withLock { $0 += 1 }
    case "atomic": counters.atomic.add(1, ordering: .relaxed)
    case "beside-mutex" where thread > 0: counters.locked.withLock { _ in counters.plain += 1 }
    default: counters.plain += 1
    }
  }
}

/// A task and a thread count in turn: the thread counts and then wakes the task, in most rounds before the task has
/// suspended.
private final class Turns: Sendable {
  private struct State {
    var waiter: TaskContinuation?
    var isOver = false
  }
  private let mode: String
  private let counters: Counters
  private let state = Mutex(State())
  private let hasWoken = Atomic(false)

  init(_ mode: String, _ counters: Counters) { (self.mode, self.counters) = (mode, counters) }

  func count() async {
    for round in 0..<rounds {
      await TaskContinuation.suspend { waiter in
        state.withLock { $0.waiter = waiter }
        // Polls for a number of loads that differs by round, so that the wake finds the task in different states.
        var looks = round % 1024
        while looks > 0, !hasWoken.load(ordering: .relaxed) { looks -= 1 }
      }
      hasWoken.store(false, ordering: .relaxed)
      counters.plain += 1
    }
    state.withLock { $0.isOver = true }
  }

  func wake() {
    while true {
      let (waiter, isOver) = state.withLock { state in (state.waiter.take(), state.isOver) }
      if isOver { return }
      guard let waiter else { continue }
      if mode == "woken" { counters.plain += 1 }
      waiter.resume()
      if mode == "beside-woken" { counters.plain += 1 }
      hasWoken.store(true, ordering: .relaxed)
    }
  }
}

func runRaces(_ arguments: [String]) async throws {
  guard arguments.count == 1 else { throw Failure.wrongArguments }
  let mode = arguments[0]
  // `counters` is no global variable: the lazy initialization of one could order the threads.
  let counters = Counters()
  switch mode {
  case "woken", "beside-woken":
    let turns = Turns(mode, counters)
    let waker = try SystemThread(name: "waker") { turns.wake() }
    await Task { @concurrent in await turns.count() }.value
    waker.join()
  case "mutex", "atomic", "race", "beside-mutex":
    let threads = try (0..<threadCount).map { number in
      try SystemThread(name: "count-\(number)") { count(number, mode, counters) }
    }
    for thread in threads { thread.join() }
  default: throw Failure.wrongArguments
  }
  // A lock that does not exclude, or an update that is lost, fails here as well.
  let counted = counters.locked.withLock { $0 } + counters.atomic.load(ordering: .relaxed) + counters.plain
  let all: [String: Int] = ["mutex": threadCount * rounds, "atomic": threadCount * rounds, "woken": 2 * rounds]
  guard all[mode] == nil || all[mode] == counted else { throw Failure("\(counted) counted") }
}
