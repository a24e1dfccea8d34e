import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import TestKit

/// Many requests, cancellations and connections through the pools of one loop, to one server. Runs on the loop.
final class Soak: @unchecked Sendable {
  /// Number of operations of each kind.
  struct Amount: Sendable {
    var requests = 1_000_000
    var cancellations = 20_000
    var connections = 10_000

    func divided(by parts: Int) -> Amount {
      Amount(
        requests: requests / parts, cancellations: cancellations / parts, connections: connections / parts)
    }
  }

  /// The outcomes of the requests.
  struct Tally: Sendable {
    var answered = 0
    var cancelled = 0
    /// The first few errors.
    var failures: [String] = []
  }

  private let loop: ClientLoop
  private let route: Route
  private let keeping: Pool
  private let renewing: Pool
  private var generator: SeededGenerator
  private(set) var tally = Tally()

  /// Number of requests in flight at once.
  private static let width = 24

  init(to route: Route, on loop: ClientLoop, seed: UInt64) {
    self.loop = loop
    self.route = route
    generator = SeededGenerator(seed: seed)
    keeping = Pool(on: loop)
    var options = Pool.Options()
    options.limits.requestsMax = 1
    renewing = Pool(on: loop, options: options)
  }

  func run(_ amount: Amount) async {
    await sideBySide(amount.requests) { soak, _ in await soak.request(through: soak.keeping, from: soak.route) }
    await sideBySide(amount.cancellations) { soak, _ in await soak.cancelledRequest() }
    await sideBySide(amount.connections) { soak, number in
      // Every eighth request looks a name up, which has two addresses.
      var route = soak.route
      if number % 8 == 0 { route.host = "localhost" }
      await soak.request(through: soak.renewing, from: route)
    }
    await drain(keeping)
    await drain(renewing)
  }

  /// Closes idle connections until none is open. The pool must not be used meanwhile.
  private func drain(_ pool: Pool) async {
    // Connections that stay open are among the descriptors that are left behind.
    _ = await loop.waits {
      pool.renewConnections()
      return pool.counts.connections == 0
    }
  }

  func end() {
    keeping.shutDown()
    renewing.shutDown()
  }

  private func sideBySide(_ count: Int, _ body: @escaping @Sendable (Soak, Int) async -> Void) async {
    await withDiscardingTaskGroup { group in
      for lane in 0..<Self.width {
        group.addTask { [self] in
          for number in stride(from: lane, to: count, by: Self.width) { await body(self, number) }
        }
      }
    }
  }

  private func request(through pool: Pool, from route: Route) async {
    do {
      note(try await pool.fetch(PoolRequest(LarkspurTestSupport.request("GET", "/bytes/100")), from: route), bytes: 100)
    } catch {
      note(error)
    }
  }

  /// Cancels a request at a random moment: while it waits for a connection, while the connection is opened, while the
  /// request is sent, while the response arrives, or after it has completed.
  private func cancelledRequest() async {
    let (request, bytes) = anyRequest()
    let pace = Int.random(in: 0..<9, using: &generator)
    let moment = Int.random(in: 0...(1 << pace), using: &generator)
    let isFar = Bool.random(using: &generator)
    let running = Task(executorPreference: loop) { @concurrent [self] in
      do throws(TransportError) {
        note(try await keeping.fetch(request, from: route), bytes: bytes)
      } catch {
        note(error)
      }
    }
    if isFar {
      // Cancels from another thread, at a moment unrelated to the loop's ticks.
      await Task.detached {
        for _ in 0..<moment { await Task.yield() }
        running.cancel()
      }.value
    } else {
      for _ in 0..<moment { await Task.yield() }
      running.cancel()
    }
    await running.value
  }

  private func anyRequest() -> (PoolRequest, bytes: Int?) {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0:
      let bytes = Int.random(in: 0...400_000, using: &generator)
      return (PoolRequest(LarkspurTestSupport.request("GET", "/bytes/\(bytes)")), bytes)
    case 1:
      let bytes = Int.random(in: 0...100_000, using: &generator)
      return (PoolRequest(LarkspurTestSupport.request("GET", "/chunked/\(bytes)?chunk=512")), bytes)
    case 2:
      let body = [UInt8](repeating: 120, count: Int.random(in: 0...200_000, using: &generator))
      var request = PoolRequest(LarkspurTestSupport.request("POST", "/post", body: body.count))
      request.body = .bytes(body)
      return (request, nil)
    default: return (PoolRequest(LarkspurTestSupport.request("GET", "/delay/1")), nil)
    }
  }

  private func note(_ reply: PoolReply, bytes: Int?) {
    tally.answered += 1
    if reply.status != 200 || bytes.map({ $0 != reply.body.count }) == true {
      fail("\(reply.status) with \(reply.body.count) bytes")
    }
  }

  private func note(_ error: any Error) {
    if let error = error as? TransportError, error == .cancelled {
      tally.cancelled += 1
    } else {
      fail("\(error)")
    }
  }

  private func fail(_ message: String) {
    if tally.failures.count < 10 { tally.failures.append(message) }
  }
}
