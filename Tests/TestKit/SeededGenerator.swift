import Foundation

/// Reproducible random numbers: the seed is printed when a test starts, and `LARKSPUR_SEED` sets it.
package struct SeededGenerator: RandomNumberGenerator {
  package let seed: UInt64
  private var state: UInt64

  package init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  /// Creates a generator with a new seed for each run, and prints the seed with `purpose`.
  package init(for purpose: String) {
    let chosen = ProcessInfo.processInfo.environment["LARKSPUR_SEED"].flatMap { UInt64($0) }
    self.init(seed: chosen ?? .random(in: 0...UInt64(UInt32.max)))
    print("\(purpose): LARKSPUR_SEED=\(seed)")
  }

  /// Returns the next number (SplitMix64, for which every seed is a good one).
  package mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
