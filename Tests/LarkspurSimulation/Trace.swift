/// The events of a world: the latest ones as entries, and a digest of all of them.
package struct Trace {
  private struct Entry {
    var time: UInt64
    var event: StaticString
    var number: Int
    var value: Int
  }

  /// Number of latest entries that are kept.
  private static let entriesMax = 400

  private var entries: [Entry] = []
  private(set) var count = 0
  package private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325

  mutating func note(_ time: UInt64, _ event: StaticString, _ number: Int, _ value: Int = 0) {
    mix(time)
    mix(UInt64(truncatingIfNeeded: number))
    mix(UInt64(truncatingIfNeeded: value))
    event.withUTF8Buffer { for byte in $0 { mix(UInt64(byte)) } }
    let entry = Entry(time: time, event: event, number: number, value: value)
    if entries.count < Self.entriesMax { entries.append(entry) } else { entries[count % Self.entriesMax] = entry }
    count += 1
  }

  /// One step of FNV-1a, over a whole number at once.
  private mutating func mix(_ value: UInt64) { digest = (digest ^ value) &* 0x100_0000_01b3 }

  /// The entries, oldest first: time in microseconds, event, connection or request, value.
  package var lines: [String] {
    let first = count < Self.entriesMax ? 0 : count % Self.entriesMax
    return (entries[first...] + entries[..<first]).map { "\($0.time / 1000) \($0.event) \($0.number) \($0.value)" }
  }
}
