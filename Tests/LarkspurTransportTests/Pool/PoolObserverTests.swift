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
    options.observer = PoolObserver { event, _, connection, task in
      if let word = Self.word(for: event) { seen.value.append("\(connection) \(task ?? 0) \(word)") }
    }
    let pool = Pool(on: world.loop, options: options)
    let first = world.start {
      var request = PoolRequest(request())
      request.observer = { event, _ in if case .requestSent = event { seen.value.append("own") } }
      let slot = RequestSlot(of: pool)
      slot.task = 7
      let running = try await pool.start(request, with: pool.endpoint(for: PoolTests.route), in: slot)
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
        "1 7 connected", "1 7 new", "1 7 sent", "own", "1 7 head 38", "1 7 completed", "1 0 reused", "1 0 sent",
        "1 0 head 38", "1 0 completed", "1 0 closed",
      ])
  }

  /// An observer that wants bodies gets the first bytes of both.
  @Test func bodies() {
    let seen = Shared<[String]>([])
    var options = Pool.Options()
    options.observer = PoolObserver(bodyBytesMax: 3) { event, _, _, _ in
      switch event {
      case .requestContent(let bytes), .responseContent(let bytes):
        seen.value.append(String(decoding: bytes, as: UTF8.self))
      default: break
      }
    }
    let pool = Pool(on: world.loop, options: options)
    for body in [
      RequestBody.bytes(Array("upward".utf8)), .lent(count: 6) { Array("upward".utf8[...].prefix($0.count)) },
    ] {
      let length = world.start {
        let running = try await pool.start(
          PoolRequest(request("PUT", body: 6), body: body),
          with: pool.endpoint(for: PoolTests.route), in: RequestSlot(of: pool))
        return try await running.exchange.collectBody(bytesMax: 100).count
      }
      world.settle()
      tests.kernel.peer().send(PoolTests.response)
      world.settle()
      #expect(length.value == 5)
    }
    #expect(seen.value == ["upw", "hel", "upw", "hel"])
    pool.shutDown()
    world.settle()
  }

  private static func word(for event: ConnectionEvent) -> String? {
    switch event {
    case .connected: "connected"
    case .requestStarted(let head, let bytes, let isReused):
      head != request().bytes || bytes != head.count ? "wrong" : isReused ? "reused" : "new"
    case .requestSent: "sent"
    case .headReceived(_, let bytes): "head \(bytes.count)"
    case .completed: "completed"
    case .closed: "closed"
    default: nil
    }
  }
}
