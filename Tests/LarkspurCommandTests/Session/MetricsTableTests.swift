import Foundation
import Larkspur
import LarkspurCommand
import LarkspurConsole
import Testing

/// Tests how the dates of metrics become a picture.
@Suite struct MetricsTableTests {
  private final class Transaction: URLSessionTaskTransactionMetrics, @unchecked Sendable {
    var dates: [Waterfall.Phase: (Double?, Double?)] = [:]
    var fetchStart: Double? = 0

    override var request: URLRequest { URLRequest(url: URL(string: "https://example.org/a") ?? URL(filePath: "/")) }
    override var fetchStartDate: Date? { date(fetchStart) }
    override var domainLookupStartDate: Date? { date(dates[.lookUp]?.0) }
    override var domainLookupEndDate: Date? { date(dates[.lookUp]?.1) }
    override var connectStartDate: Date? { date(dates[.connect]?.0) }
    override var secureConnectionStartDate: Date? { date(dates[.tls]?.0) }
    override var secureConnectionEndDate: Date? { date(dates[.tls]?.1) }
    override var connectEndDate: Date? { date(dates[.tls]?.1 ?? dates[.connect]?.1) }
    override var requestStartDate: Date? { date(dates[.request]?.0) }
    override var requestEndDate: Date? { date(dates[.request]?.1) }
    override var responseStartDate: Date? { date(dates[.body]?.0) }
    override var responseEndDate: Date? { date(dates[.body]?.1) }

    private func date(_ seconds: Double?) -> Date? { seconds.map { Date(timeIntervalSinceReferenceDate: $0) } }
  }

  private final class Metrics: URLSessionTaskMetrics, @unchecked Sendable {
    var transactions: [Transaction] = []
    var end = 0.0

    override var transactionMetrics: [URLSessionTaskTransactionMetrics] { transactions }
    override var taskInterval: DateInterval {
      DateInterval(start: Date(timeIntervalSinceReferenceDate: 0), end: Date(timeIntervalSinceReferenceDate: end))
    }
  }

  private func bars(_ transactions: Transaction..., until end: Double) -> [String] {
    let metrics = Metrics()
    (metrics.transactions, metrics.end) = (transactions, end)
    let lines = MetricsTable.waterfall(metrics).lines(columns: 60, style: Style(isOn: false))
    return lines.prefix(transactions.count).map { String($0) }
  }

  private func transaction(
    _ dates: [Waterfall.Phase: (Double?, Double?)], from start: Double? = 0
  ) -> Transaction {
    let transaction = Transaction()
    (transaction.dates, transaction.fetchStart) = (dates, start)
    return transaction
  }

  @Test func phases() {
    let new = transaction([
      .lookUp: (0, 1), .connect: (1, 2), .tls: (2, 3), .request: (3, 4), .body: (5, 6),
    ])
    let reused = transaction([.request: (6, 7), .body: (8, 9)], from: 6)
    #expect(
      bars(new, reused, until: 9) == [
        "GET example.org/a  ::::---====>>>>...####             6.00 s",
        "GET example.org/a                        >>>>...####  3.00 s",
      ])
  }

  /// A request without a response ends where the next one begins, and the last one with the task.
  @Test func failures() {
    let unanswered = transaction([.request: (0, 1)])
    let refused = transaction([.connect: (4, nil)], from: 3)
    #expect(
      bars(unanswered, refused, until: 9) == [
        "GET example.org/a  >>>>.......!                       3.00 s",
        "GET example.org/a                 -----------------!  6.00 s",
      ])
    // Nothing is known of a request that was not begun.
    #expect(
      bars(transaction([:], from: nil), until: 9) == [
        "GET example.org/a  !                                  0.0 ms"
      ])
  }

  /// The request's last byte was never sent, and the response came all the same.
  @Test func missingEnd() {
    #expect(
      bars(transaction([.request: (0, nil), .body: (5, 10)]), until: 10) == [
        "GET example.org/a  >>>>>>>>>>>>>>>>################  10.00 s"
      ])
  }
}
