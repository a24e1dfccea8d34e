import TestKit

/// Random decisions of a world, drawn from its seed.
struct SeededRandom {
  private var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  /// Returns an independent generator for one part of the world, so that draws there do not affect other parts.
  mutating func fork() -> SeededRandom { SeededRandom(seed: generator.next()) }

  mutating func chance(_ part: Int, of whole: Int) -> Bool { Int(generator.next() % UInt64(whole)) < part }

  mutating func number(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + Int(generator.next() % UInt64(range.count))
  }

  mutating func time(_ range: ClosedRange<UInt64>) -> UInt64 {
    range.lowerBound + generator.next() % (range.upperBound - range.lowerBound + 1)
  }

  mutating func pick<T>(_ choices: [T]) -> T { choices[number(0...choices.count - 1)] }

  mutating func byte() -> UInt8 { UInt8(truncatingIfNeeded: generator.next()) }
}

/// Times in nanoseconds.
func microseconds(_ count: UInt64) -> UInt64 { count * 1_000 }
func milliseconds(_ count: UInt64) -> UInt64 { count * 1_000_000 }
func seconds(_ count: UInt64) -> UInt64 { count * 1_000_000_000 }
