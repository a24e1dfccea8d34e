import Foundation
import Larkspur

/// The order in which waiting downloads start.
public enum AFImageDownloadPrioritization: Int, Hashable, Sendable {
  /// The download that has waited longest starts first.
  case FIFO
  /// The latest download starts first.
  case LIFO

  /// Equivalent to ``FIFO``.
  public static var fifo: AFImageDownloadPrioritization { .FIFO }
  /// Equivalent to ``LIFO``.
  public static var lifo: AFImageDownloadPrioritization { .LIFO }
}

/// The priority of a download: waiting downloads of a higher priority start before those of a lower one, whatever the
/// downloader's ``AFImageDownloadPrioritization`` is.
public enum AFImageDownloadPriority: Int, Hashable, Sendable, CaseIterable, Comparable {
  /// For images that may be needed later.
  case low
  /// The default.
  case normal
  /// For images that the user waits for.
  case high

  /// Compares two priorities.
  public static func < (lhs: Self, rhs: Self) -> Bool { lhs.rawValue < rhs.rawValue }
}

/// The options of one request to an ``AFImageDownloader``.
///
/// The blocks belong to the program, and need not be `Sendable`: they are called by the downloader's
/// ``AFImageDownloader/scheduler``.
public struct AFImageDownloadOptions {
  /// The priority. Of several requests for one download the highest counts.
  public var priority = AFImageDownloadPriority.normal
  /// Called while the image arrives.
  public var progress: ((Progress) -> Void)?
  /// Called with each image that an ``AFIncrementalImageDecoder`` makes of the part that has arrived, and never after
  /// the request's success or failure. Not called for a request that joins a download which has started without it.
  public var partialImage: ((any AFDecodedImage) -> Void)?

  /// Creates the default options.
  public init() {}
}

/// A request to an ``AFImageDownloader``, with which it can be cancelled.
public final class AFImageDownloadReceipt: NSObject, Sendable {
  /// The task that downloads the image, perhaps for other requests, too.
  public let task: URLSessionDataTask
  /// The identifier that the program has given to the request. Several requests may have one.
  public let receiptID: UUID
  /// The number of the request in its downloader.
  let call: Int

  init(receiptID: UUID, task: URLSessionDataTask, call: Int) {
    self.receiptID = receiptID
    self.task = task
    self.call = call
  }
}
