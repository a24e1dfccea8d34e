import Foundation
import LarkspurSimulation
import TestKit
import Testing

/// Simulated worlds keep all rules. A failure names its seed: `Simulate 1 SEED` runs that world again and prints its
/// events.
@Suite(.ownThread) struct SimulationTests {
  @Test(arguments: 0..<8) func randomWorlds(part: UInt64) throws {
    var seeds = SeededGenerator(for: "worlds, part \(part)")
    var inlineCallbacks = 0
    for _ in 0..<250 {
      let report = try Scenario(seed: seeds.next() &+ part).run()
      #expect(report.complaints == [], "seed \(report.seed): \(report.trace.lines.suffix(40))")
      inlineCallbacks += report.inlineCallbacks
    }
    #expect(inlineCallbacks > 100)
  }

  @Test func oneSeedIsOneWorld() throws {
    for seed in 0..<20 as Range<UInt64> {
      let one = try Scenario(seed: seed).run()
      let other = try Scenario(seed: seed).run()
      #expect(one.trace.digest == other.trace.digest, "seed \(seed)")
      #expect(one.trace.lines == other.trace.lines, "seed \(seed)")
      #expect(one.trace.lines.count > 2, "seed \(seed)")
    }
    #expect(try Scenario(seed: 1).run().trace.digest != Scenario(seed: 2).run().trace.digest)
  }

  /// A world's digest is the same in another process, where hash tables have another order.
  @Test func alsoInAnotherProcess() throws {
    let tests = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
    let process = Process()
    process.executableURL = tests.deletingLastPathComponent().appending(path: "Simulate")
    process.arguments = ["100", "1", "--digests"]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    let here = try (1...100 as ClosedRange<UInt64>).map { "\($0) \(try Scenario(seed: $0).run().trace.digest)\n" }
      .joined()
    #expect(text == here)
  }
}
