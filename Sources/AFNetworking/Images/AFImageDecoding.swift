import Foundation
import Larkspur

/// An image that caches can hold, downloaders deliver and views show: ``AFImage``, or the image type of a program's
/// toolkit.
///
/// The class is `Sendable` because images are decoded on other threads than the one that shows them.
public protocol AFDecodedImage: AnyObject, Sendable {
  /// The number of bytes in memory that the image occupies, which caches count against their capacity: for pixels of
  /// four bytes, four times width times height.
  var decodedByteCount: UInt64 { get }
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
  /// - Returns: The image, or `nil` if the decoder does not support the format, which is not an error. For
  ///   ``AFImageDownloader`` the image is an ``AFDecodedImage``.
  func image(from data: Data, response: URLResponse?, scale: CGFloat, inflates: Bool) throws -> Any?
}

/// A decoder that can also show an image of which a part has arrived.
public protocol AFIncrementalImageDecoding: AFImageDecoding {
  /// Makes the decoder of one image. Called on a queue of ``AFImageDownloader``, when the head of the image is known and
  /// within the limits.
  ///
  /// - Parameter scale: The serializer's ``AFImageResponseSerializer/imageScale``.
  func makeIncrementalDecoder(scale: CGFloat) -> any AFIncrementalImageDecoder
}

/// Decodes one image from the pieces in which it arrives.
public protocol AFIncrementalImageDecoder: AnyObject {
  /// Decodes the next piece. Calls come in order, one at a time, on a queue of ``AFImageDownloader``.
  ///
  /// - Returns: The image as far as it has been decoded, or `nil` if there is nothing new to show.
  /// - Throws: Any error. The decoder then gets no more pieces. The download continues, and its result is that of
  ///   ``AFImageDecoding/image(from:response:scale:inflates:)``.
  func append(_ piece: Data) throws -> (any AFDecodedImage)?
}

/// Makes an ``AFImage``, which has format, size and orientation.
public struct AFImageHeaderDecoder: AFImageDecoding {
  /// Creates a decoder. There are no settings.
  public init() {}

  /// Returns an ``AFImage``, or `nil` if the bytes are of no known format. Ignores `inflates`.
  public func image(from data: Data, response: URLResponse?, scale: CGFloat, inflates: Bool) throws -> Any? {
    // The serializer has compared the size with its own limit.
    try? AFImage(validating: data, scale: scale, pixelCountMax: .max)
  }
}
