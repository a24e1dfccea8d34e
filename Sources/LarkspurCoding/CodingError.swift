/// Why a content coding could not be applied.
package enum CodingError: Error, Hashable, Sendable {
  case outOfMemory
  /// A broken invariant of ours: zlib was called wrongly.
  case internalInconsistency(zlib: Int32)

  init(zlib code: Int32) {
    // Z_MEM_ERROR
    self = code == -4 ? .outOfMemory : .internalInconsistency(zlib: code)
  }
}
