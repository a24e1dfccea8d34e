/// A token that is compared without regard to letter case: letters, digits, `-` and `_`.
///
/// Performance: comparing a token of 8 to 24 bytes takes a few instructions. All code is inlined, so that a token
/// written where it is compared becomes constants (decision 23).
public struct CaseInsensitiveToken: Sendable, ExpressibleByStringLiteral {
  // Eight bytes each, in memory order: the first, those behind them, and the last. They may overlap.
  @usableFromInline let first: UInt64
  @usableFromInline let middle: UInt64
  @usableFromInline let last: UInt64
  @usableFromInline let letters: StaticString
  public let count: Int

  @inlinable
  @inline(__always)
  public init(stringLiteral letters: StaticString) { self.init(letters) }

  /// Creates a token.
  ///
  /// - Parameter letters: The token in lower case.
  @inlinable
  @inline(__always)
  public init(_ letters: StaticString) {
    let count = letters.utf8CodeUnitCount
    // Safe: a token of eight bytes or more is read within its bounds. A shorter one is compared byte by byte.
    let start = unsafe UnsafeRawPointer(letters.utf8Start)
    first = unsafe Self.eight(of: start, count, from: 0)
    middle = unsafe Self.eight(of: start, count, from: 8)
    last = unsafe Self.eight(of: start, count, from: 16)
    self.letters = letters
    self.count = count
  }

  /// Bit 5 of each of eight bytes.
  @inlinable
  static var small: UInt64 { 0x2020_2020_2020_2020 }

  @unsafe
  @inlinable
  @inline(__always)
  static func eight(of start: UnsafeRawPointer, _ count: Int, from offset: Int) -> UInt64 {
    count < 8 ? 0 : unsafe start.loadUnaligned(fromByteOffset: min(offset, count - 8), as: UInt64.self) | small
  }

  /// Whether `range` of `bytes` equals this token in any letter case. The bytes must be visible ASCII.
  @inlinable
  @inline(__always)
  public func matches(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count == count, range.lowerBound >= 0, range.upperBound <= bytes.count else { return false }
    // Safe: both sides have `count` bytes. Setting bit 5 on both sides turns upper case into lower case, leaves lower
    // case, digits and `-` as they are, and changes `_` in the same way on both sides.
    return unsafe bytes.withUnsafeBytes { raw in
      guard let text = unsafe raw.baseAddress.map({ unsafe $0 + range.lowerBound }) else { return count == 0 }
      guard 8...24 ~= count else { return unsafe matchesLetters(text) }
      let small = Self.small
      return unsafe text.loadUnaligned(as: UInt64.self) | small == first
        && text.loadUnaligned(fromByteOffset: min(8, count - 8), as: UInt64.self) | small == middle
        && text.loadUnaligned(fromByteOffset: min(16, count - 8), as: UInt64.self) | small == last
    }
  }

  @unsafe
  @inlinable
  func matchesLetters(_ text: UnsafeRawPointer) -> Bool {
    let start = unsafe UnsafeRawPointer(letters.utf8Start)
    for offset in 0..<count {
      let byte = unsafe text.load(fromByteOffset: offset, as: UInt8.self) | 0x20
      if unsafe byte != start.load(fromByteOffset: offset, as: UInt8.self) | 0x20 { return false }
    }
    return true
  }
}
