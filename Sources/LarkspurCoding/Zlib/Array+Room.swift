extension [UInt8] {
  /// Appends the bytes that `fill` writes, of which there are at most `count`. If `fill` throws, its bytes are dropped.
  mutating func append(
    adding count: Int, _ fill: (inout OutputRawSpan) throws(CodingError) -> Void
  ) throws(CodingError) {
    try append(addingCapacity: Swift.max(count, 0)) { (span: inout OutputSpan<UInt8>) throws(CodingError) in
      // A typed error does not pass through the standard library's inner closure.
      let result = unsafe span.withUnsafeMutableBufferPointer { buffer, initialized -> Result<Void, CodingError> in
        // Safe: the whole span is lent for the call; `finalize` checks that `output` still describes it, and returns
        // the number of initialized bytes.
        let room = UnsafeMutableRawBufferPointer(buffer)
        var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        do throws(CodingError) {
          try fill(&output)
        } catch {
          return .failure(error)
        }
        initialized = unsafe output.finalize(for: room)
        return .success(())
      }
      try result.get()
    }
  }
}
