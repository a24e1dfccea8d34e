import LarkspurSimulation
import TestKit
import Testing

/// Worlds of downloads keep all rules while programs are killed and machines lose power. A failure names its seed:
/// `Simulate 1 SEED --downloads` runs that world again.
@Suite(.ownThread) struct DownloadScenarioTests {
  /// These worlds are equal each time. `Simulate` runs others, in any number.
  @Test(arguments: 0..<4) func randomWorlds(part: UInt64) {
    var kills = 0
    for seed in (part * 1_000)..<(part * 1_000 + 300) {
      let report = DownloadScenario(seed: seed).run()
      #expect(report.complaints == [], "seed \(seed)")
      kills += report.kills
    }
    #expect(kills > 100)
  }

  /// A program is killed at each of its calls of the disk in turn.
  @Test func aKillAtEachCall() {
    for seed in 0..<3 as Range<UInt64> {
      for call in 0..<1_000 {
        let report = DownloadScenario(seed: seed, killedCall: call).run()
        #expect(report.complaints == [], "seed \(seed), call \(call)")
        if report.kills == 0 { break }
      }
    }
  }

  @Test func oneSeedIsOneWorld() {
    for seed in 0..<20 as Range<UInt64> {
      let (one, other) = (DownloadScenario(seed: seed, isTraced: true), DownloadScenario(seed: seed, isTraced: true))
      #expect(one.run() == other.run(), "seed \(seed)")
    }
  }

  /// The checks find each fault of a driver or of a disk, in a world that breaks no rule without the fault.
  @Test(arguments: DownloadScenario.Plant.allCases) func aPlantedFaultIsFound(plant: DownloadScenario.Plant) {
    let found = (0..<2_000 as Range<UInt64>).contains { seed in
      !DownloadScenario(seed: seed, plant: plant).run().complaints.isEmpty
        && DownloadScenario(seed: seed).run().complaints.isEmpty
    }
    #expect(found)
  }
}
