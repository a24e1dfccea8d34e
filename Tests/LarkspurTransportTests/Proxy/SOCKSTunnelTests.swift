import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTestServer
import LarkspurTestSupport
import LarkspurTransport
import Synchronization
import Testing

/// Tunnels through SOCKS proxies, over a scripted kernel.
@Suite struct SOCKSTunnelTests {
  static let greeting: [UInt8] = [5, 1, 0]
  static let request: [UInt8] = [5, 1, 0, 3, 9] + Array("a.example".utf8) + [0, 80]
  static let method: [UInt8] = [5, 0]
  static let granted: [UInt8] = [5, 0, 0, 1, 127, 0, 0, 1, 4, 56]
  static let response = Array(ExchangeTests.response.utf8)

  let world: ScriptedWorld
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
  }

  static func failure(_ failure: ProxyError.Failure?, _ error: TransportError?) -> Bool {
    guard case .proxy(let problem)? = error else { return false }
    return problem.failure == failure
  }

  /// Opens a connection through the proxy, and makes a request on it.
  static func fetchThroughProxy(
    in world: ScriptedWorld, _ proxy: String = "socks5h://127.0.0.1:80", deadline: Duration? = nil
  ) -> Running<Outcome> {
    world.start {
      let connection = try await Connection.open(
        host: "a.example", port: 80, via: ProxyRoute(try Proxy(proxy)), on: world.loop,
        deadline: deadline.map { world.loop.now.advanced(by: $0) } ?? .never)
      return try await connection.cancelledWithTask { () async throws(TransportError) in
        try await fetch(LarkspurTestSupport.request(), over: connection)
      }
    }
  }

  @Test func aRequestAndItsResponse() {
    let running = Self.fetchThroughProxy(in: world)
    world.settle()
    #expect(peer.received == Self.greeting)
    peer.send(Self.method)
    world.settle()
    #expect(peer.received == Self.greeting + Self.request)
    peer.send(Self.granted)
    world.settle()
    let head = Array("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n".utf8)
    #expect(peer.received == Self.greeting + Self.request + head)
    peer.send(Self.response)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
    #expect(world.loop.chunkBytesLent == 0)
  }

  /// Every byte arrives by itself, and the kernel accepts one byte at a time.
  @Test func byteByByte() {
    peer.setSendBytesMax(1)
    let running = Self.fetchThroughProxy(in: world)
    world.settle()
    for byte in Self.method + Self.granted + Self.response {
      peer.send([byte])
      world.settle()
    }
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
  }

  /// Bytes that come together with the proxy's answer belong to the server, which may respond at once if it is
  /// overloaded.
  @Test(arguments: [1, 20, response.count]) func bytesBehindTheAnswer(count: Int) {
    let running = Self.fetchThroughProxy(in: world)
    world.settle()
    peer.send(Self.method)
    world.settle()
    peer.send(Self.granted + Self.response[..<count])
    world.settle()
    peer.send(Array(Self.response[count...]))
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
    #expect(world.loop.chunkBytesLent == 0)
  }

  /// The proxy closes or resets after every byte of its answers.
  @Test(arguments: 0..<method.count + granted.count, [true, false]) func theEnd(count: Int, isReset: Bool) {
    let running = Self.fetchThroughProxy(in: world)
    world.settle()
    peer.send(Array((Self.method + Self.granted).prefix(count)))
    world.settle()
    if isReset { peer.reset() } else { peer.close() }
    world.settle()
    let expected: ProxyError.Failure =
      isReset ? .transport(.connectionLost(.tunnelling, .connectionReset)) : .socks(.truncated)
    #expect(Self.failure(expected, running.transportError), "\(String(describing: running.result))")
    #expect(world.leftovers == [])
  }

  @Test(arguments: 0..<method.count + granted.count) func theDeadline(count: Int) {
    let running = Self.fetchThroughProxy(in: world, deadline: .seconds(3))
    world.settle()
    peer.send(Array((Self.method + Self.granted).prefix(count)))
    world.settle()
    world.advance(by: .milliseconds(2999))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.tunnelling))
    #expect(world.leftovers == [])
  }

  /// The proxy's answers, and the resulting errors. No request is sent after any of them.
  static let refusals: [(answer: [UInt8], error: SOCKSError)] = [
    ([5, 255], .noMethodAccepted), ([5, 2], .methodInvalid(2)), (Array("HTTP/1.1 400 Bad".utf8), .versionInvalid(72)),
    ([5, 0, 5, 2], .refused(.notAllowed)), ([5, 0, 5, 5, 0, 1, 0, 0, 0, 0, 0, 0], .refused(.connectionRefused)),
    ([5, 0, 5, 0, 0, 9], .addressTypeInvalid(9)), ([5, 0, 4, 0], .versionInvalid(4)),
  ]

  @Test(arguments: refusals) func refused(row: (answer: [UInt8], error: SOCKSError)) {
    let running = Self.fetchThroughProxy(in: world)
    world.settle()
    peer.send(row.answer)
    world.settle()
    #expect(Self.failure(.socks(row.error), running.transportError), "\(String(describing: running.result))")
    #expect(!peer.receivedText.contains("GET"))
    #expect(world.leftovers == [])
  }

  @Test func anEmptyNameInTheAnswer() {
    let running = Self.fetchThroughProxy(in: world)
    world.settle()
    peer.send(Self.method + [5, 0, 0, 3, 0, 0, 0] + Self.response)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
  }

  @Test func theProxyCannotBeReached() {
    kernel.willConnect(.later(.connectionRefused))
    let running = Self.fetchThroughProxy(in: world)
    world.settle()
    let attempt = TransportError.Attempt(address: .loopback(port: 80), error: .connectionRefused)
    #expect(Self.failure(.transport(.connectFailed([attempt])), running.transportError))
    #expect(running.transportError?.description.contains("socks5h://127.0.0.1:80") == true)
    #expect(world.leftovers == [])
  }

  /// Cancels at kernel call `number`.
  ///
  /// - Returns: Number of kernel calls that were made.
  static func cancelled(at number: Int) throws -> Int {
    let world = try ScriptedWorld()
    let peer = world.kernel.peer()
    peer.setSendBytesMax(10)
    peer.willFailToSend(.interrupted, .wouldBlock)
    peer.willFailToReceive(.interrupted, .wouldBlock)
    let running = fetchThroughProxy(in: world, "socks5h://me:pw@127.0.0.1:80")
    world.kernel.beforeCalls { if $0 == number { running.cancel() } }
    for piece in [[5, 2], [1], [0, 5, 0], Array(granted[2...]), response] {
      #expect(world.settle(), "call \(number)")
      peer.send(piece)
    }
    #expect(world.settle(), "call \(number)")
    world.kernel.beforeCalls(nil)
    let isExpected = running.value?.body == "hello" || running.transportError == .cancelled
    #expect(isExpected, "call \(number): \(String(describing: running.result))")
    #expect(world.leftovers == [], "call \(number)")
    return world.kernel.calls
  }

  @Test func cancellationAtEveryStep() throws {
    var number = 1
    while number <= (try Self.cancelled(at: number)), number < 10_000 { number += 1 }
    #expect(number > 20)
  }

  // MARK: - Lookups

  /// A proxy that takes addresses gets one after another until one works.
  @Test func theNextAddress() async throws {
    // "localhost" resolves to ::1 and then 127.0.0.1.
    let proxy = try TestServer()
    proxy.enqueue(
      [
        .expectBytes(Self.greeting), .send(Self.method), .expectBytes(count: 4 + 16 + 2), .send([5, 4, 0, 1]), .close,
      ],
      [
        .expectBytes(Self.greeting), .send(Self.method), .expectBytes(count: 4 + 4 + 2), .send(Self.granted),
        .serveRoutes,
      ])
    let loop = try ClientLoop()
    defer { loop.stop() }
    let text = "socks5://\(proxy.authority)"
    let outcome = try await loop.run { () async throws in
      let route = ProxyRoute(try Proxy(text))
      let connection = try await Connection.open(host: "localhost", port: 80, via: route, on: loop)
      defer { connection.close() }
      return try await fetch(LarkspurTestSupport.request("GET", "/status/204"), over: connection)
    }
    #expect(outcome.status == 204)
    #expect(proxy.connectionsAccepted == 2)
  }

  /// An address is sent without a lookup and without its zone, which means nothing on the proxy's machine.
  @Test func anAddressIsNotLookedUp() {
    let linkLocal: [UInt8] = [5, 1, 0, 4, 0xfe, 0x80] + [UInt8](repeating: 0, count: 13) + [1, 0, 80]
    for (host, proxy, bytes) in [
      ("192.0.2.1", "socks5h://127.0.0.1:80", [5, 1, 0, 1, 192, 0, 2, 1, 0, 80] as [UInt8]),
      ("192.0.2.1", "socks4a://127.0.0.1:80", [4, 1, 0, 80, 192, 0, 2, 1, 0]),
      ("fe80::1", "socks5h://127.0.0.1:80", linkLocal), ("fe80::1%lo", "socks5h://127.0.0.1:80", linkLocal),
      ("fe80::1%lo", "socks5://127.0.0.1:80", linkLocal),
    ] {
      guard let world = try? ScriptedWorld() else { return }
      world.kernel.peer().send(Self.method)
      let running = world.run {
        let connection = try await Connection.open(
          host: host, port: 80, via: ProxyRoute(try Proxy(proxy)), on: world.loop)
        connection.close()
      }
      #expect(world.kernel.peer().received.suffix(bytes.count) == bytes[...])
      running.cancel()
      world.settle()
      #expect(world.leftovers == [])
    }
  }

  /// Every kind of proxy is reached by the interface that its address names.
  @Test(arguments: ["http", "socks4a", "socks5h"]) func aProxyInAZone(kind: String) {
    world.kernel.addInterface("eth0", index: 4)
    let resolver = Resolver(source: ScriptedNames(), kernel: world.kernel)
    let seen = Mutex<[[SocketAddress]]>([])
    let running = world.run {
      let connection = try await Connection.open(
        host: "a.example", port: 80, via: ProxyRoute(try Proxy("\(kind)://[fe80::1%25eth0]:3128")), resolver: resolver,
        on: world.loop,
        observer: { event, _ in if case .resolved(let addresses) = event { seen.withLock { $0.append(addresses) } } })
      connection.close()
    }
    #expect(seen.withLock { $0 } == [[.ipv6(high: 0xfe80 << 48, low: 1, scope: 4, port: 3128)]])
    running.cancel()
    world.settle()
    #expect(world.leftovers == [])
  }
}
