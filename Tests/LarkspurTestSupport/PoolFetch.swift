import LarkspurBytes
import LarkspurHTTP
import LarkspurTransport

/// The response to a pool's request.
package struct PoolReply: Hashable, Sendable {
  package var status: Int
  /// The head as received.
  package var head: [UInt8]
  package var body: [UInt8]

  /// Returns the value of the first field with this name.
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
  /// Sends a request, and lends its exchange to `consume` when the response's head is there.
  package func exchange(
    _ request: PoolRequest, with endpoint: Endpoint, in slot: RequestSlot,
    _ consume: (Exchange) async throws(TransportError) -> Void
  ) async throws(TransportError) {
    let running = try await start(request, with: endpoint, in: slot)
    try await consume(running.exchange)
    // The connection is free from here on.
    _ = consume running
  }

  /// Sends one request, and reads its response to the last byte.
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

  /// Sends one request and reads its response; cancels both with the task.
  package func fetch(_ request: PoolRequest, from route: Route) async throws(TransportError) -> PoolReply {
    var reply: PoolReply?
    try await cancelledWithTask { slot throws(TransportError) in
      reply = try await fetch(request, from: endpoint(for: route), in: slot)
    }
    guard let reply else { throw .internalInconsistency }
    return reply
  }
}
