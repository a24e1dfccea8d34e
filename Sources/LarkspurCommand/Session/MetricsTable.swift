import Foundation
import Larkspur
import LarkspurConsole

/// `--metrics`: a table with a row for each request, and the duration of each of its phases.
enum MetricsTable {
  static func lines(_ metrics: URLSessionTaskMetrics) -> [String] {
    var table = Table(columns: [.left, .right, .right, .right, .right, .right, .right, .right, .right, .left])
    table.append(["Request", "Status", "Look-up", "Connect", "TLS", "Sent", "Wait", "Body", "Received", "Connection"])
    for transaction in metrics.transactionMetrics { table.append(row(transaction)) }
    let count = metrics.redirectCount
    let redirects = count == 0 ? "" : ", \(count) redirection\(count == 1 ? "" : "s")"
    return table.text.split(separator: "\n").map(String.init) + [
      "\(Format.time(.seconds(metrics.taskInterval.duration))) in all\(redirects)"
    ]
  }

  private static func row(_ transaction: URLSessionTaskTransactionMetrics) -> [String] {
    let status = (transaction.response as? HTTPURLResponse).map { "\($0.statusCode)" } ?? "-"
    let url = Format.visible((transaction.request.url?.absoluteString ?? "").utf8)
    let connection =
      transaction.isReusedConnection ? "used again" : transaction.isProxyConnection ? "new, by a proxy" : "new"
    return [
      "\(transaction.request.httpMethod ?? "GET") \(url)", status,
      time(transaction.domainLookupStartDate, transaction.domainLookupEndDate),
      time(transaction.connectStartDate, transaction.secureConnectionStartDate ?? transaction.connectEndDate),
      time(transaction.secureConnectionStartDate, transaction.secureConnectionEndDate),
      time(transaction.requestStartDate, transaction.requestEndDate),
      time(transaction.requestEndDate, transaction.responseStartDate),
      time(transaction.responseStartDate, transaction.responseEndDate),
      Format.bytes(Int(clamping: transaction.countOfResponseBodyBytesReceived)), connection,
    ]
  }

  /// Formats the duration of a phase, or `-` if the phase did not take place.
  private static func time(_ start: Date?, _ end: Date?) -> String {
    guard let start, let end else { return "-" }
    return Format.time(.seconds(max(end.timeIntervalSince(start), 0)))
  }
}
