/// RFC 9649 2.3 to 2.7: a RIFF container. The type of its first chunk selects the layout.
enum WebPHead {
  static func read(_ bytes: borrowing ImageBytes) throws(AFImageError) -> ImageHead {
    switch try bytes.type(at: 12) {
    case ImageBytes.code("VP8 "):
      // RFC 6386 9.1: a frame tag, a start code, then width and height in 14 bits each.
      guard try bytes.big(at: 23, 3) == 0x9d012a else { throw .invalidHead }
      let (width, height) = (try bytes.little(at: 26, 2), try bytes.little(at: 28, 2))
      return ImageHead(.webp, width: width & 0x3fff, height: height & 0x3fff)
    case ImageBytes.code("VP8L"):
      // RFC 9649 3.4: a signature, then width and height in 14 bits each, minus one.
      guard try bytes.big(at: 20, 1) == 0x2f else { throw .invalidHead }
      let bits = try bytes.little(at: 21, 4)
      return ImageHead(.webp, width: (bits & 0x3fff) + 1, height: (bits >> 14 & 0x3fff) + 1)
    case ImageBytes.code("VP8X"):
      // RFC 9649 2.7: width and height of the canvas in 24 bits each, minus one.
      var head = ImageHead(
        .webp, width: try bytes.little(at: 24, 3) + 1, height: try bytes.little(at: 27, 3) + 1)
      if let orientation = orientation(bytes) { head.orientation = orientation }
      return head
    default: throw .invalidHead
    }
  }

  /// RFC 9649 2.7.1.5: the chunk EXIF, which follows the image's data.
  ///
  /// - Returns: The orientation, or `nil` if there is none, or the bytes end before.
  private static func orientation(_ bytes: borrowing ImageBytes) -> ImageOrientation? {
    var offset = 12
    while let type = try? bytes.type(at: offset), let length = try? bytes.little(at: offset + 4, 4) {
      guard type != ImageBytes.code("EXIF") else {
        // Some writers put the prefix of a JPEG's segment before the TIFF structure.
        let isPrefixed = (try? bytes.type(at: offset + 8)) == ImageBytes.code("Exif")
        return try? TIFFHead.orientation(bytes, from: offset + (isPrefixed ? 14 : 8))
      }
      // Chunks are padded to even lengths.
      offset += 8 + length + length & 1
    }
    return nil
  }
}
