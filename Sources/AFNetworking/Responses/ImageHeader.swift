import Foundation

/// The format and the size of an image, read from its first bytes. Sizes are in pixels; a size of zero is not valid.
///
/// Never reads beyond the bytes, regardless of the lengths that the bytes state.
struct ImageHeader {
  var format: AFImage.Format
  var width: Int
  var height: Int

  /// Reads the header of an image.
  ///
  /// - Returns: The header, or `nil` if the format is unknown, or the bytes end before the size.
  init?(_ data: Data) {
    let bytes = Bytes(data)
    let found =
      Self.png(bytes) ?? Self.gif(bytes) ?? Self.bmp(bytes) ?? Self.webp(bytes) ?? Self.jpeg(bytes)
    guard let found, found.width > 0, found.height > 0 else { return nil }
    self = found
  }

  private init(_ format: AFImage.Format, _ width: Int, _ height: Int) {
    self.format = format
    self.width = width
    self.height = height
  }

  /// PNG, third edition, 5.2 and 11.2.1: a signature, then the chunk IHDR.
  private static func png(_ bytes: Bytes) -> ImageHeader? {
    guard bytes.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]), bytes.has("IHDR", at: 12),
      let width = bytes.big(at: 16, 4), let height = bytes.big(at: 20, 4)
    else { return nil }
    return ImageHeader(.png, width, height)
  }

  /// GIF89a, 17 and 18: the size of the logical screen, which contains all of the pictures.
  private static func gif(_ bytes: Bytes) -> ImageHeader? {
    guard bytes.has("GIF87a", at: 0) || bytes.has("GIF89a", at: 0), let width = bytes.little(at: 6, 2),
      let height = bytes.little(at: 8, 2)
    else { return nil }
    return ImageHeader(.gif, width, height)
  }

  /// A file header of 14 bytes, then one of several headers that begin with their length.
  private static func bmp(_ bytes: Bytes) -> ImageHeader? {
    guard bytes.has("BM", at: 0), let length = bytes.little(at: 14, 4) else { return nil }
    if length == 12 {
      // BITMAPCOREHEADER.
      guard let width = bytes.little(at: 18, 2), let height = bytes.little(at: 20, 2) else { return nil }
      return ImageHeader(.bmp, width, height)
    }
    guard 40...256 ~= length, let width = bytes.little(at: 18, 4), let height = bytes.little(at: 22, 4) else {
      return nil
    }
    // Signed numbers. The height is negative if the rows go from top to bottom.
    let rows = Int(Int32(truncatingIfNeeded: height)).magnitude
    return ImageHeader(.bmp, Int(Int32(truncatingIfNeeded: width)), Int(rows))
  }

  /// RFC 9649 2.3 to 2.7: a RIFF container. The type of its first chunk selects the layout.
  private static func webp(_ bytes: Bytes) -> ImageHeader? {
    guard bytes.has("RIFF", at: 0), bytes.has("WEBP", at: 8) else { return nil }
    if bytes.has("VP8 ", at: 12) {
      // RFC 6386 9.1: a frame tag, a start code, then width and height in 14 bits each.
      guard bytes.big(at: 23, 3) == 0x9d012a, let width = bytes.little(at: 26, 2), let height = bytes.little(at: 28, 2)
      else { return nil }
      return ImageHeader(.webp, width & 0x3fff, height & 0x3fff)
    }
    if bytes.has("VP8L", at: 12) {
      // RFC 9649 3.4: a signature, then width and height in 14 bits each, minus one.
      guard bytes.big(at: 20, 1) == 0x2f, let bits = bytes.little(at: 21, 4) else { return nil }
      return ImageHeader(.webp, (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)
    }
    // RFC 9649 2.7: width and height of the canvas in 24 bits each, minus one.
    guard bytes.has("VP8X", at: 12), let width = bytes.little(at: 24, 3), let height = bytes.little(at: 27, 3)
    else { return nil }
    return ImageHeader(.webp, width + 1, height + 1)
  }

  /// ITU-T T.81 B.1 and B.2.2: skips markers by their lengths, up to the first frame header.
  private static func jpeg(_ bytes: Bytes) -> ImageHeader? {
    guard bytes.starts(with: [0xff, 0xd8, 0xff]) else { return nil }
    var offset = 2
    while bytes.big(at: offset, 1) == 0xff, let marker = bytes.big(at: offset + 1, 1) {
      switch marker {
      // A fill byte.
      case 0xff: offset += 1
      // Markers without a length.
      case 0x01, 0xd0...0xd7: offset += 2
      // The end of the image, or its data: no frame header came before.
      case 0x00, 0xd8, 0xd9, 0xda: return nil
      // Frame headers. The three excluded codes are those of other segments within this range.
      case 0xc0...0xcf where ![0xc4, 0xc8, 0xcc].contains(marker):
        guard let height = bytes.big(at: offset + 5, 2), let width = bytes.big(at: offset + 7, 2) else { return nil }
        return ImageHeader(.jpeg, width, height)
      default:
        guard let length = bytes.big(at: offset + 2, 2), length >= 2 else { return nil }
        offset += 2 + length
      }
    }
    return nil
  }

  /// Reads numbers at offsets from the first byte. Each function returns `nil` if the bytes end before.
  private struct Bytes {
    private let data: Data

    init(_ data: Data) { self.data = data }

    private func slice(at offset: Int, _ count: Int) -> Data? {
      guard offset >= 0, offset <= data.count - count else { return nil }
      let start = data.startIndex + offset
      return data[start..<start + count]
    }

    func big(at offset: Int, _ count: Int) -> Int? {
      slice(at: offset, count)?.reduce(0) { $0 << 8 | Int($1) }
    }

    func little(at offset: Int, _ count: Int) -> Int? {
      slice(at: offset, count)?.reversed().reduce(0) { $0 << 8 | Int($1) }
    }

    func starts(with wanted: [UInt8]) -> Bool { slice(at: 0, wanted.count)?.elementsEqual(wanted) == true }

    func has(_ text: String, at offset: Int) -> Bool {
      slice(at: offset, text.utf8.count)?.elementsEqual(text.utf8) == true
    }
  }
}
