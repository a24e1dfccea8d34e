import Foundation
import LarkspurHTTP
import LarkspurTransfers

/// The rules by which a background transfer is tried again.
///
/// Apple documents that background sessions retry until the time for the resource is over. Errors that another try cannot
/// change end the task, and so does each response except 429 and 503 with `Retry-After` (RFC 9110 10.2.3).
enum TransferRetry {
  /// The wait before the first retry, in seconds. Each later wait is twice as long, up to `secondsMax`.
  static let secondsMin = 1.0
  /// Maximum wait in seconds, also for a server that asks for a longer one.
  static let secondsMax = TransferRecord.waitMax
  /// Maximum wait between two retries, in seconds, unless the server asks for a longer one.
  static let backOffMax = 300.0

  /// The number of bytes after which a broken download counts as an advance: the wait before the next try is short again.
  static let advanceMin = 64 << 10

  /// Returns the wait before the next try, in seconds, half of which is random: the tasks of many programs must not come
  /// back all at once.
  ///
  /// - Parameters:
  ///   - failures: Number of failed tries in a row, at least 1.
  ///   - fraction: A random number from 0 to 1.
  static func delay(failures: Int, fraction: Double) -> Double {
    let whole = min(secondsMin * pow(2, Double(min(max(failures, 1), 30) - 1)), backOffMax)
    return whole / 2 + whole / 2 * fraction
  }

  /// Returns the wait that a response asks for, in seconds, or `nil` if the response is the task's response.
  static func delay(for response: HTTPURLResponse, now: Double) -> Double? {
    guard response.statusCode == 429 || response.statusCode == 503,
      let text = response.fields.values(of: "Retry-After").first,
      let seconds = RetryAfter.seconds(text, now: now)
    else { return nil }
    return min(max(seconds, secondsMin), secondsMax)
  }

  /// Whether another try may succeed.
  static func mayHelp(after error: URLError) -> Bool {
    switch error.code {
    case .timedOut, .cannotFindHost, .cannotConnectToHost, .networkConnectionLost, .dnsLookupFailed,
      .notConnectedToInternet, .resourceUnavailable, .callIsActive, .dataNotAllowed, .internationalRoamingOff:
      true
    default: false
    }
  }
}
