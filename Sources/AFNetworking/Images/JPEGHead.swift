/// ITU-T T.81 B.1 and B.2.2: segments that begin with a marker and a length, up to the first frame header. Bytes
/// between segments are skipped, as decoders do.
enum JPEGHead {
  static func read(_ bytes: borrowing ImageBytes) throws(AFImageError) -> ImageHead {
    var orientation: ImageOrientation?
    var hasReadEXIF = false
    var offset = 2
    while true {
      guard try bytes.big(at: offset, 1) == 0xff else {
        offset += 1
        continue
      }
      switch try bytes.big(at: offset + 1, 1) {
      // A fill byte.
      case 0xff: offset += 1
      // No marker, and markers without a length.
      case 0x00, 0x01, 0xd0...0xd7: offset += 2
      // The end of the image, or its data: no frame header came before.
      case 0xd8, 0xd9, 0xda: throw .invalidHead
      // Frame headers. The codes 0xc4, 0xc8 and 0xcc within this range are those of other segments.
      case 0xc0...0xc3, 0xc5...0xc7, 0xc9...0xcb, 0xcd...0xcf:
        let (height, width) = (try bytes.big(at: offset + 5, 2), try bytes.big(at: offset + 7, 2))
        return ImageHead(.jpeg, width: width, height: height, orientation: orientation ?? ImageOrientation())
      case let marker:
        let length = try bytes.big(at: offset + 2, 2)
        guard length >= 2 else { throw .invalidHead }
        let end = offset + 2 + length
        // Attack: very many segments, each with a directory of 65,535 entries. Only the first one counts.
        if marker == 0xe1, !hasReadEXIF, isEXIF(bytes, at: offset + 4) {
          hasReadEXIF = true
          orientation = try? TIFFHead.orientation(bytes, from: offset + 10, to: end)
        }
        offset = end
      }
    }
  }

  /// CIPA DC-008 4.7.2: a segment APP1 that begins with `Exif` and two zeros, and then a TIFF structure. If the
  /// structure is not valid, the image can be displayed without it.
  private static func isEXIF(_ bytes: borrowing ImageBytes, at offset: Int) -> Bool {
    (try? bytes.type(at: offset)) == ImageBytes.code("Exif") && (try? bytes.big(at: offset + 4, 2)) == 0
  }
}
