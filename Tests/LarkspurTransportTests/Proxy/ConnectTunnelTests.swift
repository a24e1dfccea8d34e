import LarkspurBytes
import LarkspurHTTP
import LarkspurIO
import LarkspurTLS
import LarkspurTestSupport
import LarkspurTransport
import TestKit
import Testing

/// HTTP proxies that refuse, lie or break, over a scripted kernel.
@Suite struct ConnectTunnelTests {
  static let connect = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"

  let world: ScriptedWorld
  let security: Security
  var kernel: ScriptedKernel { world.kernel }
  var peer: ScriptedPeer { world.kernel.peer() }

  init() throws {
    world = try ScriptedWorld()
    var configuration = TLSConfiguration()
    configuration.roots = .only([])
    security = Security(try TLSContext(configuration))
  }

  func open(
    authorize: (@Sendable (ProxyChallenge) async -> String?)? = nil, deadline: Duration? = nil
  ) -> Running<Void> {
    world.start { [world, security] in
      var route = ProxyRoute(try Proxy("http://127.0.0.1:80"))
      if let authorize { route.makeAuthorizer = { AskingAuthorizer(authorize) } }
      let connection = try await Connection.open(
        host: "a.example", port: 443, security: security, via: route, on: world.loop,
        deadline: deadline.map { world.loop.now.advanced(by: $0) } ?? .never)
      connection.close()
    }
  }

  /// Opens a connection that may do without its proxy, within ten seconds.
  private func openWithFailover(
    authorize: (@Sendable (ProxyChallenge) async -> String?)? = nil,
    timeouts change: @escaping @Sendable (inout Timeouts) -> Void = { _ in }
  ) -> Running<Void> {
    world.start { [world] in
      var route = ProxyRoute(try Proxy("http://127.0.0.1:80"))
      route.alwaysTunnels = true
      route.allowsFailover = true
      if let authorize { route.makeAuthorizer = { AskingAuthorizer(authorize) } }
      let connection = try await Connection.open(
        host: "192.0.2.1", port: 80, via: route, on: world.loop, deadline: world.loop.now.advanced(by: .seconds(10)),
        timeouts: TimeoutTests.timeouts(change))
      connection.close()
    }
  }

  /// A proxy that does not answer leaves half of the time to the host itself.
  @Test(arguments: [true, false]) func aSilentProxyAndFailover(isReached: Bool) {
    if !isReached { kernel.willConnect(.never) }
    let running = openWithFailover()
    world.settle()
    world.advance(by: .milliseconds(4999))
    #expect(kernel.socketCount == 1 && !running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(kernel.socketCount == 2 && running.error == nil && running.isOver)
    #expect(world.leftovers == [])
  }

  /// A limit of connecting holds for the proxy, and then for the host.
  @Test func aLimitAndFailover() {
    kernel.willConnect(.never)
    kernel.willConnect(.never)
    let running = openWithFailover(timeouts: { $0.connect = .seconds(1) })
    world.settle()
    world.advance(by: .seconds(1))
    #expect(kernel.socketCount == 2 && !running.isOver)
    world.advance(by: .seconds(1))
    #expect(running.transportError == .timedOut(.connecting, limit: .connect))
    #expect(world.leftovers == [])
  }

  /// A proxy that asks for authorization has answered: a program that takes its time does not lead around the proxy.
  @Test func aSlowAnswerAndFailover() {
    let answers = Event()
    let running = openWithFailover(authorize: { _ in
      try? await answers.wait()
      return nil
    })
    world.settle()
    peer.send("HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=a\r\nContent-Length: 0\r\n\r\n")
    world.settle()
    world.advance(by: .milliseconds(9999))
    #expect(kernel.socketCount == 1 && !running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.tunnelling) && kernel.socketCount == 1)
    answers.fire()
    world.settle()
    #expect(world.leftovers == [])
  }

  static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

  /// The proxy's responses, and the resulting errors.
  static let answers: [(name: String, text: String, failure: ProxyError.Failure)] = [
    (
      "a body like a response", "HTTP/1.1 403 Forbidden\r\nContent-Length: \(ok.utf8.count)\r\n\r\n" + ok,
      .tunnel(.refused(status: 403, reason: "Forbidden"))
    ),
    (
      "a response behind", "HTTP/1.1 502 X\r\nContent-Length: 0\r\n\r\n" + ok,
      .tunnel(.refused(status: 502, reason: "X"))
    ),
    ("a body without end", "HTTP/1.1 404 \r\n\r\n" + ok, .tunnel(.refused(status: 404, reason: ""))),
    (
      "a redirect", "HTTP/1.1 302 Found\r\nLocation: http://b.example/\r\n\r\n",
      .tunnel(.refused(status: 302, reason: "Found"))
    ),
    ("a 407 and nobody to ask", "HTTP/1.1 407 X\r\nContent-Length: 0\r\n\r\n", .tunnel(.authenticationRequired)),
    ("another protocol", "SSH-2.0-OpenSSH\r\n", .transport(.badResponse(.notHTTP))),
    ("an upgrade", "HTTP/1.1 101 X\r\nUpgrade: tls\r\n\r\n", .transport(.badResponse(.upgradeUnsolicited))),
    (
      "endless interim responses", String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 33),
      .transport(.badResponse(.tooManyInterimResponses(limit: 32)))
    ),
    (
      "a huge head",
      "HTTP/1.1 200 OK\r\n" + String(repeating: "A: \(String(repeating: "b", count: 1000))\r\n", count: 400),
      .transport(.badResponse(.headTooLarge(limit: 300 * 1024)))
    ),
    (
      "a huge line", "HTTP/1.1 200 " + String(repeating: "b", count: 70_000),
      .transport(.badResponse(.fieldLineTooLong(limit: 64 * 1024)))
    ),
  ]

  @Test(arguments: answers.indices) func refusal(index: Int) {
    let row = Self.answers[index]
    let running = open()
    world.settle()
    #expect(peer.receivedText == Self.connect)
    peer.send(row.text)
    world.settle()
    #expect(
      SOCKSTunnelTests.failure(row.failure, running.transportError),
      "\(row.name): \(String(describing: running.result))")
    // Nothing was sent after the CONNECT request, because there is no tunnel.
    #expect(peer.receivedText == Self.connect)
    #expect(world.leftovers == [])
    #expect(world.loop.chunkBytesLent == 0)
  }

  /// Bytes after a 2xx response belong to TLS, whatever its fields say about a body: they are never read as a response.
  @Test(arguments: ["", "Content-Length: 43\r\n", "Transfer-Encoding: chunked\r\n"]) func garbageInTheTunnel(
    fields: String
  ) {
    let running = open()
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\n\(fields)\r\n" + Self.ok)
    world.settle()
    let problem: TLSError.Problem? = if case .tls(let error)? = running.transportError { error.problem } else { nil }
    #expect(problem == .notTLS, "\(String(describing: running.result))")
    #expect(!peer.receivedText.contains("GET"))
    #expect(world.leftovers == [])
    #expect(world.loop.chunkBytesLent == 0)
  }

  static let refusedHead = "HTTP/1.1 403 Forbidden\r\nA: b\r\n\r\n"

  @Test(arguments: 0..<refusedHead.utf8.count, [true, false]) func theEnd(count: Int, isReset: Bool) {
    let running = open()
    world.settle()
    peer.send(Array(Self.refusedHead.utf8.prefix(count)))
    world.settle()
    if isReset { peer.reset() } else { peer.close() }
    world.settle()
    let point: ResponseError.TruncationPoint =
      count == 0 ? .beforeHead : count < "HTTP/1.1 403 Forbidden\r\n".utf8.count ? .statusLine : .head
    let expected: TransportError =
      isReset ? .connectionLost(.tunnelling, .connectionReset) : .badResponse(.truncated(point))
    #expect(
      SOCKSTunnelTests.failure(.transport(expected), running.transportError), "\(String(describing: running.result))")
    // The connection had not been idle, so there is no second attempt.
    #expect(kernel.counts.sockets == 1)
    #expect(world.leftovers == [])
  }

  @Test func theDeadline() {
    let running = open(deadline: .seconds(3))
    world.settle()
    peer.send("HTTP/1.1 200")
    world.settle()
    world.advance(by: .milliseconds(2999))
    #expect(!running.isOver)
    world.advance(by: .milliseconds(1))
    #expect(running.transportError == .timedOut(.tunnelling))
    #expect(world.leftovers == [])
  }

  /// The deadline ends a TLS handshake inside an open tunnel.
  @Test func theDeadlineOfTheHandshake() {
    let running = open(deadline: .seconds(3))
    world.settle()
    peer.send("HTTP/1.1 200 OK\r\n\r\n")
    world.settle()
    world.advance(by: .seconds(3))
    #expect(running.transportError == .tls(TLSError(.handshakeTimedOut)))
    #expect(world.leftovers == [])
  }

  static func cancelled(at number: Int) throws -> Int {
    let tests = try ConnectTunnelTests()
    let (world, peer) = (tests.world, tests.peer)
    peer.setSendBytesMax(40)
    peer.willFailToSend(.interrupted, .wouldBlock)
    let running = tests.open { _ in "Basic eA==" }
    world.kernel.beforeCalls { if $0 == number { running.cancel() } }
    for piece in ["HTTP/1.1 407 X\r\nConnection: close\r\nConte", "nt-Length: 5\r\n\r\nhello"] {
      #expect(world.settle(), "call \(number)")
      peer.send(piece)
    }
    #expect(world.settle(), "call \(number)")
    // The authorizer answers on another thread, so that the second connection may or may not exist from here on.
    running.cancel()
    // The authorizer's answer may still be on its way from that thread.
    for _ in 0..<10_000 where !running.isOver { #expect(world.settle(), "call \(number)") }
    world.kernel.beforeCalls(nil)
    #expect(running.transportError == .cancelled, "call \(number): \(String(describing: running.result))")
    #expect(world.leftovers == [], "call \(number)")
    return world.kernel.calls
  }

  @Test func cancellationAtEveryStep() throws {
    var number = 1
    while number <= (try Self.cancelled(at: number)), number < 1000 { number += 1 }
    #expect(number > 10)
  }

  // MARK: - Requests for proxies only

  @Test func aConnectionToAProxyForwards() {
    let running = world.start { [world] in
      let connection = try await Connection.open(
        host: "a.example", port: 80, via: ProxyRoute(try Proxy("127.0.0.1:80")), on: world.loop)
      #expect(connection.recipient == .proxy)
      #expect(await error(of: request(), over: connection) == .localMisuse(.recipientWrong))
      var writer = try RequestWriter(method: "GET", target: "http://a.example/x", host: "a.example", to: .proxy)
      try writer.field("Proxy-Authorization", "Basic eA==")
      return try await fetch(writer.finish(), over: connection)
    }
    world.settle()
    #expect(
      peer.receivedText
        == "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: Basic eA==\r\n\r\n")
    peer.send(Self.ok)
    world.settle()
    #expect(running.value == Outcome(status: 200, body: "hello"))
    #expect(world.leftovers == [])
  }

  /// A request for a proxy is not sent on a connection to a server, directly or through a tunnel.
  @Test(arguments: [nil, "socks5h://127.0.0.1:80"]) func noneForAnOrigin(proxy: String?) {
    if proxy != nil { peer.send([5, 0], SOCKSTunnelTests.granted) }
    let running = world.run { [world] in
      let route = try proxy.map { ProxyRoute(try Proxy($0)) }
      let connection = try await Connection.open(host: "127.0.0.1", port: 80, via: route, on: world.loop)
      let writer = try RequestWriter(method: "GET", target: "http://a.example/x", host: "a.example", to: .proxy)
      return await error(of: writer.finish(), over: connection)
    }
    #expect(running.value == .localMisuse(.recipientWrong))
    #expect(!peer.receivedText.contains("GET"))
    #expect(world.leftovers == [])
  }

  @Test func anHTTPSProxyWithoutSecurity() {
    let running = world.run { [world, security] in
      let route = ProxyRoute(try Proxy("https://127.0.0.1:80"))
      _ = try await Connection.open(host: "a.example", port: 443, security: security, via: route, on: world.loop)
    }
    #expect(running.transportError == .localMisuse(.securityMissing))
    #expect(kernel.counts.sockets == 0)
  }
}

private func error(of head: RequestHead, over connection: Connection) async -> TransportError? {
  do throws(TransportError) {
    _ = try await connection.send(head)
    return nil
  } catch {
    return error
  }
}
