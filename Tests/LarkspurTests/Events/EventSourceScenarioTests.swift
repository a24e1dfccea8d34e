import TestKit
import Testing

/// Whole lives of event sources, drawn at random.
@Suite(.ownThread) struct EventSourceScenarioTests {
  /// The client forgets the ID that it began with before the server has sent an event.
  private static let forgetfulWorld: UInt64 = 15_295_561_208_307_464_227

  /// Half of the worlds are those of every run, and half are new.
  @Test func noWorldBreaksARule() throws {
    var generator = SeededGenerator(for: "event source worlds")
    for index in 0..<600 {
      let seed = index < 300 ? UInt64(index) : index == 300 ? Self.forgetfulWorld : generator.next()
      let world = try EventSourceScenario(seed: seed)
      world.run()
      #expect(world.complaints == [], "world \(seed)")
      if !world.complaints.isEmpty { return }
    }
  }
}
