import LarkspurHTTP
import TestKit
import Testing

/// Random worlds. What may not happen in any of them is checked in `DownloadWorld`.
@Suite struct DownloadModelTests {
  @Test func everyDownloadEndsWithOneVersion() {
    var seeds = SeededGenerator(for: "Downloads")
    for _ in 0..<200 { run(seeds.next()) }
  }

  private func run(_ seed: UInt64) {
    var world = DownloadWorld(seed: seed)
    world.start()
    for _ in 0..<200 where world.file == nil && world.step() {
      if world.end != nil, world.file == nil { world.start() }
    }
    // From now on nothing fails. Of three attempts the first may end because of what was before.
    world.isWild = false
    let version = world.mirrors.reduce(0) { max($0, $1.version) }
    for index in world.mirrors.indices { world.mirrors[index].version = version }
    for _ in 0..<3 where world.file == nil {
      if world.end != nil { world.start() }
      for _ in 0..<2000 where world.end == nil { _ = world.step() }
      guard world.end != nil else { break }
    }
    #expect(world.file != nil, "seed \(seed): \(String(describing: world.end))")
  }
}
