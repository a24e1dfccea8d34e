import TestKit
import Testing

/// Whole conversations of a WebSocket task's connection, drawn at random.
@Suite(.ownThread) struct WebSocketScenarioTests {
  /// Half of the worlds are those of every run, and half are new.
  @Test func noWorldBreaksARule() throws {
    var generator = SeededGenerator(for: "WebSocket worlds")
    for index in 0..<600 {
      let seed = index < 300 ? UInt64(index) : generator.next()
      let world = try WebSocketScenario(seed: seed)
      world.run()
      #expect(world.complaints == [], "world \(seed)")
      if !world.complaints.isEmpty { return }
    }
  }
}
