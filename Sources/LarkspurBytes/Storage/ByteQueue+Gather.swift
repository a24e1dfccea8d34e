extension ByteQueue {
  /// Lends the first segments, at most `limit` of them, for one gathered write.
  ///
  /// Safe: the pointers are good until `body` returns, and each array is lent that long.
  @unsafe
  package borrowing func withSegments(
    atMost limit: Int, _ body: (UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Void
  ) {
    let count = min(limit, segmentCount)
    if count == 1 {
      // Most requests are one segment: no list, no second frame.
      return unsafe segment(0).withUnsafeBytes { bytes in
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[firstOffset...])
        unsafe withUnsafePointer(to: rest) { unsafe body(UnsafeBufferPointer(start: $0, count: 1)) }
      }
    }
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
