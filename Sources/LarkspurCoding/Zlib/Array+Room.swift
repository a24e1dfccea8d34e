extension [UInt8] {
  /// Lends room for `count` more bytes, and keeps those that `fill` puts there. An error keeps none.
  mutating func append(
    adding count: Int, _ fill: (inout OutputRawSpan) throws(CodingError) -> Void
  ) throws(CodingError) {
    try append(addingCapacity: Swift.max(count, 0)) { (span: inout OutputSpan<UInt8>) throws(CodingError) in
      // A typed error does not pass through the standard library's inner closure.
      let result = unsafe span.withUnsafeMutableBufferPointer { buffer, initialized -> Result<Void, CodingError> in
        // Safe: the whole of the span is lent for the call, and `finalize` checks what was put there.
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
