import Foundation

/// The settings of a downloader's memory of failures: a URL for which the server has answered with one of
/// ``statusCodes`` is not requested again for some time, whatever the fields of the request are. Its downloads fail at
/// once, with the recorded error.
///
/// Only answers of the server count: an error of the network is not recorded. A request whose cache policy ignores
/// caches is always sent.
public struct AFImageFailureMemory: Hashable, Sendable {
  /// The status codes that are recorded: 404 and 410 by default. If empty, nothing is recorded.
  public var statusCodes: Set<Int> = [404, 410]
  /// The time in seconds for which a failure counts. 60 by default.
  public var seconds: TimeInterval = 60
  /// Maximum number of recorded URLs. 1000 by default; beyond it the oldest are dropped.
  public var countMax = 1000

  /// Creates the default settings.
  public init() {}
}

/// Records failures by URL. Times are in nanoseconds of one clock. Pure.
struct RememberedFailures {
  var settings = AFImageFailureMemory()
  /// The oldest failure comes first.
  private var failures = OrderedTable<String, (time: UInt64, error: any Error)>()

  var count: Int { failures.count }

  mutating func remember(_ error: any Error, statusCode: Int?, for url: String, now: UInt64) {
    guard let statusCode, settings.statusCodes.contains(statusCode), settings.countMax > 0 else { return }
    failures.append(url, (now, error))
    trim()
  }

  mutating func error(for url: String, now: UInt64) -> (any Error)? {
    trim()
    guard let failure = failures[url] else { return nil }
    let age = Double(now >= failure.time ? now - failure.time : 0) / 1e9
    guard age < settings.seconds else {
      failures.remove(url)
      return nil
    }
    return failure.error
  }

  mutating func forget(_ url: String) { failures.remove(url) }

  mutating func forgetAll() { failures = OrderedTable() }

  private mutating func trim() {
    while failures.count > max(settings.countMax, 0) { _ = failures.popFirst() }
  }
}
