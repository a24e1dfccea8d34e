import LarkspurTestSupport
import TestKit
import Testing

/// Runs the fuzz target's session over random inputs. A failure names its seed.
@Suite struct ConnectionSessionTests {
  @Test(arguments: 0..<8) func randomSessions(part: UInt64) {
    var seeds = SeededGenerator(for: "random sessions, part \(part)")
    for number in 0..<500 {
      var random = SeededGenerator(seed: seeds.next() &+ part)
      let input = (0..<Int.random(in: 0..<400, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      let complaints = runConnectionSession(input)
      #expect(complaints == [], "LARKSPUR_SEED=\(seeds.seed), input \(number) of part \(part)")
    }
  }

  @Test func constantSessions() {
    for byte in UInt8.min...UInt8.max {
      for count in [0, 1, 10, 300] {
        let complaints = runConnectionSession(Array(repeating: byte, count: count))
        #expect(complaints == [], "\(count) times \(byte)")
      }
    }
  }
}
