// A long run in a short time: a million requests over kept connections, twenty thousand that are cancelled at random
// moments, and ten thousand over a connection each; half of each over TLS. Prints what is left behind, and exits with 1
// if anything is, or if a request failed.
//
// Usage: `Soak [REQUESTS [CANCELLATIONS [CONNECTIONS [SEED [GROWTH]]]]]`; GROWTH is the number of KiB that the
// allocator may keep.
//
// `Soak stream [BYTES]` sends and receives bodies of ten GiB, and prints the peak memory of each way of transfer.

import Glibc
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTransport
import TestKit

func secure(_ peer: Peer) throws -> Security {
  var configuration = TLSConfiguration()
  configuration.roots = .only(Certificate.read(peer.root) ?? [])
  return Security(try TLSContext(configuration))
}

func check(_ amount: Soak.Amount, seed: UInt64, growthKiBMax: Int) async throws -> Bool {
  let peer = try Peer()
  let loop = try ClientLoop()
  let routes = [
    Route(host: "127.0.0.1", port: peer.port),
    Route(host: "127.0.0.1", port: peer.securePort, security: try secure(peer)),
  ]
  let soaks = routes.map { Soak(to: $0, on: loop, seed: seed) }
  /// Runs one amount. The first run is a warm-up with a tenth of it: tables and caches then have their size.
  func run(_ amount: Soak.Amount) async -> Footprint {
    await loop.run { for soak in soaks { await soak.run(amount.divided(by: soaks.count)) } }
    return .now()
  }
  let before = await run(amount.divided(by: 10))
  let after = await run(amount)

  let grown = after.residentKiB - before.residentKiB
  let open = after.descriptors - before.descriptors
  let (tallies, slots, bytesLent) = await loop.run {
    for soak in soaks { soak.end() }
    return (soaks.map(\.tally), loop.slotsInUse, loop.chunkBytesLent)
  }
  for (tally, way) in zip(tallies, ["plain", "TLS"]) {
    print("\(way): \(tally.answered) answered, \(tally.cancelled) cancelled; failures: \(tally.failures)")
  }
  print(
    "\(before.residentKiB) KiB after the warm-up, \(after.residentKiB) at the end; left behind: \(open) descriptors, "
      + "\(slots) slots, \(bytesLent) bytes of chunks")
  // If nearly all cancellations come too late, or all come in time, the run has tested nothing.
  let cancelsInTime = tallies.allSatisfy { tally in
    amount.cancellations / 20...amount.cancellations ~= tally.cancelled
  }
  if !cancelsInTime { print("too few of the cancellations, or too many, came in time") }
  return try peer.end() && tallies.allSatisfy(\.failures.isEmpty) && cancelsInTime && grown <= growthKiBMax && open <= 0
    && slots == 0 && bytesLent == 0
}

do {
  let arguments = CommandLine.arguments.dropFirst()
  if arguments.first == Peer.command { exit(try Peer.serve()) }
  if arguments.first == "stream" {
    exit(try await Stream().check(bytes: arguments.dropFirst().first.flatMap(Int.init) ?? 10 << 30) ? 0 : 1)
  }
  var amount = Soak.Amount()
  let numbers = arguments.map { Int($0) ?? 0 }
  if numbers.count > 0 { amount.requests = numbers[0] }
  if numbers.count > 1 { amount.cancellations = numbers[1] }
  if numbers.count > 2 { amount.connections = numbers[2] }
  let seed = numbers.count > 3 ? UInt64(clamping: numbers[3]) : .random(in: 1...1_000_000)
  print("seed \(seed)")
  exit(try await check(amount, seed: seed, growthKiBMax: numbers.count > 4 ? numbers[4] : 4 * 1024) ? 0 : 1)
} catch {
  print("\(error)")
  exit(2)
}
