/// The part of a download's plan that `DownloadMachine` needs.
public struct DownloadRules: Hashable, Sendable {
  /// Number of mirrors, at least 1. The machine names a mirror by its index; the first is preferred.
  public var sources = 1
  /// Maximum number of requests at once, from 1.
  public var lanesMax = 4
  /// The smallest range in bytes that a lane of its own is worth, from 1. Also the number of bytes that a lane may have
  /// written and not synced: no more of them are fetched twice.
  public var pieceBytes = 1 << 20
  /// A download that cannot be resumed fails with the first response.
  public var requiresResumable = false
  /// Lowest rate of a lane in bytes per second, or 0 for none. A lane that stays below it for `slowSeconds` is requested
  /// again, from another mirror if there is one.
  public var lowestRate = 0
  public var slowSeconds = 10.0
  /// Failures in a row without a byte, for each mirror, and the delays between them.
  public var retry = RetryRules()
  /// Number of hashes that the plan has for pieces of `hashedPieceBytes` bytes each (the last one may be shorter), or 0.
  public var hashedPieceBytes = 0
  /// Whether the whole has a checksum, or its pieces have.
  public var isVerified = false
  /// Size that the whole must have, or `nil` if the plan does not say.
  public var expectedTotal: Int?

  public init() {}
}
