import LarkspurSimulation
import TestKit
import Testing

/// Worlds of background transfers keep all rules while processes are killed and machines lose power. A failure names its
/// seed: `Simulate 1 SEED --transfers` runs that world again.
@Suite(.ownThread) struct TransferScenarioTests {
  @Test(arguments: 0..<8) func randomWorlds(part: UInt64) {
    var seeds = SeededGenerator(for: "worlds of transfers, part \(part)")
    var kills = 0
    for _ in 0..<1_250 {
      let seed = seeds.next() &+ part
      let scenario = TransferScenario(seed: seed)
      let report = scenario.run()
      #expect(report.complaints == [], "seed \(seed)")
      kills += report.kills
    }
    #expect(kills > 500)
  }

  @Test func oneSeedIsOneWorld() {
    for seed in 0..<20 as Range<UInt64> {
      let (one, other) = (TransferScenario(seed: seed), TransferScenario(seed: seed))
      #expect(one.run() == other.run(), "seed \(seed)")
    }
  }

  /// A disk on which a sync has no effect breaks the rules.
  @Test func aDiskThatDoesNotSyncIsFound() {
    var complaints = 0
    for seed in 0..<200 as Range<UInt64> {
      let scenario = TransferScenario(seed: seed, ignoresSync: true)
      complaints += scenario.run().complaints.count
    }
    #expect(complaints > 0)
  }
}
