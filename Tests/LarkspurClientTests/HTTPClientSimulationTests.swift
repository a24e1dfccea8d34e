import LarkspurSimulation
import TestKit
import Testing

/// Simulated worlds keep all rules also when their users have a client, and not its pool.
@Suite(.ownThread) struct HTTPClientSimulationTests {
  @Test(arguments: 0..<4) func randomWorlds(part: UInt64) throws {
    var seeds = SeededGenerator(for: "worlds of clients, part \(part)")
    var requests = 0
    for _ in 0..<250 {
      let report = try Scenario(seed: seeds.next() &+ part, users: .client).run()
      #expect(report.complaints == [], "seed \(report.seed): \(report.trace.lines.suffix(40))")
      requests += report.requests
    }
    #expect(requests > 1_000)
  }

  /// A retry policy against servers that fail: no request that may have had an effect is sent twice, the budget holds, and
  /// each request ends once. `Simulate 10000 --retries` runs more of them.
  @Test(arguments: 0..<4) func worldsOfRetries(part: UInt64) throws {
    var seeds = SeededGenerator(for: "worlds of retries, part \(part)")
    var repetitions = 0
    for _ in 0..<100 {
      let report = try Scenario(seed: seeds.next() &+ part, users: .retryingClient).run()
      #expect(report.complaints == [], "seed \(report.seed): \(report.trace.lines.suffix(40))")
      repetitions += report.repetitions
    }
    #expect(repetitions > 100)
  }

  /// The checks find defects of a policy.
  @Test(arguments: Scenario.Defect.allCases) func defectsOfAPolicy(defect: Scenario.Defect) throws {
    let complaints = try (0..<30 as Range<UInt64>).flatMap { seed in
      try Scenario(seed: seed, users: .retryingClient, defect: defect).run().complaints
    }
    let words = defect == .allMethods ? "was sent on connections" : "repetitions of"
    #expect(complaints.contains { $0.contains(words) })
    #expect(complaints.allSatisfy { $0.contains(words) }, "\(complaints.prefix(3))")
  }
}
