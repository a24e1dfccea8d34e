import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport

/// What a pool's request was answered.
package struct PoolReply: Hashable, Sendable {
  package var status: Int
  package var body: [UInt8]
}

extension Pool {
  /// One request, and its answer to the last byte.
  package func fetch(
    _ request: PoolRequest, from endpoint: Endpoint, in scope: RequestScope, bytesMax: Int = 1 << 24
  ) async throws(TransportError) -> PoolReply {
    var reply: PoolReply?
    try await exchange(request, with: endpoint, in: scope) { exchange throws(TransportError) in
      reply = PoolReply(status: exchange.status, body: try await exchange.collectBody(bytesMax: bytesMax))
    }
    guard let reply else { throw .internalInconsistency }
    return reply
  }

  /// The same, cancelled with the task.
  package func fetch(_ request: PoolRequest, from route: Route) async throws(TransportError) -> PoolReply {
    var reply: PoolReply?
    try await cancelledWithTask { scope throws(TransportError) in
      reply = try await fetch(request, from: endpoint(for: route), in: scope)
    }
    guard let reply else { throw .internalInconsistency }
    return reply
  }

  /// Closes what is idle until nothing is open. Nobody may use the pool meanwhile.
  package func drain() async {
    while counts.connections > 0 {
      closeIdleConnections()
      await Task.yield()
    }
  }
}
