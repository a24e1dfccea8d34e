import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Testing

/// The metrics of exchanges.
@Suite struct MetricsTests {
  let tests: PoolTests
  var world: ScriptedWorld { tests.world }
  var kernel: ScriptedKernel { tests.kernel }

  init() throws {
    tests = try PoolTests()
  }

  /// Makes requests in one slot, one after another, and returns the metrics of all attempts.
  func fetch(_ heads: [RequestHead], body: [UInt8] = [], through pool: Pool) -> Running<[ExchangeMetrics]> {
    world.start {
      let slot = RequestSlot(of: pool, collectsMetrics: true)
      for head in heads {
        var wanted = PoolRequest(head)
        wanted.body = .bytes(body)
        do throws(TransportError) {
          try await pool.exchange(wanted, with: pool.endpoint(for: PoolTests.route), in: slot) {
            exchange throws(TransportError) in
            try await exchange.discardBody()
          }
        } catch {
          continue
        }
      }
      return slot.metrics
    }
  }

  func milliseconds(_ one: Deadline?, since other: Deadline?) -> Int? {
    guard let one, let other, one >= other else { return nil }
    return Int((one.nanoseconds - other.nanoseconds) / 1_000_000)
  }

  @Test func everyPartOfAnExchange() throws {
    kernel.willConnect(.never)
    let pool = tests.pool()
    let head = request("POST", body: 4)
    let running = fetch([head], body: Array("body".utf8), through: pool)
    world.settle()
    world.advance(by: .milliseconds(20))
    kernel.peer().completeConnect()
    world.settle()
    world.advance(by: .milliseconds(300))
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n"
    kernel.peer().send(interim)
    world.settle()
    world.advance(by: .milliseconds(50))
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    kernel.peer().send(answer + "5\r\nhello\r\n")
    world.settle()
    world.advance(by: .milliseconds(7))
    kernel.peer().send("0\r\n\r\n")
    world.settle()
    let metrics = try #require(running.value?.first)
    #expect(milliseconds(metrics.started, since: metrics.requested) == 20)
    #expect(milliseconds(metrics.sent, since: metrics.started) == 0)
    #expect(milliseconds(metrics.firstByte, since: metrics.sent) == 300)
    #expect(milliseconds(metrics.ended, since: metrics.firstByte) == 57)
    #expect(metrics.requestHeadBytes == head.bytes.count)
    #expect(metrics.requestBodyBytes == 4)
    #expect(metrics.responseHeadBytes == interim.utf8.count + answer.utf8.count)
    #expect(metrics.responseBodyBytes == 15)
    #expect(!metrics.isReused)
    let connection = try #require(metrics.connection)
    #expect(milliseconds(connection.connect?.end, since: connection.connect?.start) == 20)
    #expect(connection.remoteAddress == .ipv4(0xc000_0201, port: 80))
    #expect(connection.attempts.map(\.error) == [nil])
    #expect(connection.handshake == nil && connection.tunnel == nil && connection.proxy == nil)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func aKeptConnection() throws {
    let pool = tests.pool()
    let running = fetch([request(), request()], through: pool)
    for _ in 0..<2 {
      world.settle()
      kernel.peer().send(PoolTests.response)
      world.settle()
    }
    let metrics = try #require(running.value)
    #expect(metrics.map(\.isReused) == [false, true])
    #expect(metrics[1].connection?.connect?.start == metrics[0].connection?.connect?.start)
    #expect(metrics[1].responseBodyBytes == 5)
    #expect(tests.leftovers(of: pool) == [])
  }

  /// A request that is sent twice has two sets of metrics.
  @Test func everyTry() throws {
    let pool = tests.pool()
    let running = fetch([request(), request()], through: pool)
    world.settle()
    kernel.peer().send(PoolTests.response)
    world.tick(3)
    kernel.peer().close()
    world.settle()
    kernel.peer(1).send(PoolTests.response)
    world.settle()
    let metrics = try #require(running.value)
    #expect(metrics.map { $0.ended != nil } == [true, false, true])
    #expect(metrics.map(\.isReused) == [false, true, false])
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func aConnectionThatCannotBeOpened() throws {
    kernel.willConnect(.later(.connectionRefused))
    let pool = tests.pool()
    let running = fetch([request()], through: pool)
    world.settle()
    let metrics = try #require(running.value?.first)
    #expect(metrics.started == nil)
    #expect(metrics.connection?.attempts.map(\.error) == [.connectionRefused])
    #expect(metrics.connection?.connect?.end == nil)
    #expect(tests.leftovers(of: pool) == [])
  }

  @Test func pipelinedRequests() throws {
    let tests = try PipelineTests()
    tests.prove()
    let metrics = (0..<2).map { _ in
      MetricsTests(tests: tests.tests).fetch([request()], through: tests.pool)
    }
    tests.world.settle()
    tests.kernel.peer().send(PoolTests.response + PoolTests.response)
    tests.world.settle()
    for running in metrics {
      let one = try #require(running.value?.first)
      #expect(one.isReused && one.firstByte != nil && one.ended != nil)
      #expect(one.requestHeadBytes == request().bytes.count && one.responseBodyBytes == 5)
    }
    #expect(tests.tests.leftovers(of: tests.pool) == [])
  }

  /// The head of a second response may arrive together with the first response.
  @Test func firstByteOfAnAnswerBehindAnother() throws {
    let tests = try PipelineTests()
    tests.prove()
    let metrics = (0..<2).map { _ in
      MetricsTests(tests: tests.tests).fetch([request()], through: tests.pool)
    }
    tests.world.settle()
    tests.kernel.peer().send(PoolTests.response + "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
    tests.world.settle()
    tests.world.advance(by: .milliseconds(50))
    tests.kernel.peer().send("llo")
    tests.world.settle()
    let second = try #require(metrics[1].value?.first)
    #expect(milliseconds(second.ended, since: second.firstByte) == 50)
    #expect(tests.tests.leftovers(of: tests.pool) == [])
  }

  @Test func secured() async throws {
    let ca = try TestCA()
    let server = try SecureExchangeTests.server(ca)
    let client = try SecureClient(trusting: ca)
    let (loop, security, port) = (client.loop, client.security, UInt16(server.port))
    let metrics = try await loop.run { () async throws(TransportError) in
      let pool = Pool(on: loop)
      defer { pool.shutDown() }
      let slot = RequestSlot(of: pool, collectsMetrics: true)
      let endpoint = pool.endpoint(for: Route(host: "localhost", port: port, security: security))
      try await pool.exchange(PoolRequest(request("GET", "/get")), with: endpoint, in: slot) {
        exchange throws(TransportError) in
        try await exchange.discardBody()
      }
      return slot.metrics
    }
    let connection = try #require(metrics.first?.connection)
    #expect(connection.tlsVersion == .tls13)
    #expect(connection.cipher?.hasPrefix("TLS_") == true)
    let (lookUp, connect) = (try #require(connection.lookUp), try #require(connection.connect))
    let handshake = try #require(connection.handshake)
    let moments = [lookUp.start, lookUp.end, connect.start, connect.end, handshake.start, handshake.end].compactMap(
      \.self)
    #expect(moments.count == 6 && moments == moments.sorted())
    #expect(connection.localAddress?.port ?? 0 > 0)
    #expect(connection.remoteAddress?.port == port)
  }
}

extension MetricsTests {
  init(tests: PoolTests) { self.tests = tests }
}
