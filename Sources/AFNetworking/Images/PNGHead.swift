/// PNG, third edition, 5.2 and 11.2.1: a signature, then chunks, of which the first is IHDR.
enum PNGHead {
  static func read(_ bytes: borrowing ImageBytes) throws(AFImageError) -> ImageHead {
    guard try bytes.type(at: 12) == ImageBytes.code("IHDR") else { throw .invalidHead }
    var head = ImageHead(.png, width: try bytes.big(at: 16, 4), height: try bytes.big(at: 20, 4))
    if let orientation = orientation(bytes) { head.orientation = orientation }
    return head
  }

  /// PNG, third edition, 11.3.3.4: the chunk eXIf is a TIFF structure. Chunks after the first IDAT are not searched.
  ///
  /// - Returns: The orientation, or `nil` if there is none, or the bytes end before.
  private static func orientation(_ bytes: borrowing ImageBytes) -> ImageOrientation? {
    var offset = 8
    while let length = try? bytes.big(at: offset, 4), let type = try? bytes.type(at: offset + 4) {
      switch type {
      case ImageBytes.code("eXIf"): return try? TIFFHead.orientation(bytes, from: offset + 8)
      case ImageBytes.code("IDAT"): return nil
      // A length of at most 2^32 - 1 cannot overflow an offset within the bytes.
      default: offset += 12 + length
      }
    }
    return nil
  }
}
