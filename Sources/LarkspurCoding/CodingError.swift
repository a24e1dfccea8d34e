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
  /// A broken invariant of Larkspur: zlib was called wrongly, or `decode` with a position outside its input (code 0).
  case internalInconsistency(zlib: Int32)

  init(zlib code: Int32) {
    // Z_MEM_ERROR
    self = code == -4 ? .outOfMemory : .internalInconsistency(zlib: code)
  }
}
