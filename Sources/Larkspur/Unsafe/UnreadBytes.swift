/// Bytes that have arrived, and are taken one by one.
///
/// Performance: exclusivity checks at run time would cost ten times as much as the byte. One task at a time uses the
/// object, so it needs none.
@usableFromInline
class UnreadBytes {
  @exclusivity(unchecked) @usableFromInline final var piece: [UInt8] = []
  @exclusivity(unchecked) @usableFromInline final var position = 0

  init() {}

  @inlinable
  final func take() -> UInt8? {
    // Safe: one task at a time uses the object, and no access happens within another one.
    guard unsafe position < piece.count else { return nil }
    unsafe position += 1
    return unsafe piece[position - 1]
  }

  /// The bytes that have not been taken.
  final var rest: [UInt8] {
    // Safe: one task at a time uses the object, and no access happens within another one.
    get { unsafe Array(piece[position...]) }
    set {
      unsafe piece = newValue
      unsafe position = 0
    }
  }
}
