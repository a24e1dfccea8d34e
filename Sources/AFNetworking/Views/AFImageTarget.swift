import Foundation
import Larkspur

/// A view that shows an image from a URL, as `UIImageView` with its AFNetworking category.
///
/// The methods are called on the thread of the view. A view that is bound to an actor adopts the protocol on this
/// actor: `extension Picture: @MainActor AFImageTarget`. See <doc:Views>.
public protocol AFImageTarget: AnyObject {
  /// The toolkit's picture: an ``AFDecodedImage`` that the downloader's ``AFImageDecoding`` makes.
  associatedtype Image

  /// The picture that the view shows.
  var image: Image? { get set }

  /// The view's slot: a constant that the view creates with itself.
  var imageSlot: AFImageSlot { get }
}

extension AFImageTarget {
  /// Returns the downloader of all views whose slot has no downloader.
  public static func sharedImageDownloader() -> AFImageDownloader { AFImageSlot.shared }

  /// Sets the downloader of all views whose slot has no downloader.
  public static func setSharedImageDownloader(_ imageDownloader: AFImageDownloader) {
    AFImageSlot.shared = imageDownloader
  }

  /// Downloads an image and shows it.
  public func setImageWith(_ url: URL) { setImageWith(url, placeholderImage: nil) }

  /// Downloads an image and shows it, and the placeholder until then.
  public func setImageWith(_ url: URL, placeholderImage: Image?) {
    setImageWith(.image(url), placeholderImage: placeholderImage, success: nil, failure: nil)
  }

  /// Downloads an image.
  ///
  /// An image from the cache is set at once. Otherwise the placeholder is set, if there is one. A previous request of
  /// the view is cancelled, and its blocks are not called any more.
  ///
  /// - Parameters:
  ///   - urlRequest: The request.
  ///   - placeholderImage: Shown until the image is there, and if the request fails.
  ///   - success: Receives the image, and shows it. Without this block the view shows it. The response is `nil` if the
  ///     image comes from the cache.
  ///   - failure: Receives the error: see ``AFImageDownloader/downloadImage(for:success:failure:)``, and
  ///     ``AFImageError/unsuitableType(_:)`` for an image that is no `Image`.
  public func setImageWith(
    _ urlRequest: URLRequest, placeholderImage: Image?,
    success: ((URLRequest, HTTPURLResponse?, Image) -> Void)? = nil,
    failure: ((URLRequest, HTTPURLResponse?, any Error) -> Void)? = nil
  ) {
    imageSlot.load(
      urlRequest, placeholder: placeholderImage, show: { [weak self] in self?.image = $0 }, success: success,
      failure: failure)
  }

  /// See ``setImageWith(_:)``.
  public func setImage(with url: URL) { setImageWith(url) }

  /// See ``setImageWith(_:placeholderImage:)``.
  public func setImage(with url: URL, placeholderImage: Image?) {
    setImageWith(url, placeholderImage: placeholderImage)
  }

  /// See ``setImageWith(_:placeholderImage:success:failure:)``.
  public func setImage(
    with urlRequest: URLRequest, placeholderImage: Image?,
    success: ((URLRequest, HTTPURLResponse?, Image) -> Void)? = nil,
    failure: ((URLRequest, HTTPURLResponse?, any Error) -> Void)? = nil
  ) { setImageWith(urlRequest, placeholderImage: placeholderImage, success: success, failure: failure) }

  /// Cancels the view's request. Its blocks are not called.
  public func cancelImageDownloadTask() { imageSlot.cancel() }
}
