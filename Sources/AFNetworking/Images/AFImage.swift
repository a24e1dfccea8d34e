import Foundation

/// An undecoded image: its bytes, with the format, the size and the orientation that its head states.
///
/// Linux has no image type that all programs share. A program with another image library gives
/// ``AFImageResponseSerializer`` a decoder (``AFImageDecoding``) and gets that library's images.
public final class AFImage: NSObject, AFDecodedImage {
  /// The formats that are recognized by their first bytes.
  public enum Format: String, Hashable, Sendable, CaseIterable {
    /// Portable Network Graphics.
    case png
    /// JPEG, with any type of frame.
    case jpeg
    /// GIF. The size is that of the logical screen, not of its first picture.
    case gif
    /// WebP: lossy, lossless, or extended.
    case webp
    /// A Windows bitmap.
    case bmp
    /// TIFF, except BigTIFF. The size is that of the first image.
    case tiff
    /// HEIC and other images in a HEIF file, except AVIF. The size is that of the primary item.
    case heic
    /// AVIF. The size is that of the primary item.
    case avif

    /// The format as a `Content-Type` value, such as `image/png`.
    public var mimeType: String { "image/\(rawValue)" }
  }

  /// How the stored pixels have to be turned for display. The raw values are those of EXIF (CIPA DC-008, tag 274) and of
  /// Apple's `CGImagePropertyOrientation`, and the names are Apple's.
  public enum Orientation: Int, Hashable, Sendable, CaseIterable {
    /// As stored.
    case up = 1
    /// Left and right are exchanged.
    case upMirrored
    /// Turned by 180 degrees.
    case down
    /// Top and bottom are exchanged.
    case downMirrored
    /// Left and right are exchanged, and the result is turned by 90 degrees anticlockwise.
    case leftMirrored
    /// Turned by 90 degrees clockwise.
    case right
    /// Left and right are exchanged, and the result is turned by 90 degrees clockwise.
    case rightMirrored
    /// Turned by 90 degrees anticlockwise.
    case left

    /// Whether the displayed image is as wide as the stored one is high.
    public var swapsWidthAndHeight: Bool { rawValue > 4 }
  }

  /// The default maximum number of pixels that a head may claim: 2^27, which take 512 MiB at four bytes each.
  public static let pixelCountMaxDefault = 1 << 27

  /// The image's bytes, as received.
  public let data: Data
  /// The format that the bytes have, regardless of the response's content type.
  public let format: Format
  /// Width in pixels, as stored.
  public let pixelWidth: Int
  /// Height in pixels, as stored.
  public let pixelHeight: Int
  /// How to turn the stored pixels for display: the orientation of EXIF, or of a HEIF file's properties.
  public let orientation: Orientation
  /// Pixels for each unit of ``size``.
  public let scale: CGFloat

  /// Creates an image from its bytes.
  ///
  /// - Parameters:
  ///   - data: The whole image, or at least its beginning.
  ///   - scale: Pixels for each unit of ``size``. Zero, negative, infinite and NaN values count as 1.
  /// - Returns: The image, or `nil` where ``init(validating:scale:pixelCountMax:)`` throws.
  public convenience init?(data: Data, scale: CGFloat = 1) {
    guard let image = try? AFImage(validating: data, scale: scale) else { return nil }
    self.init(image.data, scale, image.format, image.pixelWidth, image.pixelHeight, image.orientation)
  }

  /// Creates an image from its bytes. Reads no more than the head, and nothing beyond the bytes, whatever lengths they
  /// state.
  ///
  /// - Parameters:
  ///   - data: The whole image, or at least its beginning.
  ///   - scale: Pixels for each unit of ``size``. Zero, negative, infinite and NaN values count as 1.
  ///   - pixelCountMax: Maximum product of width and height.
  public convenience init(
    validating data: Data, scale: CGFloat = 1, pixelCountMax: Int = AFImage.pixelCountMaxDefault
  ) throws(AFImageError) {
    let head = try ImageHead.read(data.span, pixelCountMax: pixelCountMax)
    self.init(
      data, scale, head.format, head.width, head.height, Orientation(rawValue: head.orientation.exif) ?? .up)
  }

  private init(
    _ data: Data, _ scale: CGFloat, _ format: Format, _ width: Int, _ height: Int, _ orientation: Orientation
  ) {
    self.data = data
    self.format = format
    pixelWidth = width
    pixelHeight = height
    self.orientation = orientation
    self.scale = scale > 0 && scale.isFinite ? scale : 1
  }

  /// Width and height in units for display, as with `UIImage`: pixels divided by ``scale``, after turning by
  /// ``orientation``.
  public var size: CGSize {
    let (width, height) = (CGFloat(pixelWidth) / scale, CGFloat(pixelHeight) / scale)
    return orientation.swapsWidthAndHeight ? CGSize(width: height, height: width) : CGSize(width: width, height: height)
  }

  /// The number of bytes of ``data``: the image is not decoded.
  public var decodedByteCount: UInt64 { UInt64(data.count) }

  /// A human-readable text: format, size in pixels, and number of bytes.
  public override var description: String { "\(format.rawValue), \(pixelWidth) x \(pixelHeight), \(data.count) bytes" }
}

/// The reason why bytes are no image.
public enum AFImageError: Error, Hashable, Sendable, LocalizedError {
  /// The first bytes are those of no known format.
  case unknownFormat
  /// The bytes end before the size.
  case truncated
  /// The format is known, but the head is not valid.
  case invalidHead
  /// The head claims more pixels than the limit, or a side of more than 2^20 pixels.
  case tooManyPixels(width: Int, height: Int, pixelCountMax: Int)
  /// The decoder returned no image, and no error.
  case notDecoded
  /// The decoder returned an object that is no ``AFDecodedImage``.
  case unsuitableType(String)

  /// A human-readable text.
  public var errorDescription: String? {
    switch self {
    case .unknownFormat: "The bytes are no image of a known format."
    case .truncated: "The image ends before its size."
    case .invalidHead: "The head of the image is not valid."
    case .tooManyPixels(let width, let height, let max):
      "The image claims to have \(width) x \(height) pixels; the limit is \(max) pixels."
    case .notDecoded: "The image decoder does not know the format of the bytes."
    case .unsuitableType(let type): "The image decoder returned an object of the type \(type)."
    }
  }
}
