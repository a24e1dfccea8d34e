/// The position of a field: its name, and its value without the surrounding white space. Positions count from the first
/// byte of the head or trailer section.
public struct FieldPosition: Hashable, Sendable {
  // Positions fit in 32 bits, because `Limits` keeps every section small (300 KiB by default).
  @usableFromInline var nameStart: UInt32
  @usableFromInline var nameEnd: UInt32
  @usableFromInline var valueStart: UInt32
  @usableFromInline var valueEnd: UInt32

  public init(name: Range<Int>, value: Range<Int>) {
    self.init(
      nameStart: name.lowerBound, nameEnd: name.upperBound, valueStart: value.lowerBound, valueEnd: value.upperBound)
  }

  init(nameStart: Int, nameEnd: Int, valueStart: Int, valueEnd: Int) {
    self.nameStart = UInt32(truncatingIfNeeded: nameStart)
    self.nameEnd = UInt32(truncatingIfNeeded: nameEnd)
    self.valueStart = UInt32(truncatingIfNeeded: valueStart)
    self.valueEnd = UInt32(truncatingIfNeeded: valueEnd)
  }

  @inlinable
  public var name: Range<Int> { Int(nameStart)..<max(Int(nameStart), Int(nameEnd)) }
  @inlinable
  public var value: Range<Int> { Int(valueStart)..<max(Int(valueStart), Int(valueEnd)) }
  /// The length of the name. Different names mostly have different lengths.
  @inlinable
  public var nameCount: Int { Int(nameEnd &- nameStart) }
}

/// The positions of the fields of a head or a trailer section, in order. A folded value includes its line breaks. The
/// table keeps its memory from one response to the next.
public struct FieldTable: Sendable {
  /// The entries. Only the first `used` ones are valid; the others are spare room.
  @usableFromInline var storage: [FieldPosition] = []
  @usableFromInline var used = 0

  public init() {}

  @inlinable
  public var count: Int { used }

  @inlinable
  public subscript(_ index: Int) -> FieldPosition { storage[index] }

  public mutating func append(_ position: FieldPosition) {
    if count == storage.count { grow() }
    storage[count] = position
    used += 1
  }

  /// Extends the last field's value over a folded line from `start` to `end`.
  public mutating func extendLast(from start: Int, to end: Int) {
    guard count > 0 else { return }
    if storage[count - 1].value.isEmpty { storage[count - 1].valueStart = UInt32(truncatingIfNeeded: start) }
    storage[count - 1].valueEnd = UInt32(truncatingIfNeeded: end)
  }

  public mutating func removeAll() { used = 0 }

  /// Returns the first field called `name`.
  ///
  /// - Parameter bytes: The section that the table describes.
  public func first(named name: CaseInsensitiveToken, in bytes: Span<UInt8>) -> FieldPosition? {
    let index = index(of: name, from: 0, in: bytes)
    return index < count ? storage[index] : nil
  }

  /// Whether there is a field with one of the two names.
  public func contains(_ one: CaseInsensitiveToken, or other: CaseInsensitiveToken, in bytes: Span<UInt8>) -> Bool {
    let lengths = Self.lengths(one) | Self.lengths(other)
    var index = self.index(from: 0, nameLengths: lengths)
    while index < count {
      let name = storage[index].name
      if one.matches(bytes, name) || other.matches(bytes, name) { return true }
      index = self.index(from: index + 1, nameLengths: lengths)
    }
    return false
  }

  private static func lengths(_ token: CaseInsensitiveToken) -> UInt32 {
    1 << UInt32(truncatingIfNeeded: token.count & 31)
  }

  /// Returns the index of the first field called `name` from `index` on, or `count`.
  public func index(of name: CaseInsensitiveToken, from index: Int, in bytes: Span<UInt8>) -> Int {
    let lengths = Self.lengths(name)
    var index = self.index(from: index, nameLengths: lengths)
    while index < count, !name.matches(bytes, storage[index].name) {
      index = self.index(from: index + 1, nameLengths: lengths)
    }
    return index
  }

  /// Returns the index of the first field from `index` on whose name has one of `lengths`, or `count`.
  ///
  /// Performance: the length of the name rules out most fields without a comparison.
  ///
  /// - Parameter lengths: A bit set. Bit N stands for names of N bytes, modulo 32.
  public func index(from index: Int, nameLengths lengths: UInt32) -> Int {
    // Safe: `used` entries are initialized.
    unsafe storage.withUnsafeBufferPointer { fields in
      var index = max(index, 0)
      while index < used, unsafe lengths &>> UInt32(truncatingIfNeeded: fields[index].nameCount) & 1 == 0 {
        index &+= 1
      }
      return index
    }
  }

  private mutating func grow() {
    let nothing = FieldPosition(name: 0..<0, value: 0..<0)
    storage.append(contentsOf: repeatElement(nothing, count: max(storage.count, 16)))
  }

  /// Lends room behind the last field to `fill`, which returns the number of fields it added. The room is empty once
  /// the table holds `countMax` fields.
  @unsafe
  mutating func withRoom(upTo countMax: Int, _ fill: (UnsafeMutableBufferPointer<FieldPosition>) -> Int) {
    if count == storage.count, count < countMax { grow() }
    let room = count..<max(count, min(storage.count, countMax))
    used += unsafe storage.withUnsafeMutableBufferPointer {
      unsafe fill(UnsafeMutableBufferPointer(rebasing: $0[room]))
    }
  }
}
