import LarkspurBytes

/// Where the fields of a head or of a trailer section stand in its bytes. Values are trimmed of white space at
/// both ends; a folded value still holds its line breaks, which `FieldValue` reads as one space.
package struct FieldTable {
  package struct Entry: Hashable, Sendable {
    private var nameStart: UInt32
    private var nameEnd: UInt32
    fileprivate var valueStart: UInt32
    fileprivate var valueEnd: UInt32

    // Positions fit: the parser's limits keep every section below 2 GiB.
    init(name: Range<Int>, value: Range<Int>) {
      nameStart = UInt32(truncatingIfNeeded: name.lowerBound)
      nameEnd = UInt32(truncatingIfNeeded: name.upperBound)
      valueStart = UInt32(truncatingIfNeeded: value.lowerBound)
      valueEnd = UInt32(truncatingIfNeeded: value.upperBound)
    }

    package var name: Range<Int> { Int(nameStart)..<Int(nameEnd) }
    package var value: Range<Int> { Int(valueStart)..<Int(valueEnd) }
  }

  package private(set) var entries: [Entry] = []

  package init() {}

  package var count: Int { entries.count }

  mutating func append(_ entry: Entry) { entries.append(entry) }

  /// Lets the last field's value go on after a fold, from `start` to `end`.
  mutating func extendLast(from start: Int, to end: Int) {
    let last = entries.count - 1
    guard last >= 0 else { return }
    if entries[last].valueStart == entries[last].valueEnd { entries[last].valueStart = UInt32(truncatingIfNeeded: start) }
    entries[last].valueEnd = UInt32(truncatingIfNeeded: end)
  }

  mutating func removeAll() { entries.removeAll(keepingCapacity: true) }

  /// The first field called `name`, which is given in lower case. `bytes` is what the table describes.
  package func first(named name: StaticString, in bytes: Span<UInt8>) -> Entry? {
    for entry in entries where Scan.matches(bytes, entry.name, lowercase: name) { return entry }
    return nil
  }
}
