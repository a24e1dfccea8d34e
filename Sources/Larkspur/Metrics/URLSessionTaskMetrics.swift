import Foundation

/// A task in numbers. Immutable, and for any thread.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
  /// How a resource was got.
  public enum ResourceFetchType: Int, Sendable {
    case unknown = 0
    case networkLoad = 1
    @available(swift, deprecated: 6.1, message: "Server push is not supported")
    case serverPush = 2
    case localCache = 3
  }

  /// How the host's name was looked up. Larkspur asks the system's resolver, which does not say.
  public enum DomainResolutionProtocol: Int, Sendable {
    case unknown = 0
    case udp = 1
    case tcp = 2
    case tls = 3
    case https = 4
  }

  /// One for each request that was made, in their order: redirections, challenges and repeated tries have their own.
  open var transactionMetrics: [URLSessionTaskTransactionMetrics] { transactions }

  /// From the task's beginning to its end.
  open var taskInterval: DateInterval {
    DateInterval(start: start, end: max(start, end, transactions.last?.responseEndDate ?? start))
  }

  /// How many redirections were followed.
  open var redirectCount: Int { redirections }

  private let transactions: [URLSessionTaskTransactionMetrics]
  private let start: Date
  private let end: Date
  private let redirections: Int

  /// Of no task: for subclasses in tests.
  public override init() {
    (transactions, redirections, start) = ([], 0, Date())
    end = start
  }

  init(transactions: [URLSessionTaskTransactionMetrics], start: Date, end: Date, redirectCount: Int) {
    self.transactions = transactions
    self.start = start
    self.end = end
    redirections = redirectCount
  }
}
