// Runs simulated worlds one after another until one breaks a rule.
//
// Usage: `Simulate [COUNT] [FIRST SEED] [--digests] [--transfers] [--downloads] [--retries]`. The seed rises by one from
// world to world. At the first world that breaks a rule, prints its seed, the broken rules and the last events, and exits
// with 1. `--digests` prints each world's digest: two processes print equal ones. `--transfers` runs worlds of background
// transfers, `--downloads` worlds of a file that is downloaded in pieces, and `--retries` worlds of a client that retries.
//
//     swift build -c release --product Simulate && .build/release/Simulate 1000000

import Glibc
import LarkspurSimulation

let arguments = CommandLine.arguments.dropFirst()
let numbers = arguments.compactMap { UInt64($0) }
let count = numbers.first ?? 10_000
let first = numbers.dropFirst().first ?? 1
let printsDigests = arguments.contains("--digests")

if arguments.contains("--transfers") {
  var kills = 0
  for number in 0..<count {
    let scenario = TransferScenario(seed: first &+ number)
    let report = scenario.run()
    kills += report.kills
    guard report.complaints.isEmpty else {
      print(TransferScenario(seed: first &+ number, isTraced: true).run().trace.suffix(400).joined(separator: "\n"))
      print("seed \(first &+ number), \(report.kills) kills:", report.complaints.joined(separator: "; "))
      exit(1)
    }
  }
  print("\(count) worlds of transfers, \(kills) kills")
  exit(0)
}

if arguments.contains("--downloads") {
  var (runs, kills, sent) = (0, 0, 0)
  for number in 0..<count {
    let report = DownloadScenario(seed: first &+ number).run()
    (runs, kills, sent) = (runs + report.runs, kills + report.kills, sent + report.requests)
    guard report.complaints.isEmpty else {
      print(DownloadScenario(seed: first &+ number, isTraced: true).run().trace.suffix(400).joined(separator: "\n"))
      print("seed \(first &+ number), \(report.kills) kills:", report.complaints.joined(separator: "; "))
      exit(1)
    }
  }
  print("\(count) worlds of downloads, \(runs) programs, \(kills) kills, \(sent) requests")
  exit(0)
}

let users = arguments.contains("--retries") ? Scenario.Users.retryingClient : .pool
var requests = 0
var repetitions = 0
var failures = 0
var connections = 0
var waits = 0
var inlineCallbacks = 0
let clock = ContinuousClock()
let start = clock.now

for number in 0..<count {
  let report = try Scenario(seed: first &+ number, users: users).run()
  requests += report.requests
  repetitions += report.repetitions
  failures += report.failures
  connections += report.connections
  waits += report.waits
  inlineCallbacks += report.inlineCallbacks
  if printsDigests { print(report.seed, report.trace.digest) }
  guard report.complaints.isEmpty else {
    print(report.trace.lines.joined(separator: "\n"))
    print(report.setting)
    print("\(report.ticks) turns, \(report.waits) waits, \(report.idleWaitsMost) idle in a row, \(report.seconds) s")
    print("seed \(report.seed):", report.complaints.joined(separator: "; "))
    exit(1)
  }
}
guard !printsDigests else { exit(0) }
let time = (clock.now - start) / .seconds(1)
print(
  "\(count) worlds, \(Int(Double(count) / time)) a second: \(requests) requests, \(repetitions) repetitions, \(failures) of them failed,"
    + " \(connections) connections, \(waits) waits, \(inlineCallbacks) callbacks in inline ticks")
