import LarkspurTestSupport
import Testing

/// The fuzz target's body over random inputs. A failure names its seed.
@Suite struct ConnectionSessionTests {
  static let seed: UInt64 = 0x4c41_524b_5350_5552

  @Test(arguments: 0..<8) func randomSessions(part: UInt64) {
    for number in 0..<500 {
      var random = SplitMix(state: Self.seed &+ part << 32 &+ UInt64(number))
      let start = random.state
      let input = (0..<Int(random.next() % 400)).map { _ in UInt8(truncatingIfNeeded: random.next() >> 32) }
      let complaints = runConnectionSession(input)
      #expect(complaints == [], "seed \(start)")
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

/// Steele, Lea and Flood's generator: small, and good from any seed.
struct SplitMix {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
    return mixed ^ mixed >> 31
  }
}
