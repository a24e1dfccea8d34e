import LarkspurBytes
import LarkspurHTTP
import TestKit
import Testing

/// Random worlds, and random facts. What may not happen in any of them is checked in `DownloadWorld`.
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

  // MARK: - Facts of any kind

  private static let numbers = [0, 1, 2, 7, 40, 999_999_999_999_999_999, .max - 1, .max, -1, .min]
  private static let ranges = [
    "bytes 0-6/7", "bytes 0-0/*", "bytes 1-6/7", "bytes 0-999999999999999997/999999999999999998", "bytes 7-8/9",
    "bytes */7", "bytes */0", "bytes */*", "bytes 0-9999999999999999999/*", "items 0-6/7", "",
  ]

  /// Facts in any order, with numbers that a peer or an owner can choose at will, neither trap nor let the end be followed
  /// by anything.
  @Test func factsOfAnyKind() {
    var random = SeededGenerator(for: "Facts of downloads")
    for _ in 0..<200 {
      var rules = DownloadRules()
      func number() -> Int { Self.numbers.randomElement(using: &random) ?? 0 }
      (rules.lanesMax, rules.pieceBytes, rules.lowestRate) = (number() % 5, number(), number())
      (rules.expectedTotal, rules.requiresResumable) = (.random(using: &random) ? number() : nil, number() == 7)
      let kept = ByteRanges([0..<1, 3..<max(number(), 4)]) ?? ByteRanges()
      let record = DownloadRecord(
        sources: [.init(url: "a", validator: "\"v\"")], total: .random(using: &random) ? number() : nil, coding: nil,
        kept: kept, inode: 7)
      var machine = DownloadMachine(
        rules, urls: ["a", "b"], record: .random(using: &random) ? record : nil, inode: 7, fraction: { 2 })
      var hasEnded = false
      for step in 0..<60 {
        let actions = step == 0 ? machine.start(now: 0) : fact(&machine, Double(step), &random)
        #expect(!hasEnded || actions.isEmpty)
        hasEnded = hasEnded || machine.phase == .ended
        #expect(machine.lanes.count <= DownloadRules.lanesLimit && machine.keptCount >= 0)
      }
    }
  }

  private func fact(
    _ machine: inout DownloadMachine, _ now: Double, _ random: inout SeededGenerator
  ) -> [DownloadMachine.Action] {
    func number() -> Int { Self.numbers.randomElement(using: &random) ?? 0 }
    let lane = machine.lanes.randomElement(using: &random)?.number ?? number()
    let error: DownloadMachine.DiskError? = number() == 7 ? .full : nil
    switch Int.random(in: 0..<16, using: &random) {
    case 0...4:
      var fields: FieldList = []
      if Bool.random(using: &random) {
        fields.append(Field("ETag", ["\"v\"", "\"w\"", "W/\"v\""].randomElement(using: &random) ?? ""))
      }
      if Bool.random(using: &random) {
        fields.append(Field("Content-Range", Self.ranges.randomElement(using: &random) ?? ""))
      }
      if number() == 7 { fields.append(Field("Accept-Ranges", "bytes")) }
      if number() == 7 { fields.append(Field("Retry-After", "\(number())")) }
      if Bool.random(using: &random) { fields.append(Field("Content-Length", "\(number())")) }
      let status = [200, 206, 206, 206, 416, 503, 203, number()].randomElement(using: &random) ?? 0
      return machine.head(lane, .init(status: status, fields: fields, wallSeconds: now), now: now)
    case 5...7:
      let (space, actions) = machine.space(lane, number(), now: now)
      guard case .write(_, let offset, let count) = space else { return actions }
      return actions + machine.wrote(lane, offset..<(offset + count), now: now)
    case 8:
      let (one, other) = (number(), number())
      return machine.wrote(lane, min(one, other)..<max(one, other), now: now)
    case 9: return machine.ended(lane, number() == 7 ? .badDigest : .complete, now: now)
    case 10: return machine.ended(lane, .failed(isOfConnection: number() != 7), now: now)
    case 11: return machine.checkpointed(error, now: now) + machine.reserved(error, now: now)
    case 12: return machine.discarded(error, now: now) + machine.passTime(now: now)
    case 13:
      let (one, other) = (number(), number())
      return machine.verified(number() == 7 ? .fits : .wrong([min(one, other)..<max(one, other)]), now: now)
    case 14: return machine.pause(now: now) + machine.installed(error, now: now)
    default: return number() == 7 ? machine.cancel(now: now) : machine.resume(now: now)
    }
  }
}
