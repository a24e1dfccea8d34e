extension ByteQueue {
  /// Lends the first segments, at most `limit` of them, for one gathered write.
  ///
  /// The pointers are good until `body` returns.
  @unsafe
  package borrowing func withSegments(
    atMost limit: Int, _ body: (UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Void
  ) {
    let count = min(limit, segmentCount)
    unsafe withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: count) { list in
      unsafe gather(0, count, into: list, body)
    }
  }

  /// One stack frame a segment: `withUnsafeBytes` promises its pointer only inside its closure, so `body`
  /// has to run inside all of them.
  @unsafe
  private borrowing func gather(
    _ index: Int, _ count: Int, into list: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>,
    _ body: (UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Void
  ) {
    guard index < count else { return unsafe body(UnsafeBufferPointer(list)) }
    let offset = index == 0 ? firstOffset : 0
    unsafe segment(index).withUnsafeBytes { bytes in
      unsafe list.initializeElement(at: index, to: UnsafeRawBufferPointer(rebasing: bytes[offset...]))
      unsafe gather(index + 1, count, into: list, body)
    }
  }
}
