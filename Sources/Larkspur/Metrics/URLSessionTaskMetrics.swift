import Foundation

/// A task in numbers. Immutable, and for any thread.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
  /// How a resource was got.
  public enum ResourceFetchType: Int, Sendable {
    /// By a program's protocol, from a file, or out of the URL itself.
    case unknown = 0
    /// From a server.
    case networkLoad = 1
    /// Never: HTTP/1.1 has no such thing.
    @available(swift, deprecated: 6.1, message: "Server push is not supported")
    case serverPush = 2
    /// From the cache.
    case localCache = 3
  }

  /// How the host's name was looked up. Larkspur asks the system's resolver, which does not say.
  public enum DomainResolutionProtocol: Int, Sendable {
    /// Always.
    case unknown = 0
    /// In plain DNS over UDP.
    case udp = 1
    /// In plain DNS over TCP.
    case tcp = 2
    /// By DNS over TLS (RFC 7858).
    case tls = 3
    /// By DNS over HTTPS (RFC 8484).
    case https = 4
  }

  /// One for each request that was made, in their order: redirections, challenges and repeated tries have their own.
  open var transactionMetrics: [URLSessionTaskTransactionMetrics] { transactions }

  /// From the task's making to its end.
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
