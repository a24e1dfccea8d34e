/// Compresses a stream of bytes in constant memory.
package struct Compressor: ~Copyable {
  private var deflater: Deflater

  /// Creates a compressor.
  ///
  /// - Parameter level: The level, from 0 (stored) to 9 (smallest).
  package init(_ format: CompressionFormat, level: Int = 6) throws(CodingError) {
    deflater = try Deflater(format, level: level)
  }

  /// Compresses some bytes, and appends the output that is ready, if any.
  package mutating func compress(_ bytes: Span<UInt8>, into output: inout [UInt8]) throws(CodingError) {
    try deflater.run(bytes, flush: .none, into: &output)
  }

  /// Appends the output that zlib still holds, and the end of the format.
  package mutating func finish(into output: inout [UInt8]) throws(CodingError) {
    let nothing: [UInt8] = []
    try deflater.run(nothing.span, flush: .finish, into: &output)
  }
}
