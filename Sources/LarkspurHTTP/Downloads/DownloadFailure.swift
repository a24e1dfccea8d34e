/// Why a download has failed.
public enum DownloadFailure: Error, Hashable, Sendable {
  /// No mirror can be used any more. The last one answered with this status.
  case status(Int)
  /// No mirror can be used any more. The last failure is the owner's: it has the error by the lane's number.
  case lane(Int)
  /// No mirror can be used any more. The last lane was slower than the lowest rate.
  case tooSlow
  /// `requiresResumable`: there is no strong validator, or the server accepts no ranges. Or a further mirror has no strong
  /// validator, and no other mirror can be used any more.
  case notResumable
  /// The size is not the plan's, or mirrors have different ones.
  case size(expected: Int, found: Int)
  /// The resource changed too often while it was downloaded.
  case changing
  /// The responses contradict themselves.
  case badResponse
  /// The bytes do not have the plan's checksum, also after they have been fetched again.
  case checksum
  /// The disk has no room. All that was synced stays.
  case diskFull
  /// A file operation failed with this `errno`.
  case disk(Int32)
  case cancelled
}
