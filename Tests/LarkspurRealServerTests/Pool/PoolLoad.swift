import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport
import TestKit

/// Requests of several tasks at once through a pool, on a loop of its own, and their outcomes.
final class PoolLoad: @unchecked Sendable {
  let loop: ClientLoop
  let pool: Pool
  // Accessed on the loop only.
  private(set) var replies: [PoolReply] = []
  private(set) var failures: [TransportError] = []

  init(_ change: (inout Pool.Options) -> Void = { _ in }) throws {
    var options = Pool.Options()
    change(&options)
    loop = try ClientLoop()
    pool = Pool(on: loop, options: options)
  }

  deinit {
    loop.stop()
  }

  /// Runs `body` for each number below `count`, in `lanes` tasks.
  func run(_ count: Int, lanes: Int = 12, _ body: @escaping @Sendable (Int) async throws -> Void) async throws {
    try await loop.run {
      try await withThrowingDiscardingTaskGroup { group in
        for lane in 0..<lanes {
          group.addTask { for number in stride(from: lane, to: count, by: lanes) { try await body(number) } }
        }
      }
    }
  }

  /// Makes one request. Runs on the loop.
  @discardableResult
  func fetch(
    _ method: String = "GET", _ target: String, body: [UInt8] = [], from route: Route
  ) async -> Result<PoolReply, TransportError> {
    var request = PoolRequest(LarkspurTestSupport.request(method, target, body: body.isEmpty ? nil : body.count))
    request.body = .bytes(body)
    // A server that never answers fails its own test, and does not stop the others.
    request.deadline = loop.kernel.now().advanced(by: .seconds(60))
    do throws(TransportError) {
      let reply = try await pool.fetch(request, from: route)
      replies.append(reply)
      return .success(reply)
    } catch {
      failures.append(error)
      return .failure(error)
    }
  }

  /// Number of answered requests for each connection. Servers report the client's port in `X-Port`, and most of them
  /// add the connection's number, because a port may be used again.
  var requestsByPort: [String: Int] {
    Dictionary(replies.map { ($0.value(of: "X-Port") ?? "", 1) }, uniquingKeysWith: +)
  }

  /// Closes everything, and returns a description of what is left.
  func leftovers() async -> [String] {
    await loop.run { [self] in
      pool.shutDown()
      // Dials in progress are ended by a task of the pool.
      await Wait.until("no slot is in use") { loop.slotsInUse == 0 }
      let found = [
        ("connections", pool.counts.connections), ("slots", loop.slotsInUse), ("bytes of chunks", loop.chunkBytesLent),
      ]
      return found.filter { $0.1 != 0 }.map { "\($0.1) \($0.0)" }
    }
  }
}
