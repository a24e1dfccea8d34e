/// Bytes that have come, and are taken one by one.
///
/// It is one task's at a time, and so accesses need no check at run time, which would cost ten times as much as the byte.
@usableFromInline
class UnreadBytes {
  @exclusivity(unchecked) @usableFromInline final var piece: [UInt8] = []
  @exclusivity(unchecked) @usableFromInline final var position = 0

  init() {}

  @inlinable
  final func take() -> UInt8? {
    // Safe: see above; no access is within another one.
    guard unsafe position < piece.count else { return nil }
    unsafe position += 1
    return unsafe piece[position - 1]
  }

  /// Those that have not been taken.
  final var rest: [UInt8] {
    // Safe: as above.
    get { unsafe Array(piece[position...]) }
    set {
      unsafe piece = newValue
      unsafe position = 0
    }
  }
}
