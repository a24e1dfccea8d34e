/// Bytes that have arrived, and are taken one by one.
///
/// Performance: exclusivity checks at run time would cost ten times as much as the byte. One task at a time uses the
/// object, so the checks are not needed.
@usableFromInline
class UnreadBytes {
  @exclusivity(unchecked) @usableFromInline final var piece: [UInt8] = []
  @exclusivity(unchecked) @usableFromInline final var position = 0

  init() {}

  @inlinable
  final func take() -> UInt8? {
    // Safe: one task at a time uses the object, and no access happens within another access.
    guard unsafe position < piece.count else { return nil }
    unsafe position += 1
    return unsafe piece[position - 1]
  }

  /// Lends the piece and the index of its first byte that has not been taken, which `body` moves on.
  final func consume<T, E: Error>(_ body: (Span<UInt8>, inout Int) throws(E) -> T) throws(E) -> T {
    // Safe: one task at a time uses the object, and `body` uses nothing of it. The copy keeps the bytes alive.
    let bytes = unsafe piece
    var index = unsafe position
    defer { unsafe position = min(max(index, 0), bytes.count) }
    return try body(bytes.span, &index)
  }

  /// The bytes that have not been taken.
  final var rest: [UInt8] {
    // Safe: one task at a time uses the object, and no access happens within another access.
    get { unsafe Array(piece[position...]) }
    set {
      unsafe piece = newValue
      unsafe position = 0
    }
  }
}
