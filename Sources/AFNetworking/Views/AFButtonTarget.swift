import Foundation
import Larkspur
import Synchronization

/// A button that shows images from URLs, one for each of its states, as `UIButton` with its AFNetworking category.
///
/// The methods are called on the thread of the view. See <doc:Views>.
public protocol AFButtonTarget: AnyObject {
  /// The toolkit's picture: an ``AFDecodedImage`` that the downloader's ``AFImageDecoding`` makes.
  associatedtype Image
  /// The states of a button, such as normal, pressed and insensitive.
  associatedtype ControlState: Hashable & Sendable

  /// Shows an image in a state.
  func setImage(_ image: Image?, for state: ControlState)

  /// Shows a background image in a state.
  func setBackgroundImage(_ image: Image?, for state: ControlState)

  /// The button's slots: a constant that the button creates with itself.
  var imageSlots: AFButtonImageSlots { get }
}

/// The slots of a button: one for the image and one for the background image of each state.
public final class AFButtonImageSlots: Sendable {
  enum Kind { case image, background }

  /// States of a button are values of the program, which are only compared.
  private struct Key: Hashable, @unchecked Sendable {
    let kind: Kind
    let state: AnyHashable
  }

  private let makeSlot: @Sendable () -> AFImageSlot
  private let slots = Mutex<[Key: AFImageSlot]>([:])

  /// Creates slots.
  ///
  /// - Parameters:
  ///   - downloader: The downloader, or `nil` for the one that all views share.
  ///   - priority: The priority of the button's requests.
  public init(downloader: AFImageDownloader? = nil, priority: AFImageDownloadPriority = .normal) {
    makeSlot = { AFImageSlot(downloader: downloader, priority: priority) }
  }

  func slot(_ kind: Kind, _ state: AnyHashable) -> AFImageSlot {
    slots.withLock { slots in
      let key = Key(kind: kind, state: state)
      if let slot = slots[key] { return slot }
      let slot = makeSlot()
      slots[key] = slot
      return slot
    }
  }
}

extension AFButtonTarget {
  /// Returns the downloader of all views whose slot has no downloader.
  public static func sharedImageDownloader() -> AFImageDownloader { AFImageSlot.shared }

  /// Sets the downloader of all views whose slot has no downloader.
  public static func setSharedImageDownloader(_ imageDownloader: AFImageDownloader) {
    AFImageSlot.shared = imageDownloader
  }

  // MARK: - Images

  /// Downloads an image for a state and shows it, and the placeholder until then.
  public func setImageFor(_ state: ControlState, with url: URL, placeholderImage: Image? = nil) {
    setImageFor(state, with: .image(url), placeholderImage: placeholderImage, success: nil, failure: nil)
  }

  /// Downloads an image for a state. See ``AFImageTarget/setImageWith(_:placeholderImage:success:failure:)``.
  public func setImageFor(
    _ state: ControlState, with urlRequest: URLRequest, placeholderImage: Image?,
    success: ((URLRequest, HTTPURLResponse?, Image) -> Void)? = nil,
    failure: ((URLRequest, HTTPURLResponse?, any Error) -> Void)? = nil
  ) {
    imageSlots.slot(.image, state).load(
      urlRequest, placeholder: placeholderImage, show: { [weak self] in self?.setImage($0, for: state) },
      success: success, failure: failure)
  }

  /// See ``setImageFor(_:with:placeholderImage:)``.
  public func setImage(for state: ControlState, with url: URL, placeholderImage: Image? = nil) {
    setImageFor(state, with: url, placeholderImage: placeholderImage)
  }

  /// Cancels the request for a state's image. Its blocks are not called.
  public func cancelImageDownloadTask(for state: ControlState) { imageSlots.slot(.image, state).cancel() }

  // MARK: - Background images

  /// Downloads a background image for a state and shows it, and the placeholder until then.
  public func setBackgroundImageFor(_ state: ControlState, with url: URL, placeholderImage: Image? = nil) {
    setBackgroundImageFor(state, with: .image(url), placeholderImage: placeholderImage, success: nil, failure: nil)
  }

  /// Downloads a background image for a state. See
  /// ``AFImageTarget/setImageWith(_:placeholderImage:success:failure:)``.
  public func setBackgroundImageFor(
    _ state: ControlState, with urlRequest: URLRequest, placeholderImage: Image?,
    success: ((URLRequest, HTTPURLResponse?, Image) -> Void)? = nil,
    failure: ((URLRequest, HTTPURLResponse?, any Error) -> Void)? = nil
  ) {
    imageSlots.slot(.background, state).load(
      urlRequest, placeholder: placeholderImage, show: { [weak self] in self?.setBackgroundImage($0, for: state) },
      success: success, failure: failure)
  }

  /// See ``setBackgroundImageFor(_:with:placeholderImage:)``.
  public func setBackgroundImage(for state: ControlState, with url: URL, placeholderImage: Image? = nil) {
    setBackgroundImageFor(state, with: url, placeholderImage: placeholderImage)
  }

  /// Cancels the request for a state's background image. Its blocks are not called.
  public func cancelBackgroundImageDownloadTask(for state: ControlState) {
    imageSlots.slot(.background, state).cancel()
  }
}
