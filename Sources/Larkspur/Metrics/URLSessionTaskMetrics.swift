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
  public let transactionMetrics: [URLSessionTaskTransactionMetrics]

  /// From the task's beginning to its end.
  public var taskInterval: DateInterval {
    DateInterval(start: start, end: max(start, end, transactionMetrics.last?.responseEndDate ?? start))
  }
  private let start: Date
  private let end: Date

  /// How many redirections were followed.
  public let redirectCount: Int

  init(transactions: [URLSessionTaskTransactionMetrics], start: Date, end: Date, redirectCount: Int) {
    transactionMetrics = transactions
    self.start = start
    self.end = end
    self.redirectCount = redirectCount
  }
}
