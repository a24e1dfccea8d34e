import LarkspurTestServer
import Testing

@Suite struct StreamEventTests {
  typealias Event = TestServer.StreamEvent

  @Test(
    arguments: [
      ("a", "data: a\n\n"), ("", "data: \n\n"), (Event(), "\n"),
      (Event("a\nb\r\n\rc\n"), "data: a\ndata: b\ndata: \ndata: c\ndata: \n\n"),
      (
        Event("x", event: "update", id: "7", retry: 10, comment: "why"),
        ": why\nevent: update\nid: 7\nretry: 10\ndata: x\n\n"
      ),
      (Event(comment: ""), ": \n\n"), (Event(id: ""), "id: \n\n"), (.raw("data: half"), "data: half"),
    ] as [(Event, String)])
  func text(event: Event, text: String) { #expect(event.text() == text) }

  @Test(arguments: ["\r\n", "\r"]) func lineEnds(end: String) {
    #expect(Event("a", id: "1").text(lineEnd: end) == "id: 1\(end)data: a\(end)\(end)")
  }
}
