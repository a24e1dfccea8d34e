import LarkspurBytes
import LarkspurCoding
import LarkspurHTTP

/// The compression of a WebSocket's messages in both directions (RFC 7692).
final class WebSocketMessageCompression {
  /// Messages with fewer bytes are sent as they are: they would hardly shrink.
  private static let compressedBytesMin = 64

  private var inflater: MessageInflater
  private var deflater: MessageDeflater
  private var hasFailed = false
  /// Whether the message that is being received is compressed.
  private(set) var isInMessage = false

  /// Creates the compression that both sides have agreed on, or returns `nil` if its parameters are impossible.
  init?(_ agreement: WebSocketCompression) {
    guard
      let inflater = try? MessageInflater(
        windowBits: agreement.serverWindowBits, takesOver: agreement.serverTakesOver),
      let deflater = try? MessageDeflater(
        windowBits: agreement.clientWindowBits, takesOver: agreement.clientTakesOver)
    else { return nil }
    self.inflater = inflater
    self.deflater = deflater
  }

  /// Compresses a message that is sent.
  ///
  /// - Returns: The payload, or `nil` if the message should be sent uncompressed.
  func compress(_ message: Span<UInt8>) -> [UInt8]? {
    guard message.count >= Self.compressedBytesMin, !hasFailed else { return nil }
    do throws(CodingError) {
      var output: [UInt8] = []
      try deflater.deflate(message, into: &output)
      return output
    } catch {
      // Without memory for zlib, messages are sent as they are.
      hasFailed = true
      return nil
    }
  }

  func startMessage(isCompressed: Bool) { isInMessage = isCompressed }

  /// Decompresses a piece of the message that is being received.
  func decompress(
    _ piece: Span<UInt8>, isLast: Bool = false, into assembler: inout WebSocketMessageAssembler
  ) throws(WebSocketError) {
    var plain: [UInt8] = []
    do throws(CodingError) {
      try inflater.inflate(piece, isLast: isLast, atMost: assembler.messageBytesMax, appendingTo: &plain)
    } catch {
      guard case .peerSentMessageTooLong = error else { throw .compressionInvalid }
      throw .messageTooBig(limit: assembler.messageBytesMax)
    }
    try assembler.append(plain.span)
  }

  func endMessage(into assembler: inout WebSocketMessageAssembler) throws(WebSocketError) {
    try decompress(Span(), isLast: true, into: &assembler)
  }
}
