extension Decompressor {
  /// Default maximum of output of one step, in bytes.
  package static let stepBytes = 64 << 10

  /// Decodes one step and appends at most `count` bytes to an array.
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

/// Undoes the codings of a whole body at once.
///
/// - Parameter codings: The codings in the order in which they were applied.
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
