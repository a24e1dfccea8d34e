import Foundation

/// An image as it came: its bytes, with what their first few say of them. Nothing is decoded.
///
/// Linux has no image type that all programs share. A program with a library of its own gives ``AFImageResponseSerializer``
/// a decoder (``AFImageDecoding``) and gets that library's images.
public final class AFImage: NSObject, Sendable {
  /// The formats that are known by their first bytes.
  public enum Format: String, Hashable, Sendable, CaseIterable {
    /// Portable Network Graphics.
    case png
    /// JPEG, with whatever frame.
    case jpeg
    /// The size is that of the whole, not of its first picture.
    case gif
    /// Lossy, lossless, or several of them.
    case webp
    /// A Windows bitmap.
    case bmp

    /// As a `Content-Type` says it: `image/png`.
    public var mimeType: String { "image/\(rawValue)" }
  }

  /// The image, as it was sent.
  public let data: Data
  /// What the bytes are, whatever the response says.
  public let format: Format
  /// Columns.
  public let pixelWidth: Int
  /// Rows.
  public let pixelHeight: Int
  /// Pixels for each unit of ``size``.
  public let scale: CGFloat

  /// Nil: the bytes are of no known format, or end before they say how large the image is.
  ///
  /// - Parameters:
  ///   - data: The whole image, or at least its beginning.
  ///   - scale: Pixels for each unit of ``size``; 1 if it is not above zero.
  public init?(data: Data, scale: CGFloat = 1) {
    guard let header = ImageHeader(data) else { return nil }
    self.data = data
    format = header.format
    pixelWidth = header.width
    pixelHeight = header.height
    self.scale = scale > 0 && scale.isFinite ? scale : 1
  }

  /// Width and height in units, as `UIImage` counts them: pixels divided by ``scale``.
  public var size: CGSize { CGSize(width: CGFloat(pixelWidth) / scale, height: CGFloat(pixelHeight) / scale) }

  /// For people to read.
  public override var description: String { "\(format.rawValue), \(pixelWidth) x \(pixelHeight), \(data.count) bytes" }
}

/// Makes images of bytes, for ``AFImageResponseSerializer``.
public protocol AFImageDecoding: Sendable {
  /// Makes an image. It is called on a concurrent queue, which must not be kept waiting for other tasks of a manager.
  ///
  /// - Parameters:
  ///   - data: The bytes of one response.
  ///   - response: What was said of them.
  ///   - scale: The serializer's ``AFImageResponseSerializer/imageScale``.
  ///   - inflates: Whether the pixels are to be unpacked at once, rather than when the image is drawn first.
  /// - Returns: Nil: it is no image that this decoder knows. That is no error.
  func image(from data: Data, response: URLResponse?, scale: CGFloat, inflates: Bool) throws -> Any?
}

/// Gives an ``AFImage``, which says type and size.
public struct AFImageHeaderDecoder: AFImageDecoding {
  /// It has no settings.
  public init() {}

  /// An ``AFImage``, whatever `inflates` says.
  public func image(from data: Data, response: URLResponse?, scale: CGFloat, inflates: Bool) throws -> Any? {
    AFImage(data: data, scale: scale)
  }
}
