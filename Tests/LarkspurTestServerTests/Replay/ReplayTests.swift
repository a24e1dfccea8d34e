import LarkspurTestServer
import Testing

/// Servers that answer from a recording.
@Suite(.timeLimit(.minutes(1))) struct ReplayTests {
  typealias Entry = TestServer.Recording.Entry

  private func client(_ entries: [Entry], _ change: (inout TestServer.Replay) -> Void = { _ in }) throws -> (
    RawClient, TestServer
  ) {
    var replay = TestServer.Replay()
    change(&replay)
    let server = try TestServer(replaying: TestServer.Recording(entries), replay)
    return (try RawClient(server), server)
  }

  private let items = [
    Entry(
      "GET", "http://api.example:8080/items?page=1&key=(redacted)", fields: ["ETag": "\"1\""], body: Array("one".utf8)),
    Entry("GET", "https://api.example/items?page=2", body: Array("two".utf8)),
    Entry("GET", "https://api.example/items?page=2", body: Array("two again".utf8)),
    Entry("HEAD", "https://api.example/long", fields: ["Content-Length": "1000"]),
    Entry("GET", "https://api.example/from", status: 302, fields: ["Location": "https://API.example/items?page=2"]),
  ]

  @Test func anyOrder() throws {
    let (client, server) = try client(items)
    #expect(try client.get("/items?page=2").text == "two")
    #expect(try client.get("/items?page=1&key=mine").text == "one")
    #expect(try client.get("/items?page=2").text == "two again")
    #expect(try client.get("/items?page=2").text == "two again")
    #expect(try client.get("/from").field("Location") == "/items?page=2")
    try client.request("HEAD", "/long")
    #expect(try client.response(hasBody: false).field("Content-Length") == "1000")
    #expect(server.failures.isEmpty)
  }

  @Test func recordedOrder() throws {
    let (client, server) = try client(Array(items.prefix(2))) { $0.order = .recordedOrder }
    #expect(try client.get("/items?page=2").status == 404)
    #expect(try client.get("/items?page=1&key=x").text == "one")
    #expect(try client.get("/items?page=2").text == "two")
    #expect(try client.get("/items?page=2").status == 404)
    #expect(
      server.failures == [
        "connection 1, GET /items?page=2: no entry answers GET /items?page=2; the next one is entry 1, "
          + "GET /items?page=1&key=(redacted): the query is page=1&key=(redacted)",
        "connection 1, GET /items?page=2: no entry answers GET /items?page=2: all 2 entries have answered",
      ])
  }

  /// The complaint names the nearest entry, and what differs.
  @Test func nearestEntry() throws {
    let entry = Entry(
      "POST", "http://a/items", requestFields: ["Accept": "text/csv"], requestBody: Array("{}".utf8), status: 201)
    let (client, server) = try client([Entry("POST", "http://a/other"), entry]) { $0.matchedFields = ["Accept"] }
    try client.send("POST /items HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nContent-Length: 3\r\n\r\n[1]")
    #expect(
      try client.response().text
        == "no entry answers POST /items; the nearest one is entry 2, POST /items: Accept is text/csv; "
        + "the body of 2 bytes is another one\n")
    try client.send("POST /items HTTP/1.1\r\nHost: a\r\nAccept: text/csv\r\nContent-Length: 2\r\n\r\n{}")
    #expect(try client.response().status == 201)
    #expect(server.failures.count == 1)
  }

  /// What is redacted in a recorded body agrees with any text.
  @Test(arguments: [
    ("user=a&password=x&b=1", 200), ("user=a&password=&b=1", 200), ("user=c&password=x&b=1", 404), ("", 404),
  ])
  func redactedBody(_ body: String, _ status: Int) throws {
    let recorded = Entry("POST", "http://a/", requestBody: Array("user=a&password=(redacted)&b=1".utf8))
    let (client, server) = try client([recorded])
    try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    #expect(try client.response().status == status)
    #expect(server.failures.isEmpty == (status == 200))
  }

  @Test func unavailable() throws {
    let (client, server) = try client(items) { $0.faults = [.unavailable(times: 2, retryAfter: 7, path: "/items")] }
    #expect(try client.get("/items?page=2").field("Retry-After") == "7")
    #expect(try client.get("/items?page=2").status == 503)
    #expect(try client.get("/from").status == 302)
    #expect(try client.get("/items?page=2").text == "two")
    #expect(server.failures.isEmpty)
  }

  @Test func entityTag() throws {
    let (client, _) = try client(items) { $0.faults = [.entityTag("\"2\"", times: 1)] }
    #expect(try client.get("/items?page=1&key=").field("ETag") == "\"2\"")
    #expect(try client.get("/items?page=1&key=").field("ETag") == "\"1\"")
  }

  @Test func cutBody() throws {
    let (client, server) = try client(items) { $0.faults = [.cut(afterBytes: 2)] }
    try client.request("GET", "/items?page=2")
    let text = try client.textToEnd()
    #expect(text.contains("Content-Length: 3\r\n"))
    #expect(text.hasSuffix("\r\n\r\ntw"))
    #expect(server.failures.isEmpty)
  }

  @Test func resetConnection() throws {
    let (client, server) = try client(items) { $0.faults = [.reset(afterBytes: 0, times: 1)] }
    try client.request("GET", "/items?page=2")
    #expect(throws: (any Error).self) { while try !client.receive(atMost: 1000).isEmpty {} }
    #expect(try RawClient(server).get("/items?page=2").text == "two again")
    #expect(server.failures.isEmpty)
  }

  @Test func stalledBody() async throws {
    let (client, server) = try client(items) { $0.faults = [.stall(afterBytes: 1, times: 1)] }
    try client.request("GET", "/items?page=2")
    while try client.receive(atMost: 1000).last != UInt8(ascii: "t") {}
    client.halfClose()
    try await server.waitForClosedConnections(1)
    #expect(server.failures.isEmpty)
  }

  /// Responses come when the test advances the clock.
  @Test func virtualClock() async throws {
    let clock = TestServer.VirtualClock()
    let entry = Entry("GET", "http://a/", body: Array("ab".utf8), wait: .seconds(60), receive: .seconds(30))
    let (client, server) = try client([entry]) { $0.timing = .clock(clock) }
    try client.request("GET", "/")
    try await clock.waitForSleeps(1)
    clock.advance(by: .seconds(60))
    try await clock.waitForSleeps(2)
    while try client.receive(atMost: 1).last != UInt8(ascii: "a") {}
    clock.advance(by: .seconds(30))
    #expect(try client.receive(atMost: 10) == Array("b".utf8))
    #expect(clock.now == .seconds(90))
    #expect(server.failures.isEmpty)
  }
}
