import LarkspurHTTP
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// The observer of a pool's connections.
@Suite struct PoolObserverTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }

  init() throws {
    tests = try PoolTests()
  }

  /// The request's own observer is called behind the pool's, and is not called for later requests.
  @Test func everyEventOfAConnection() {
    let seen = Shared<[String]>([])
    var options = Pool.Options()
    options.observer = { event, _ in if let word = Self.word(for: event) { seen.value.append(word) } }
    let pool = Pool(on: world.loop, options: options)
    let first = world.start {
      var request = PoolRequest(request())
      request.observer = { event, _ in if case .requestSent = event { seen.value.append("own") } }
      let running = try await pool.start(
        request, with: pool.endpoint(for: PoolTests.route), in: RequestSlot(of: pool))
      return try await running.exchange.collectBody(bytesMax: 100).count
    }
    world.settle()
    tests.kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(first.value == 5)
    let second = tests.fetch(through: pool)
    world.settle()
    tests.kernel.peer().send(PoolTests.response)
    world.settle()
    #expect(second.value?.status == 200)
    #expect(tests.leftovers(of: pool) == [])
    #expect(
      seen.value == [
        "connected", "started", "sent", "own", "head 38", "completed", "started", "sent", "head 38", "completed",
        "closed",
      ])
  }

  private static func word(for event: ConnectionEvent) -> String? {
    switch event {
    case .connected: "connected"
    case .requestStarted(let head, let bytes): head == request().bytes && bytes == head.count ? "started" : "wrong"
    case .requestSent: "sent"
    case .headReceived(_, let bytes): "head \(bytes.count)"
    case .completed: "completed"
    case .closed: "closed"
    default: nil
    }
  }
}
