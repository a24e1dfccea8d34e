extension Decompressor {
  /// What one step may bring out when the caller has no opinion, in bytes.
  package static let stepBytes = 64 << 10

  /// One step that appends to an array at most ``stepBytes``.
  package mutating func decode(
    _ input: Span<UInt8>, consumed: inout Int, appendingTo output: inout [UInt8], atMost count: Int = stepBytes
  ) throws(CodingError) -> Progress {
    var progress = Progress.needsInput
    try output.append(adding: count) { room throws(CodingError) in
      progress = try decode(input, consumed: &consumed, into: &room)
    }
    return progress
  }
}

/// Undoes the codings of a whole body at once, `codings` in the order in which they were applied.
package func decompressed(
  _ bytes: [UInt8], _ codings: [ContentCoding], limits: CodingLimits = CodingLimits()
) throws(CodingError) -> [UInt8] {
  var decompressor = try Decompressor(codings, limits: limits)
  var output: [UInt8] = []
  var consumed = 0
  while try decompressor.decode(bytes.span, consumed: &consumed, appendingTo: &output) == .hasMore {}
  try decompressor.finish()
  return output
}
