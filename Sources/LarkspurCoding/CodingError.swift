/// The reason why a content coding could not be applied or undone.
package enum CodingError: Error, Hashable, Sendable {
  case outOfMemory
  /// The peer sent bytes that do not follow the coding that it named, or with a wrong checksum or length.
  case peerSentInvalid(ContentCoding)
  /// The peer ended the body within the coding's stream.
  case peerSentTruncated(ContentCoding)
  /// The peer put more codings on top of each other than ``CodingLimits/layersMax``.
  case peerSentTooManyLayers
  /// The peer's bytes grow by more than ``CodingLimits/expansionMax``.
  case peerSentBomb
  /// The peer sent a compressed message (RFC 7692) that is not deflate data, or refers back beyond the agreed window.
  case peerSentInvalidMessage
  /// The peer ended a compressed message within a deflate block.
  case peerSentTruncatedMessage
  /// The peer's message, once inflated, is longer than the caller permits.
  case peerSentMessageTooLong
  /// A broken invariant of Larkspur: zlib was called wrongly, or `decode` with a position outside its input (code 0).
  case internalInconsistency(zlib: Int32)

  init(zlib code: Int32) {
    self = code == Z_MEM_ERROR ? .outOfMemory : .internalInconsistency(zlib: code)
  }
}

extension CodingError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .outOfMemory: "no memory to decode the content"
    case .peerSentInvalid(let coding): "the content is not \(coding)"
    case .peerSentTruncated(let coding): "the content's \(coding) stream is cut short"
    case .peerSentTooManyLayers: "the content has more codings than any server needs"
    case .peerSentBomb: "the content grows beyond all measure when it is decoded"
    case .peerSentInvalidMessage: "the message is not deflate data"
    case .peerSentTruncatedMessage: "the message's deflate data is cut short"
    case .peerSentMessageTooLong: "the message is too long"
    case .internalInconsistency: "the content cannot be decoded"
    }
  }
}
