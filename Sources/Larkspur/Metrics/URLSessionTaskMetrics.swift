import Foundation

/// The metrics of a task. Immutable, and for any thread.
open class URLSessionTaskMetrics: NSObject, @unchecked Sendable {
  /// The source of a resource.
  public enum ResourceFetchType: Int, Sendable {
    /// A program's `URLProtocol`, a file, or the URL itself (`data:`).
    case unknown = 0
    /// A server.
    case networkLoad = 1
    /// A server's push. Never used: HTTP/1.1 has no server push.
    @available(swift, deprecated: 6.1, message: "Server push is not supported")
    case serverPush = 2
    /// The cache.
    case localCache = 3
  }

  /// The protocol of the look-up of the host's name. Larkspur uses the system's resolver, which does not report the
  /// protocol.
  public enum DomainResolutionProtocol: Int, Sendable {
    /// The protocol is unknown. Larkspur reports no other value.
    case unknown = 0
    /// Plain DNS over UDP.
    case udp = 1
    /// Plain DNS over TCP.
    case tcp = 2
    /// DNS over TLS (RFC 7858).
    case tls = 3
    /// DNS over HTTPS (RFC 8484).
    case https = 4
  }

  /// The metrics of each request that was made, in order. Redirections, challenges and repeated tries have metrics of
  /// their own.
  open var transactionMetrics: [URLSessionTaskTransactionMetrics] { transactions }

  /// The time from the creation of the task to its end.
  open var taskInterval: DateInterval {
    DateInterval(start: start, end: max(start, end, transactions.last?.responseEndDate ?? start))
  }

  /// The number of redirections that were followed.
  open var redirectCount: Int { redirections }

  private let transactions: [URLSessionTaskTransactionMetrics]
  private let start: Date
  private let end: Date
  private let redirections: Int

  /// Creates metrics without a task, for subclasses in tests.
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
