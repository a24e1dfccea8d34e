import Foundation
import Larkspur

/// A cache of images by identifiers. Methods are called on any thread, and return at once.
public protocol AFImageCache: AnyObject, Sendable {
  /// Adds an image, in place of the one that has the identifier.
  func add(_ image: any AFDecodedImage, withIdentifier identifier: String)

  /// Removes an image.
  ///
  /// - Returns: Whether there was one.
  @discardableResult
  func removeImage(withIdentifier identifier: String) -> Bool

  /// Removes all images.
  ///
  /// - Returns: Whether there were any.
  @discardableResult
  func removeAllImages() -> Bool

  /// Returns an image, or `nil` if there is none.
  func image(withIdentifier identifier: String) -> (any AFDecodedImage)?
}

/// A cache of images by requests. The names are those that Apple's importer gives to AFNetworking's.
public protocol AFImageRequestCache: AFImageCache {
  /// Returns whether to add an image that has been downloaded.
  ///
  /// - Parameters:
  ///   - image: The image.
  ///   - request: The request of the download.
  ///   - identifier: Distinguishes images of one request, such as a size or a filter.
  func shouldCache(
    _ image: any AFDecodedImage, for request: URLRequest, withAdditionalIdentifier identifier: String?
  ) -> Bool

  /// Adds an image.
  func add(_ image: any AFDecodedImage, for request: URLRequest, withAdditionalIdentifier identifier: String?)

  /// Removes an image.
  ///
  /// - Returns: Whether there was one.
  @discardableResult
  func removeImagefor(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> Bool

  /// Returns an image, or `nil` if there is none.
  func imagefor(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> (any AFDecodedImage)?
}

extension AFImageRequestCache {
  /// Removes an image; equivalent to ``removeImagefor(_:withAdditionalIdentifier:)``.
  @discardableResult
  public func removeImage(for request: URLRequest, withAdditionalIdentifier identifier: String? = nil) -> Bool {
    removeImagefor(request, withAdditionalIdentifier: identifier)
  }

  /// Returns an image; equivalent to ``imagefor(_:withAdditionalIdentifier:)``.
  public func image(
    for request: URLRequest, withAdditionalIdentifier identifier: String? = nil
  ) -> (any AFDecodedImage)? { imagefor(request, withAdditionalIdentifier: identifier) }
}
