/// What a pool's requests are cancelled by, one after another: any thread may cancel, once and for all.
package final class RequestScope: @unchecked Sendable {
  private let pool: Pool
  // The loop's.
  private(set) var isCancelled = false
  /// The pool's entry for the request that goes on at present.
  var entry: Int?

  /// Whether `metrics` are wanted.
  package var collectsMetrics = false
  /// One for each try of each request, in their order.
  package internal(set) var metrics: [ExchangeMetrics] = []

  /// Those that have come since the last call.
  package func takeMetrics() -> [ExchangeMetrics] {
    defer { metrics = [] }
    return metrics
  }

  package init(of pool: Pool) { self.pool = pool }

  package func cancel() {
    pool.loop.post { [self] in
      isCancelled = true
      if let entry { pool.cancel(entry) }
    }
  }
}
