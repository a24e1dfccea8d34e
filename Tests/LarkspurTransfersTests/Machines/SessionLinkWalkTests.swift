import TestKit
import Testing

@testable import LarkspurTransfers

/// Tests sequences of facts that no table has.
@Suite(.ownThread) struct SessionLinkWalkTests {
  /// Whatever happens to the runner: each task ends once, each flush is confirmed once, the runner has all commands,
  /// and a session that is over does nothing more.
  @Test(arguments: 0..<8) func noTaskIsForgotten(part: UInt64) {
    for seed in part * 200..<(part + 1) * 200 {
      var world = SessionWorld(seed: seed)
      world.run(steps: 150)
      #expect(world.complaints == [])
    }
  }
}
