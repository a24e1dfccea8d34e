import Foundation
import Larkspur
import Synchronization

/// A cache of images in memory. When the images exceed ``memoryCapacity``, the cache removes those that have not been
/// used for the longest time, until the rest is within ``preferredMemoryUsageAfterPurge``.
///
/// Safe to use from any thread. Each operation takes constant time on average, regardless of the number of images.
/// There is no system-wide memory warning on Linux: a program that gets one from its toolkit calls
/// ``removeAllImages()``.
open class AFAutoPurgingImageCache: NSObject, AFImageRequestCache, @unchecked Sendable {
  private struct State {
    /// Images with their sizes in bytes. The image that was used the longest time ago comes first.
    var images = OrderedTable<String, (image: any AFDecodedImage, byteCount: UInt64)>()
    var usage: UInt64 = 0
    var capacity: UInt64
    var preferred: UInt64

    mutating func remove(_ identifier: String) -> (any AFDecodedImage)? {
      guard let entry = images.remove(identifier) else { return nil }
      usage -= entry.byteCount
      return entry.image
    }

    /// Removes the oldest images if the capacity is exceeded.
    ///
    /// - Returns: The removed images, which the caller releases after the lock.
    mutating func purge() -> [any AFDecodedImage] {
      var removed: [any AFDecodedImage] = []
      guard usage > capacity else { return removed }
      while usage > preferred, let oldest = images.popFirst() {
        usage -= oldest.value.byteCount
        removed.append(oldest.value.image)
      }
      return removed
    }
  }

  private let state: Mutex<State>

  /// Creates a cache of 100 MiB, which purges to 60 MiB, as AFNetworking's.
  public override convenience init() {
    self.init(memoryCapacity: 100 << 20, preferredMemoryCapacity: 60 << 20)
  }

  /// Creates a cache.
  ///
  /// - Parameters:
  ///   - memoryCapacity: Maximum sum of the images' ``AFDecodedImage/decodedByteCount``, in bytes.
  ///   - preferredMemoryCapacity: The sum after a purge, in bytes. A value above `memoryCapacity` counts as that.
  public init(memoryCapacity: UInt64, preferredMemoryCapacity: UInt64) {
    state = Mutex(State(capacity: memoryCapacity, preferred: min(preferredMemoryCapacity, memoryCapacity)))
  }

  /// Maximum sum of the images' ``AFDecodedImage/decodedByteCount``, in bytes. A lower value purges at once.
  open var memoryCapacity: UInt64 {
    get { state.withLock { $0.capacity } }
    set {
      release {
        $0.capacity = newValue
        $0.preferred = min($0.preferred, newValue)
      }
    }
  }

  /// The sum of the images' sizes after a purge, in bytes. A value above ``memoryCapacity`` counts as that.
  open var preferredMemoryUsageAfterPurge: UInt64 {
    get { state.withLock { $0.preferred } }
    set { state.withLock { $0.preferred = min(newValue, $0.capacity) } }
  }

  /// The sum of the images' sizes in bytes.
  open var memoryUsage: UInt64 { state.withLock { $0.usage } }

  // MARK: - By identifiers

  /// Adds an image as the one that was used last. Its size is read once, now. A size of zero counts as one byte.
  open func add(_ image: any AFDecodedImage, withIdentifier identifier: String) {
    let byteCount = max(image.decodedByteCount, 1)
    // The replaced image is released after the lock, too.
    let old = state.withLock { $0.remove(identifier) }
    release { state in
      let (usage, overflows) = state.usage.addingReportingOverflow(byteCount)
      // Beyond any capacity.
      guard !overflows else { return }
      if let entry = state.images.append(identifier, (image, byteCount)) {
        // Another thread has added an image with this identifier meanwhile.
        state.usage = usage - entry.byteCount
      } else {
        state.usage = usage
      }
    }
    withExtendedLifetime(old) {}
  }

  /// Removes an image.
  ///
  /// - Returns: Whether there was one.
  @discardableResult
  open func removeImage(withIdentifier identifier: String) -> Bool { state.withLock { $0.remove(identifier) } != nil }

  /// Removes all images.
  ///
  /// - Returns: Whether there were any.
  @discardableResult
  open func removeAllImages() -> Bool {
    let images = state.withLock { state in
      state.usage = 0
      return exchange(&state.images, with: OrderedTable())
    }
    return images.count > 0
  }

  /// Returns an image, which becomes the one that was used last.
  open func image(withIdentifier identifier: String) -> (any AFDecodedImage)? {
    state.withLock { $0.images.moveToBack(identifier)?.image }
  }

  // MARK: - By requests

  /// Returns the identifier for a request: its URL, followed by the additional identifier. The method and the fields
  /// of the request do not matter, as in AFNetworking.
  open func imageCacheKey(from request: URLRequest, withAdditionalIdentifier identifier: String?) -> String {
    (request.url?.absoluteString ?? "") + (identifier ?? "")
  }

  /// Returns `true`. A subclass may decide otherwise.
  open func shouldCache(
    _ image: any AFDecodedImage, for request: URLRequest, withAdditionalIdentifier identifier: String?
  ) -> Bool { true }

  /// Adds an image under ``imageCacheKey(from:withAdditionalIdentifier:)``.
  open func add(_ image: any AFDecodedImage, for request: URLRequest, withAdditionalIdentifier identifier: String?) {
    add(image, withIdentifier: imageCacheKey(from: request, withAdditionalIdentifier: identifier))
  }

  /// Removes the image under ``imageCacheKey(from:withAdditionalIdentifier:)``.
  ///
  /// - Returns: Whether there was one.
  @discardableResult
  open func removeImagefor(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> Bool {
    removeImage(withIdentifier: imageCacheKey(from: request, withAdditionalIdentifier: identifier))
  }

  /// Returns the image under ``imageCacheKey(from:withAdditionalIdentifier:)``, which becomes the one that was used
  /// last.
  open func imagefor(_ request: URLRequest, withAdditionalIdentifier identifier: String?) -> (any AFDecodedImage)? {
    image(withIdentifier: imageCacheKey(from: request, withAdditionalIdentifier: identifier))
  }

  /// Changes the state, purges, and releases the purged images after the lock.
  private func release(_ body: (inout State) -> Void) {
    let removed = state.withLock { state in
      body(&state)
      return state.purge()
    }
    withExtendedLifetime(removed) {}
  }
}
