import Foundation
import LarkspurHTTP
import LarkspurTransfers

/// The rules by which a background transfer is tried again.
///
/// Apple documents that background sessions retry until the time for the resource is over. Errors that another try cannot
/// change end the task, and so does each response except 429 and 503 with `Retry-After` (RFC 9110 10.2.3).
enum TransferRetry {
  /// Minimum wait for a server that asks for one, in seconds.
  static let secondsMin = 1.0
  /// Maximum wait for a server that asks for a longer one, in seconds.
  static let secondsMax = TransferRecord.waitMax

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
