// Shows what ThreadSanitizer sees: `RaceProbe mutex` and `RaceProbe atomic` have no race, `RaceProbe race` has one, and so
// has `RaceProbe beside-mutex`, where one of the threads forgets the lock that the others take.

import CMutexOrder
import LarkspurIO
import Synchronization

final class Counters: @unchecked Sendable {
  let locked = Mutex(0)
  let atomic = Atomic(0)
  var plain = 0
}

let rounds = 100_000
let counters = Counters()
let mode = CommandLine.arguments.dropFirst().first ?? ""

func count(_ thread: Int) {
  for _ in 0..<rounds {
    switch mode {
    case "mutex": counters.locked.withLock { $0 += 1 }
    case "atomic": counters.atomic.add(1, ordering: .relaxed)
    case "beside-mutex" where thread > 0: counters.locked.withLock { _ in counters.plain += 1 }
    default: counters.plain += 1
    }
  }
}

let threads = try (0..<4).map { number in try SystemThread(name: "count-\(number)") { count(number) } }
for thread in threads { thread.join() }
// A lock that does not hold, or an update that got lost, would show here as well.
let exact = counters.locked.withLock { $0 } + counters.atomic.load(ordering: .relaxed)
print(mode == "mutex" || mode == "atomic" ? "\(exact == 4 * rounds ? "all" : "not all") counted" : "counted")
