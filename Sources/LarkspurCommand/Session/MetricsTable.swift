import Foundation
import Larkspur
import LarkspurConsole
import LarkspurIO

/// `--metrics`: a table with a row for each request, and the duration of each of its phases. On a terminal the phases are
/// drawn as well.
package enum MetricsTable {
  /// Writes the table to standard error.
  static func show(_ metrics: URLSessionTaskMetrics) {
    Console.note(lines(metrics))
    guard OpenFile.standardError.isTerminal else { return }
    // One column stays free, because a full line would wrap on some terminals.
    let columns = (OpenFile.standardError.terminalColumns ?? 80) - 1
    let picture = waterfall(metrics).lines(columns: columns, style: .forStandardError)
    if !picture.isEmpty { Console.draw([""] + picture) }
  }

  private static func lines(_ metrics: URLSessionTaskMetrics) -> [String] {
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
    let url = Format.visible(url(transaction).utf8)
    let connection =
      transaction.isReusedConnection ? "used again" : transaction.isProxyConnection ? "new, by a proxy" : "new"
    return [
      "\(transaction.request.httpMethod ?? "GET") \(url)", status,
    ] + phases(transaction).map { time($0.start, $0.end) } + [
      Format.bytes(Int(clamping: transaction.countOfResponseBodyBytesReceived)), connection,
    ]
  }

  private static func url(_ transaction: URLSessionTaskTransactionMetrics) -> String {
    transaction.request.url?.absoluteString ?? ""
  }

  /// The phases of a request, in the order of the columns. The dates of a phase that did not take place are `nil`.
  private static func phases(
    _ transaction: URLSessionTaskTransactionMetrics
  ) -> [(phase: Waterfall.Phase, start: Date?, end: Date?)] {
    [
      (.lookUp, transaction.domainLookupStartDate, transaction.domainLookupEndDate),
      (.connect, transaction.connectStartDate, transaction.secureConnectionStartDate ?? transaction.connectEndDate),
      (.tls, transaction.secureConnectionStartDate, transaction.secureConnectionEndDate),
      (.request, transaction.requestStartDate, transaction.requestEndDate),
      (.wait, transaction.requestEndDate, transaction.responseStartDate),
      (.body, transaction.responseStartDate, transaction.responseEndDate),
    ]
  }

  /// Formats the duration of a phase, or `-` if the phase did not take place.
  private static func time(_ start: Date?, _ end: Date?) -> String {
    guard let start, let end else { return "-" }
    return Format.time(.seconds(max(end.timeIntervalSince(start), 0)))
  }

  // MARK: - The picture

  /// The picture of the phases. A request without a whole response ends where the next one begins, or with the task.
  package static func waterfall(_ metrics: URLSessionTaskMetrics) -> Waterfall {
    let transactions = metrics.transactionMetrics
    let starts = transactions.dropFirst().map(\.fetchStartDate) + [metrics.taskInterval.end]
    return Waterfall(
      zip(transactions, starts).map { transaction, next in
        let url = url(transaction)
        // A scheme has no column: the phases show TLS.
        let place = url.range(of: "://").map { url[$0.upperBound...] } ?? url[...]
        return Waterfall.Request(
          "\(transaction.request.httpMethod ?? "GET") \(place)",
          start: transaction.fetchStartDate?.timeIntervalSinceReferenceDate,
          spans(transaction, until: next ?? metrics.taskInterval.end))
      })
  }

  /// The phases that took place. A phase without an end lasts until the next one, or until the end of the request.
  private static func spans(_ transaction: URLSessionTaskTransactionMetrics, until next: Date) -> [Waterfall.Span] {
    let phases = phases(transaction)
    let end = (transaction.responseEndDate ?? next).timeIntervalSinceReferenceDate
    var spans: [Waterfall.Span] = []
    for (index, phase) in phases.enumerated() {
      guard let start = phase.start?.timeIntervalSinceReferenceDate else { continue }
      let following = phases[(index + 1)...].lazy.compactMap { $0.start }.first?.timeIntervalSinceReferenceDate
      spans.append(.init(phase.phase, start, phase.end?.timeIntervalSinceReferenceDate ?? following ?? end))
    }
    if transaction.responseEndDate == nil { spans.append(.init(.failure, end, end)) }
    return spans
  }
}
