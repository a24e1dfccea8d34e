import Foundation
import Larkspur
import Synchronization

/// The slot for one image of a view: holds the request that the view waits for. The latest request wins.
///
/// A view has one slot, which it creates with itself and keeps:
///
/// ```swift
/// let imageSlot = AFImageSlot()
/// ```
public final class AFImageSlot: Sendable {
  private struct State: Sendable {
    /// The request that the view waits for.
    var current: UUID?
    var receipt: (downloader: AFImageDownloader, receipt: AFImageDownloadReceipt)?
  }

  private static let sharedDownloader = Mutex<AFImageDownloader?>(nil)

  /// The downloader of all views whose slot has none: ``AFImageDownloader/defaultInstance()`` by default.
  static var shared: AFImageDownloader {
    get { sharedDownloader.withLock { $0 } ?? .defaultInstance() }
    set { sharedDownloader.put(newValue, at: \.self) }
  }

  /// Whether the view shows images of which a part has arrived. That takes an ``AFIncrementalImageDecoding``.
  public let showsPartialImages: Bool
  /// The priority of the view's requests.
  public let priority: AFImageDownloadPriority
  private let downloader: AFImageDownloader?
  private let state = Mutex(State())

  /// Creates a slot.
  ///
  /// - Parameters:
  ///   - downloader: The downloader, or `nil` for the one that all views share.
  ///   - priority: The priority of the view's requests.
  ///   - showsPartialImages: Whether the view shows images of which a part has arrived.
  public init(
    downloader: AFImageDownloader? = nil, priority: AFImageDownloadPriority = .normal, showsPartialImages: Bool = false
  ) {
    self.downloader = downloader
    self.priority = priority
    self.showsPartialImages = showsPartialImages
  }

  /// Whether the view waits for an image.
  public var isLoading: Bool { state.withLock { $0.current != nil } }

  /// Cancels the request that the view waits for. Its blocks are not called.
  public func cancel() { replace(by: nil) }

  /// Makes a request the current one, and cancels the one before.
  private func replace(by identifier: UUID?) {
    let old = state.withLock { state in
      state.current = identifier
      return state.receipt.take()
    }
    if let old { old.downloader.cancelTask(for: old.receipt) }
  }

  private func isCurrent(_ identifier: UUID) -> Bool { state.withLock { $0.current == identifier } }

  /// Ends a request.
  ///
  /// - Returns: Whether the request was the current one.
  private func end(_ identifier: UUID) -> Bool {
    state.withLock { state in
      guard state.current == identifier else { return false }
      state.current = nil
      state.receipt = nil
      return true
    }
  }

  /// Loads an image for a view. Called on the thread of the view, where the blocks are called, too.
  ///
  /// - Parameters:
  ///   - show: Shows an image in the view.
  ///   - success: Called in place of `show` with the image, if it is not `nil`.
  func load<Image>(
    _ request: URLRequest, placeholder: Image?, show: @escaping (Image) -> Void,
    success: ((URLRequest, HTTPURLResponse?, Image) -> Void)?,
    failure: ((URLRequest, HTTPURLResponse?, any Error) -> Void)?
  ) {
    let downloader = downloader ?? Self.shared
    let finish = success ?? { _, _, image in show(image) }
    if request.url != nil, AFImageDownloader.permitsCache(request),
      let image = downloader.imageCache?.imagefor(request, withAdditionalIdentifier: nil) as? Image
    {
      cancel()
      return finish(request, nil, image)
    }
    let identifier = UUID()
    // The new request joins the download of an equal one before that one is cancelled.
    let old = state.withLock { state in
      state.current = identifier
      return state.receipt.take()
    }
    if let placeholder { show(placeholder) }
    var options = AFImageDownloadOptions()
    options.priority = priority
    if showsPartialImages {
      options.partialImage = { [weak self] image in
        if let self, isCurrent(identifier), let image = image as? Image { show(image) }
      }
    }
    let receipt = downloader.downloadImage(for: request, withReceiptID: identifier, options: options) {
      [weak self] request, response, image in
      guard self?.end(identifier) ?? true else { return }
      guard let image = image as? Image else {
        failure?(request, response, AFImageError.unsuitableType("\(type(of: image))"))
        return
      }
      finish(request, response, image)
    } failure: { [weak self] request, response, error in
      guard self?.end(identifier) ?? true else { return }
      failure?(request, response, error)
    }
    if let receipt {
      state.withLock { if $0.current == identifier { $0.receipt = (downloader, receipt) } }
    }
    if let old { old.downloader.cancelTask(for: old.receipt) }
  }
}

extension URLRequest {
  /// A request as AFNetworking makes it of a URL for a view.
  static func image(_ url: URL) -> URLRequest {
    var request = URLRequest(url: url)
    request.addValue("image/*", forHTTPHeaderField: "Accept")
    return request
  }
}
