/// The format, the size and the orientation that the first bytes of an image state.
///
/// The bytes are untrusted. Each read checks its position against the number of bytes, and no function allocates memory
/// in proportion to a number that the bytes state.
package struct ImageHead: Hashable, Sendable {
  /// Maximum width and height in pixels. Attack: a line of a billion pixels in one row.
  package static let sideMax = 1 << 20

  package var format: AFImage.Format
  /// Width in pixels, as stored: before the image is turned.
  package var width: Int
  /// Height in pixels, as stored: before the image is turned.
  package var height: Int
  package var orientation: ImageOrientation

  package init(_ format: AFImage.Format, width: Int, height: Int, orientation: ImageOrientation = ImageOrientation()) {
    self.format = format
    self.width = width
    self.height = height
    self.orientation = orientation
  }

  /// Reads the head of an image.
  ///
  /// If a whole image has a head, then each prefix of its bytes has a head of the same format and size, or throws
  /// ``AFImageError/truncated``. The orientation of a PNG or a WebP image may lie after the size: it is known once
  /// the bytes contain it.
  ///
  /// - Parameters:
  ///   - bytes: The image, or its first bytes.
  ///   - pixelCountMax: Maximum product of width and height. Without the limit, a short image could claim a size for
  ///     which a decoder reserves all memory.
  ///   - sideMax: Maximum width and height in pixels.
  package static func read(
    _ bytes: Span<UInt8>, pixelCountMax: Int = AFImage.pixelCountMaxDefault, sideMax: Int = sideMax
  ) throws(AFImageError) -> ImageHead {
    let reader = ImageBytes(bytes)
    let head = try read(reader)
    guard head.width > 0, head.height > 0 else { throw .invalidHead }
    let (pixels, overflows) = head.width.multipliedReportingOverflow(by: head.height)
    guard !overflows, pixels <= pixelCountMax, max(head.width, head.height) <= sideMax else {
      throw .tooManyPixels(width: head.width, height: head.height, pixelCountMax: pixelCountMax)
    }
    return head
  }

  private static func read(_ bytes: ImageBytes) throws(AFImageError) -> ImageHead {
    var isTruncated = false
    for signature in ImageSignature.all {
      switch signature.match(bytes) {
      case .matches:
        switch signature.kind {
        case .png: return try PNGHead.read(bytes)
        case .jpeg: return try JPEGHead.read(bytes)
        case .gif: return try gif(bytes)
        case .bmp: return try bmp(bytes)
        case .webp: return try WebPHead.read(bytes)
        case .tiff: return try TIFFHead.read(bytes)
        case .heif: return try HEIFHead.read(bytes)
        }
      case .truncated: isTruncated = true
      case .differs: break
      }
    }
    throw isTruncated ? .truncated : .unknownFormat
  }

  /// GIF89a, 18: the size of the logical screen, which contains all of the pictures.
  private static func gif(_ bytes: ImageBytes) throws(AFImageError) -> ImageHead {
    ImageHead(.gif, width: try bytes.little(at: 6, 2), height: try bytes.little(at: 8, 2))
  }

  /// A file header of 14 bytes, then one of several headers that begin with their length.
  private static func bmp(_ bytes: ImageBytes) throws(AFImageError) -> ImageHead {
    let length = try bytes.little(at: 14, 4)
    if length == 12 {
      // BITMAPCOREHEADER.
      return ImageHead(.bmp, width: try bytes.little(at: 18, 2), height: try bytes.little(at: 20, 2))
    }
    guard 40...256 ~= length else { throw .invalidHead }
    // Signed numbers. The height is negative if the rows go from top to bottom.
    let width = Int(Int32(truncatingIfNeeded: try bytes.little(at: 18, 4)))
    let height = Int(Int32(truncatingIfNeeded: try bytes.little(at: 22, 4)))
    return ImageHead(.bmp, width: width, height: abs(height))
  }
}

/// The first bytes, which identify a format.
private struct ImageSignature: Sendable {
  enum Kind { case png, jpeg, gif, bmp, webp, tiff, heif }

  enum Match { case matches, truncated, differs }

  let kind: Kind
  /// Bytes and their offsets.
  let parts: [(offset: Int, bytes: [UInt8])]

  static let all: [ImageSignature] = [
    ImageSignature(kind: .png, parts: [(0, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])]),
    ImageSignature(kind: .jpeg, parts: [(0, [0xff, 0xd8, 0xff])]),
    ImageSignature(kind: .gif, parts: [(0, Array("GIF87a".utf8))]),
    ImageSignature(kind: .gif, parts: [(0, Array("GIF89a".utf8))]),
    ImageSignature(kind: .webp, parts: [(0, Array("RIFF".utf8)), (8, Array("WEBP".utf8))]),
    ImageSignature(kind: .tiff, parts: [(0, [0x49, 0x49, 42, 0])]),
    ImageSignature(kind: .tiff, parts: [(0, [0x4d, 0x4d, 0, 42])]),
    ImageSignature(kind: .heif, parts: [(4, Array("ftyp".utf8))]),
    ImageSignature(kind: .bmp, parts: [(0, Array("BM".utf8))]),
  ]

  func match(_ bytes: ImageBytes) -> Match {
    for part in parts {
      for (index, byte) in part.bytes.enumerated() {
        guard let found = bytes.byte(at: part.offset + index) else { return .truncated }
        if found != byte { return .differs }
      }
    }
    return .matches
  }
}
