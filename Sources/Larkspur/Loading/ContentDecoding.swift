import Foundation
import LarkspurBytes
import LarkspurCoding
import LarkspurHTTP
import LarkspurTransport

/// Decodes the content codings of one response's body, in steps of bounded size.
final class ContentDecoding {
  private var decompressor: Decompressor
  private var room = Chunk(capacity: stepBytes)
  /// Bytes that have come and are not decoded yet, from `consumed` on.
  private var input: [UInt8] = []
  private var consumed = 0
  /// Whether a further step may produce something.
  private(set) var hasMore = false

  /// Maximum number of bytes that a step produces.
  static let stepBytes = 64 * 1024

  /// Returns a decoder for a response's body.
  ///
  /// - Returns: `nil` if the body has no content coding, or if the program decodes it itself.
  static func decoder(
    for head: ResponseHead, _ fields: ResponseFields, of request: URLRequest
  ) throws(URLError) -> ContentDecoding? {
    // A part of an encoded representation cannot be decoded by itself: ranges count encoded bytes (RFC 9110 14.2).
    guard head.framing != .none, head.status != 206, RequestComposer.decodes(request),
      fields.contains(KnownField.contentEncoding)
    else { return nil }
    do throws(CodingError) {
      let codings = try ContentCodings(fieldValues: fields.values(of: "Content-Encoding"))
      guard let decompressor = try Decompressor(codings) else { return nil }
      return ContentDecoding(decompressor)
    } catch {
      throw URLError(error, url: request.url)
    }
  }

  private init(_ decompressor: consuming Decompressor) { self.decompressor = decompressor }

  func append(_ piece: Span<UInt8>) {
    hasMore = true
    if consumed == input.count {
      input.removeAll(keepingCapacity: true)
      consumed = 0
    }
    input.append(copying: piece)
  }

  /// Decodes one step, and lends the result to `consume`.
  func step(_ consume: (Span<UInt8>) -> Void) throws(CodingError) {
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
  func finish() throws(CodingError) { try decompressor.finish() }
}

extension URLError {
  init(_ error: CodingError, url: URL?) {
    let message =
      switch error {
      case .outOfMemory: "no memory to decode the content"
      case .peerSentInvalid(let coding): "the content is not \(coding)"
      case .peerSentTruncated(let coding): "the content's \(coding) stream is cut short"
      case .peerSentTooManyLayers: "the content has more codings than anybody needs"
      case .peerSentBomb: "the content grows beyond all measure when it is decoded"
      case .peerSentInvalidMessage: "the message is not deflate data"
      case .peerSentTruncatedMessage: "the message's deflate data is cut short"
      case .peerSentMessageTooLong: "the message is too long"
      case .internalInconsistency: "the content cannot be decoded"
      }
    self = URLError.make(.cannotDecodeRawData, message, url: url)
  }
}
