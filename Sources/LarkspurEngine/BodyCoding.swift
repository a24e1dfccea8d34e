import LarkspurBytes
import LarkspurCoding
import LarkspurHTTP
import LarkspurTransport
import Synchronization

extension BodyCompression {
  /// The field of a compressed body.
  package static let field = Field("Content-Encoding", "gzip")

  /// Data of at most this number of bytes is compressed at once.
  package static let wholeBytesMax = 64 * 1024
  /// Size of a piece of longer data in bytes. Compressing it takes about 1 ms of the loop's time.
  private static let pieceBytes = 32 * 1024

  /// Returns the compressed body of some data, and how its length is announced, or `nil` if compression does not make
  /// short data shorter.
  ///
  /// - Parameter bytes: Returns a copy of a range of the data.
  package static func body(
    count: Int, _ bytes: @escaping @Sendable (Range<Int>) -> [UInt8]
  ) throws(CodingError) -> (RequestBody, RequestWriter.Body)? {
    guard count > wholeBytesMax else {
      let output = try compressed(bytes(0..<count), as: .gzip)
      return output.count < count ? (.bytes(output), .length(UInt(output.count))) : nil
    }
    let body = RequestBody.produced(length: nil) { writer in
      let compressor = try CompressingWriter(to: writer, length: nil)
      for start in stride(from: 0, to: count, by: pieceBytes) {
        try await compressor.write(bytes(start..<min(start + pieceBytes, count)))
      }
      try await compressor.end()
    }
    return (body, .chunked)
  }
}

/// Compresses the pieces of a body, and sends them. For any thread, and for several tasks at once: a piece is compressed
/// on the thread of its call.
package final class CompressingWriter: Sendable {
  private struct State: ~Copyable {
    var compressor: Compressor
    /// The bytes to send.
    var output: [UInt8] = []
    /// The number of bytes that a body of known length still lacks.
    var missing: Int?
  }

  private let writer: BodyWriter
  private let state: Mutex<State>

  /// - Parameter length: The number of bytes before compression, or `nil` if it is not known.
  package init(to writer: BodyWriter, length: Int?) throws(CodingError) {
    self.writer = writer
    state = Mutex(State(compressor: try Compressor(.gzip), missing: length))
  }

  /// Compresses a piece, and sends the bytes that zlib does not hold.
  ///
  /// - Throws: `BodyFailure.tooLong` for more bytes than announced, and the writer's error.
  package func write(_ piece: [UInt8]) async throws {
    try state.withLock { state in
      if let missing = state.missing {
        guard piece.count <= missing else { throw BodyFailure.tooLong }
        state.missing = missing - piece.count
      }
      try state.compressor.compress(piece.span, into: &state.output)
    }
    try await send()
  }

  /// Sends the end of the body.
  ///
  /// - Throws: `BodyFailure.tooShort` if bytes of a known length are missing, and the writer's error.
  package func end() async throws {
    try state.withLock { state in
      if let missing = state.missing, missing > 0 { throw BodyFailure.tooShort(missing: missing) }
      try state.compressor.finish(into: &state.output)
      // A later piece is too long.
      state.missing = 0
    }
    try await send()
  }

  private func send() async throws(TransportError) {
    try await writer.write { [self] in
      state.withLock { state in
        var output: [UInt8] = []
        swap(&output, &state.output)
        return output
      }
    }
  }
}
