import Foundation

/// An undecoded image: its bytes, with the format and the size that its header states.
///
/// Linux has no image type that all programs share. A program with an image library of its own gives
/// ``AFImageResponseSerializer`` a decoder (``AFImageDecoding``) and gets that library's images.
public final class AFImage: NSObject, Sendable {
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

    /// The format as a `Content-Type` value, such as `image/png`.
    public var mimeType: String { "image/\(rawValue)" }
  }

  /// The image's bytes, as received.
  public let data: Data
  /// The format that the bytes have, regardless of the response's content type.
  public let format: Format
  /// Width in pixels.
  public let pixelWidth: Int
  /// Height in pixels.
  public let pixelHeight: Int
  /// Pixels for each unit of ``size``.
  public let scale: CGFloat

  /// Creates an image from its bytes.
  ///
  /// - Parameters:
  ///   - data: The whole image, or at least its beginning.
  ///   - scale: Pixels for each unit of ``size``; 1 if the value is not finite and above zero.
  /// - Returns: The image, or `nil` if the bytes are of no known format, or end before the size.
  public init?(data: Data, scale: CGFloat = 1) {
    guard let header = ImageHeader(data) else { return nil }
    self.data = data
    format = header.format
    pixelWidth = header.width
    pixelHeight = header.height
    self.scale = scale > 0 && scale.isFinite ? scale : 1
  }

  /// Width and height in units, as with `UIImage`: pixels divided by ``scale``.
  public var size: CGSize { CGSize(width: CGFloat(pixelWidth) / scale, height: CGFloat(pixelHeight) / scale) }

  /// A text for people: format, size in pixels, and number of bytes.
  public override var description: String { "\(format.rawValue), \(pixelWidth) x \(pixelHeight), \(data.count) bytes" }
}

/// Makes images from bytes, for ``AFImageResponseSerializer``.
public protocol AFImageDecoding: Sendable {
  /// Makes an image. The serializer calls this method on a concurrent queue that a manager's tasks share: an
  /// implementation does not block it to wait for other tasks of that manager.
  ///
  /// - Parameters:
  ///   - data: The bytes of one response.
  ///   - response: The response that the bytes belong to.
  ///   - scale: The serializer's ``AFImageResponseSerializer/imageScale``.
  ///   - inflates: Whether to decompress the pixels at once, rather than when the image is first drawn.
  /// - Returns: The image, or `nil` if the decoder does not know the format, which is not an error.
  func image(from data: Data, response: URLResponse?, scale: CGFloat, inflates: Bool) throws -> Any?
}

/// Makes an ``AFImage``, which has format and size.
public struct AFImageHeaderDecoder: AFImageDecoding {
  /// Creates a decoder. There are no settings.
  public init() {}

  /// Returns an ``AFImage``, or `nil` if the bytes are of no known format. Ignores `inflates`.
  public func image(from data: Data, response: URLResponse?, scale: CGFloat, inflates: Bool) throws -> Any? {
    AFImage(data: data, scale: scale)
  }
}
