/// The part of a download's plan that `DownloadMachine` needs. Values out of their limits count as the nearest limit.
public struct DownloadRules: Hashable, Sendable {
  /// Maximum number of requests at once, from 1 to `lanesLimit`.
  public var lanesMax = 4
  /// The smallest range in bytes that is worth a separate lane, from 1 to `pieceLimit`. Also the number of bytes that a
  /// lane may have written and not synced: no more of them are fetched twice.
  public var pieceBytes = 1 << 20
  /// A download that cannot be resumed fails with the first response.
  public var requiresResumable = false
  /// Lowest rate of a lane in bytes per second, or 0 for none. A lane that stays below it for `slowSeconds` fails.
  public var lowestRate = 0
  /// Seconds from 1 that a lane may be slower than `lowestRate`, counted from the head of its response.
  public var slowSeconds = 10.0
  /// Failures in a row without a byte, for each mirror, and the delays between them.
  public var retry = RetryRules()
  /// Size in bytes that the whole must have, or `nil` if the plan does not say.
  public var expectedTotal: Int?

  public static let lanesLimit = 256
  public static let pieceLimit = 1 << 40

  public init() {}

  /// The rules with values that sums and products of them cannot overflow.
  var limited: DownloadRules {
    var rules = self
    rules.lanesMax = min(max(lanesMax, 1), Self.lanesLimit)
    rules.pieceBytes = min(max(pieceBytes, 1), Self.pieceLimit)
    rules.slowSeconds = slowSeconds >= 1 ? slowSeconds : 1
    rules.expectedTotal = expectedTotal.map { max($0, 0) }
    return rules
  }
}
