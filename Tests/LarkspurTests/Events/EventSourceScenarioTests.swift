import TestKit
import Testing

/// Whole lives of event sources, drawn at random.
@Suite(.ownThread) struct EventSourceScenarioTests {
  /// Half of the worlds are those of every run, and half are new.
  @Test func noWorldBreaksARule() throws {
    var generator = SeededGenerator(for: "event source worlds")
    for index in 0..<600 {
      let seed = index < 300 ? UInt64(index) : generator.next()
      let world = try EventSourceScenario(seed: seed)
      world.run()
      #expect(world.complaints == [], "world \(seed)")
      if !world.complaints.isEmpty { return }
    }
  }
}
