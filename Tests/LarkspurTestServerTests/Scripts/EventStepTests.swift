import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct EventStepTests {
  @Test(arguments: Transport.allCases) func eventsBetweenSignals(transport: Transport) async throws {
    let server = try transport.start()
    let proceed = TestServer.Signal()
    server.enqueue([
      .expectRequest, .events(["one"]), .wait(proceed), .events(["two"], lineEnd: "\r\n"), .endEvents, .serveRoutes,
    ])
    let client = try transport.client(server)
    try client.request("GET", "/")
    let head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
      + "Transfer-Encoding: chunked\r\n\r\nb\r\ndata: one\n\n\r\n"
    #expect(try client.read(count: head.utf8.count) == Array(head.utf8))
    proceed.fire()
    let rest = "d\r\ndata: two\r\n\r\n\r\n0\r\n\r\n"
    #expect(try client.read(count: rest.utf8.count) == Array(rest.utf8))
    #expect(try client.get("/get").status == 200)
    #expect(server.failures.isEmpty)
  }

  @Test func ownFieldsAndFraming() throws {
    let server = try TestServer()
    server.enqueue([
      .expectRequest, .startEvents(["content-type": "text/plain", "X": "y"], framing: .untilClose),
      .events(["a", .raw("data: b")], inPiecesOf: 1), .endEvents, .wait(.init()),
    ])
    let client = try RawClient(server)
    try client.request("GET", "/")
    // The last step would keep the connection open forever.
    #expect(
      try client.textToEnd()
        == "HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\ncontent-type: text/plain\r\nX: y\r\nConnection: close\r\n\r\n"
        + "data: a\n\ndata: b")
  }

  @Test func aSecondStreamOnTheConnection() throws {
    let server = try TestServer()
    server.enqueue([.repeat(2, [.expectRequest, .startEvents(framing: .length), .events([""]), .endEvents])])
    let client = try RawClient(server)
    for _ in 1...2 { #expect(try client.get("/").text == "data: \n\n") }
    #expect(server.failures.isEmpty)
  }

  @Test func stepsOutOfOrder() async throws {
    let server = try TestServer()
    server.enqueue([.endEvents], [.startEvents(), .startEvents()], [.close, .events([""])])
    for number in 1...3 {
      _ = try RawClient(server).readToEnd()
      try await server.waitForClosedConnections(number)
    }
    #expect(
      server.failures == [
        "connection 1, script step 1 (endEvents): no event stream has been started",
        "connection 2, script step 2 (startEvents): an event stream has not ended yet",
        "connection 3, script step 2 (events): the script has closed the connection already",
      ])
  }
}
