import LarkspurBytes
import LarkspurCoding
import LarkspurHTTP

/// Decodes the content codings of one response's body, in steps of bounded size.
package final class ContentDecoding {
  private var decompressor: Decompressor
  private var room = Chunk(capacity: stepBytes)
  /// Bytes that have arrived and are not decoded yet, from `consumed` on.
  private var input: [UInt8] = []
  private var consumed = 0
  /// Whether a further step may produce something.
  package private(set) var hasMore = false

  /// Maximum number of bytes that a step produces.
  static let stepBytes = 64 * 1024

  /// Returns a decoder for a response's body, unless the program decodes it itself.
  ///
  /// - Parameter codings: The values of the response's `Content-Encoding` fields. Called if there is a body to decode.
  /// - Returns: `nil` if the body has no content coding.
  package static func decoder(
    for head: ResponseHead, _ codings: () -> [String]
  ) throws(CodingError) -> ContentDecoding? {
    // A part of an encoded representation cannot be decoded by itself: ranges count encoded bytes (RFC 9110 14.2).
    guard head.framing != .none, head.status != 206 else { return nil }
    guard let decompressor = try Decompressor(try ContentCodings(fieldValues: codings())) else { return nil }
    return ContentDecoding(decompressor)
  }

  private init(_ decompressor: consuming Decompressor) { self.decompressor = decompressor }

  package func append(_ piece: Span<UInt8>) {
    hasMore = true
    if consumed == input.count {
      input.removeAll(keepingCapacity: true)
      consumed = 0
    }
    input.append(copying: piece)
  }

  /// Decodes one step, and lends the result to `consume`.
  package func step(_ consume: (Span<UInt8>) -> Void) throws(CodingError) {
    // Nothing more comes after an error.
    hasMore = false
    var room = Chunk()
    swap(&room, &self.room)
    defer { swap(&room, &self.room) }
    room.drop(room.count)
    // Bytes that were decoded before an error are content.
    defer { if room.count > 0 { consume(room.bytes) } }
    hasMore = try Self.step(of: &decompressor, input, &consumed, into: &room) == .hasMore
  }

  private static func step(
    of decompressor: inout Decompressor, _ input: [UInt8], _ consumed: inout Int, into room: inout Chunk
  ) throws(CodingError) -> Decompressor.Progress {
    var result: Result<Decompressor.Progress, CodingError> = .success(.needsInput)
    room.withSpare { output in
      do throws(CodingError) {
        result = .success(try decompressor.decode(input.span, consumed: &consumed, into: &output))
      } catch {
        result = .failure(error)
      }
    }
    return try result.get()
  }

  /// Ends the decoding after the body's last byte. Throws if the end is within a coding's stream.
  package func finish() throws(CodingError) { try decompressor.finish() }
}
