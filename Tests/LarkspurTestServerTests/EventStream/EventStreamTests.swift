import LarkspurHTTP
import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct EventStreamTests {
  /// Parses a body as clients do.
  private func events(_ body: [UInt8]) throws -> [String] {
    var parser = EventStreamParser()
    var events: [String] = []
    var position = 0
    while let event = try parser.next(in: body.span, from: &position) {
      events.append("\(event.lastEventID):\(event.data)")
    }
    return events
  }

  @Test(arguments: [nil, 1, 7] as [Int?]) func continuesBehindTheLastID(pieceBytes: Int?) throws {
    let server = try TestServer()
    var stream = TestServer.EventStream(["one", .init("two", id: "b"), "three"], eventsPerResponse: 2)
    stream.pieceBytes = pieceBytes
    server.eventStream("/feed", stream)
    let client = try RawClient(server)
    #expect(try events(try client.get("/feed").body) == ["1:one", "b:two"])
    #expect(try events(try client.get("/feed", "Last-Event-ID: 1\r\n").body) == ["b:two", "3:three"])
    #expect(try events(try client.get("/feed", "Last-Event-ID: b\r\n").body) == ["3:three"])
    #expect(try events(try client.get("/feed", "Last-Event-ID: unknown\r\n").body) == ["1:one", "b:two"])
    #expect(try client.get("/feed", "Last-Event-ID: 3\r\n").status == 204)
    #expect(server.connectionsAccepted == 1)
    #expect(server.failures.isEmpty)
  }

  @Test func theResponse() throws {
    let server = try TestServer()
    server.eventStream("/feed", .init(["one"], retry: 20, pieceBytes: 10))
    let client = try RawClient(server)
    let response = try client.get("/feed")
    #expect(
      response.head
        == "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        + "Transfer-Encoding: chunked\r\n\r\n")
    #expect(response.rawBody == "a\r\na\r\n8\r\n0\r\n")
    #expect(response.text == "retry: 20\n\nid: 1\ndata: one\n\n")
    try client.request("HEAD", "/feed")
    #expect(try client.response(hasBody: false).field("Content-Type") == "text/event-stream")
    let last = try client.get("/feed", "Connection: close\r\n")
    #expect(last.field("Connection") == "close")
    #expect(try client.readToEnd() == [])
  }

  @Test func oldClientsReadToTheEnd() throws {
    let server = try TestServer()
    server.eventStream("/feed", .init(["one"]))
    let client = try RawClient(server)
    try client.request("GET", "/feed", version: "HTTP/1.0")
    #expect(
      try client.textToEnd()
        == "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n"
        + "id: 1\ndata: one\n\n")
    #expect(server.failures.isEmpty)
  }

  @Test func endsOutOfOrder() throws {
    let server = try TestServer()
    server.eventStream("/close", .init(["one"], ending: .close))
    server.eventStream("/reset", .init(["one"], ending: .reset))
    let client = try RawClient(server)
    try client.request("GET", "/close")
    #expect(try client.textToEnd().hasSuffix("\r\n11\r\nid: 1\ndata: one\n\n\r\n"))
    let other = try RawClient(server)
    try other.request("GET", "/reset")
    #expect(throws: (any Error).self) { try other.readToEnd() }
    #expect(server.failures.isEmpty)
  }
}
