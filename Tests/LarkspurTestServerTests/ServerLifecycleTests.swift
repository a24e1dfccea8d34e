import LarkspurIO
import LarkspurTestServer
import TestKit
import Testing

/// Tests the start and stop of a server, the functions that wait, and clients that disconnect.
@Suite(.ownThread) struct ServerLifecycleTests {
  @Test(arguments: Transport.allCases) func stopEndsEverything(transport: Transport) throws {
    let server = try transport.start()
    server.enqueue([.hang], [.wait(.init())], [.expectRequest], [.pause(.seconds(3600))], [.halfClose])
    let clients = try (1...8).map { _ in try transport.client(server) }
    try clients[5].request("GET", "/delay/3600000")
    try clients[6].request("GET", "/drip?interval=3600000")
    try clients[7].request("GET", "/bytes/100000000000")
    _ = try clients[6].read(count: 1)
    _ = try clients[7].read(count: 100)
    server.stop()
    #expect(server.connectionsClosed == server.connectionsAccepted)
    server.stop()
    // Another server may have the port by now, so the test only checks that this one accepts no connection.
    _ = try? RawClient(server)
    #expect(server.connectionsAccepted == clients.count)
  }

  @Test func lettingGoStops() throws {
    var server: TestServer? = try TestServer()
    let client = try RawClient(try #require(server), holdsServer: false)
    #expect(try client.get("/get").status == 200)
    server = nil
    #expect(try client.readToEnd() == [])
  }

  @Test func stopOnAThreadOfTheServer() async throws {
    let server = try TestServer()
    server.route("GET", "/stop") { [weak server] _ in
      server?.stop()
      return .text("stopped")
    }
    let client = try RawClient(server)
    try client.request("GET", "/stop")
    #expect((try? client.readToEnd()) ?? [] == [])
    server.stop()
    #expect(server.connectionsClosed == 1)
  }

  @Test func waiting() async throws {
    let server = try TestServer()
    async let requests = server.waitForRequests(2)
    async let connections: Void = server.waitForConnections(2)
    let client = try RawClient(server)
    _ = try client.get("/get?1")
    let other = try RawClient(server)
    _ = try other.get("/get?2")
    #expect(try await requests.map(\.target) == ["/get?1", "/get?2"])
    try await connections
    client.halfClose()
    other.halfClose()
    try await server.waitForClosedConnections(2)
    // A past event does not suspend the caller.
    try await server.waitForRequests(1)
  }

  @Test func waitingEndsWithTheServer() async throws {
    let server = try TestServer()
    let requests = Task { try await server.waitForRequests(1) }
    server.stop()
    await #expect(throws: TestServer.Stopped()) { try await requests.value }
    await #expect(throws: TestServer.Stopped()) { try await server.waitForConnections(1) }
  }

  @Test func waitingEndsWithItsTask() async throws {
    let server = try TestServer()
    let signal = TestServer.Signal()
    let waiting = Task { try await server.waitForRequests(1) }
    let other = Task { try await signal.wait() }
    waiting.cancel()
    other.cancel()
    await #expect(throws: CancellationError.self) { try await waiting.value }
    await #expect(throws: CancellationError.self) { try await other.value }
    signal.fire()
    try await signal.wait()
  }

  @Test(
    arguments: ["/bytes/100000000000", "/chunked/100000000000", "/gzip/100000000000", "/stream/100000000000"],
    Transport.allCases)
  func clientThatGoesInTheMiddle(target: String, transport: Transport) async throws {
    let server = try transport.start()
    var client: RawClient? = try transport.client(server)
    try client?.request("GET", target)
    _ = try client?.read(count: 100_000)
    client = nil
    try await server.waitForClosedConnections(1)
    #expect(server.failures.isEmpty)
    #expect(try transport.client(server).get("/get").status == 200)
  }

  @Test func clientThatGoesDuringADelay() async throws {
    let server = try TestServer()
    let client = try RawClient(server)
    try client.request("GET", "/delay/3600000")
    client.halfClose()
    try await server.waitForClosedConnections(1)
  }

  @Test(arguments: Transport.allCases) func clientThatResets(transport: Transport) async throws {
    let server = try transport.start()
    for sent in ["", "GET /", "GET /hang HTTP/1.1\r\nHost: x\r\n\r\n", "POST /post HTTP/1.1\r\nContent-Length: 9\r\n"] {
      let client = try transport.client(server)
      try client.send(sent)
      client.reset()
    }
    try await server.waitForClosedConnections(4)
    #expect(server.failures.isEmpty)
  }

  @Test(arguments: Transport.allCases) func garbage(transport: Transport) async throws {
    let server = try transport.start()
    var garbage = TestServer.content(count: 5000)
    for round in 0..<50 {
      garbage = Array(garbage[(round * 7)...] + garbage[..<(round * 7)])
      let client = try RawClient(server)
      try client.send(garbage)
      client.halfClose()
      // The server may refuse the garbage or close the connection; it continues to serve others.
      _ = try client.readToEnd()
    }
    #expect(try transport.client(server).get("/get").status == 200)
  }

  @Test(arguments: Transport.allCases) func manyConnectionsAtOnce(transport: Transport) throws {
    let server = try transport.start()
    let clients = try (0..<100).map { _ in try transport.client(server) }
    for (index, client) in clients.enumerated() { try client.request("GET", "/bytes/\(index)") }
    for (index, client) in clients.enumerated() {
      #expect(try client.response().body == TestServer.content(count: index))
    }
    #expect(server.connectionsAccepted == 100)
  }

  @Test func bodyWaitsForASignal() async throws {
    let server = try TestServer()
    let go = TestServer.Signal()
    server.route("GET", "/slow") { _ in
      .init(
        body: .stream { writer in
          try writer.write("one")
          try writer.wait(go)
          try writer.write("two")
        })
    }
    let client = try RawClient(server)
    try client.request("GET", "/slow")
    try await server.waitForRequests(1)
    #expect(!go.hasFired)
    go.fire()
    #expect(try client.response().text == "onetwo")
  }
}
