import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport

/// What a pool's request was answered.
package struct PoolReply: Hashable, Sendable {
  package var status: Int
  /// The head as it came.
  package var head: [UInt8]
  package var body: [UInt8]

  /// The value of the first field called so.
  package func value(of name: String) -> String? {
    for line in String(decoding: head, as: UTF8.self).split(separator: "\r\n").dropFirst() {
      let colon = line.firstIndex(of: ":") ?? line.endIndex
      guard line[..<colon].lowercased() == name.lowercased() else { continue }
      return String(line[colon...].dropFirst().drop { $0 == " " })
    }
    return nil
  }
}

extension Pool {
  /// One request, and its answer to the last byte.
  package func fetch(
    _ request: PoolRequest, from endpoint: Endpoint, in slot: RequestSlot, bytesMax: Int = 1 << 24
  ) async throws(TransportError) -> PoolReply {
    var reply: PoolReply?
    try await exchange(request, with: endpoint, in: slot) { exchange throws(TransportError) in
      let (status, head) = (exchange.status, exchange.headBytes)
      reply = PoolReply(status: status, head: head, body: try await exchange.collectBody(bytesMax: bytesMax))
    }
    guard let reply else { throw .internalInconsistency }
    return reply
  }

  /// The same, cancelled with the task.
  package func fetch(_ request: PoolRequest, from route: Route) async throws(TransportError) -> PoolReply {
    var reply: PoolReply?
    try await cancelledWithTask { slot throws(TransportError) in
      reply = try await fetch(request, from: endpoint(for: route), in: slot)
    }
    guard let reply else { throw .internalInconsistency }
    return reply
  }

  /// Closes what is idle until nothing is open. Nobody may use the pool meanwhile.
  package func drain() async {
    while counts.connections > 0 {
      renewConnections()
      await Task.yield()
    }
  }
}
