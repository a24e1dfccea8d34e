extension ByteQueue {
  /// Lends the first segments, at most `limit` of them and at most `bytesMax` bytes, for one gathered write.
  ///
  /// Safe: the pointers are valid until `body` returns, and each array is lent that long.
  @unsafe
  public borrowing func withSegments(
    atMost limit: Int, bytes bytesMax: Int = .max, _ body: (UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Void
  ) {
    let count = min(limit, segmentCount)
    if count == 1 {
      // Performance: most requests are one segment, which needs no list.
      return unsafe segment(0).withUnsafeBytes { bytes in
        let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[firstOffset...].prefix(bytesMax))
        unsafe withUnsafePointer(to: rest) { unsafe body(UnsafeBufferPointer(start: $0, count: 1)) }
      }
    }
    unsafe withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: count) { list in
      unsafe gather(0, count, bytesMax, into: list, body)
    }
  }

  /// Lends the segments from `index` on, with one stack frame for each: a pointer of `withUnsafeBytes` is valid only
  /// inside its closure, so `body` must run inside all of them.
  @unsafe
  private borrowing func gather(
    _ index: Int, _ count: Int, _ bytesMax: Int, into list: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>,
    _ body: (UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Void
  ) {
    guard index < count, bytesMax > 0 else { return unsafe body(UnsafeBufferPointer(rebasing: list[..<index])) }
    let offset = index == 0 ? firstOffset : 0
    unsafe segment(index).withUnsafeBytes { bytes in
      let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[offset...].prefix(bytesMax))
      unsafe list.initializeElement(at: index, to: rest)
      unsafe gather(index + 1, count, bytesMax - rest.count, into: list, body)
    }
  }
}
