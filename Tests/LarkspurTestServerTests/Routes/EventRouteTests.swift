import LarkspurTestServer
import TestKit
import Testing

@Suite(.ownThread) struct EventRouteTests {
  let server: TestServer
  let client: RawClient

  init() throws {
    server = try TestServer()
    client = try RawClient(server)
  }

  @Test func aWholeStream() throws {
    #expect(try client.get("/events/2").text == "id: 1\ndata: event 1\n\nid: 2\ndata: event 2\n\n")
    #expect(try client.get("/events/0").status == 204)
  }

  @Test func aStreamInParts() throws {
    let path = "/events/3?each=2&retry=5&piece=8"
    let first = try client.get(path)
    #expect(first.text == "retry: 5\n\nid: 1\ndata: event 1\n\nid: 2\ndata: event 2\n\n")
    #expect(first.rawBody.hasPrefix("8\r\n8\r\n"))
    #expect(try client.get(path, "Last-Event-ID: 2\r\n").text == "retry: 5\n\nid: 3\ndata: event 3\n\n")
    #expect(try client.get(path, "Last-Event-ID: 3\r\n").status == 204)
  }

  @Test func parametersAreChecked() throws {
    for query in ["end=x", "each=0", "piece=0", "retry=-1"] {
      #expect(try client.get("/events/1?\(query)").status == 400)
    }
    try client.request("GET", "/events/1?end=close")
    #expect(try client.textToEnd().hasSuffix("data: event 1\n\n\r\n"))
  }
}
