import Larkspur
import LarkspurCommand
import LarkspurHTTP
import Testing

@Suite struct EventsArgumentTests {
  private func options(_ words: String...) throws -> EventsOptions {
    guard case .events(let options) = try Invocation(parsing: (["events"] + words)[...]) else {
      throw UsageError("no events")
    }
    return options
  }

  @Test func everyOption() throws {
    var expected = EventsOptions()
    expected.request.url = "x"
    #expect(try options("x") == expected)
    #expect(expected.reconnects && !expected.writesJSON && expected.eventsMax == nil && expected.lastEventID == nil)
    expected.writesJSON = true
    expected.request.method = "PUT"
    expected.request.data = [.text("{}")]
    expected.request.session.isJSON = true
    expected.reconnects = false
    expected.lastEventID = "a b"
    expected.eventsMax = 7
    expected.request.isVerbose = true
    expected.request.fields = [.init("A", "1")]
    expected.request.proxy = ""
    expected.request.tls.roots = "file"
    #expect(
      try options(
        "--json-lines", "--json", "{}", "-XPUT", "--no-reconnect", "x", "--last-event-id", "a b", "--max-events=7",
        "-vHA:1", "--proxy=", "--cacert",
        "file") == expected)
    #expect(try Invocation(parsing: ["events", "--help"]) == .help(.events))
  }

  @Test(arguments: [
    ([], "the URL is missing"), (["a", "b"], "more than one URL: a and b"),
    (["x", "--max-events", "0"], "--max-events wants a number from 1 on, not \"0\""),
    (["x", "--max-events", "-1"], "--max-events wants a number from 1 on, not \"-1\""),
    (["x", "--max-events", "+1"], "--max-events wants a number from 1 on, not \"+1\""),
    (["x", "--max-events", ""], "--max-events wants a number from 1 on, not \"\""),
    (
      ["x", "--max-events", "99999999999999999999"],
      "--max-events wants a number from 1 on, not \"99999999999999999999\""
    ),
    (["x", "--last-event-id", "a\r\nB: c"], "--last-event-id has a control character: \"a\\r\\nB: c\""),
    (["x", "--max-time", "1"], "unknown option --max-time"), (["x", "-H", "y"], "-H wants 'Name: value', not \"y\""),
    (["x", "--dangerously-log-keys"], "unknown option --dangerously-log-keys"),
  ])
  func errors(words: [String], message: String) {
    let error = #expect(throws: UsageError.self) { try Invocation(parsing: (["events"] + words)[...]) }
    #expect(error?.description == message)
    #expect(error?.topic == .events)
  }

  // MARK: - Lines

  @Test func text() {
    #expect(EventLine.text(ServerSentEvent(data: "lärk")) == "message: lärk\n")
    #expect(
      EventLine.text(ServerSentEvent(id: "1", event: "a\u{1b}", data: "b\nc\u{9b}")) == "a\\x1b: b\\x0ac\\x9b\n")
  }

  @Test func json() {
    #expect(
      EventLine.json(ServerSentEvent(data: "a/b ☀")) == "{\"event\":\"message\",\"id\":null,\"data\":\"a/b ☀\"}\n")
    #expect(
      EventLine.json(ServerSentEvent(id: "\"\\", event: "", data: "\r\n\t\u{0}\u{1b}\u{7f}\u{9b}\u{a0}"))
        == "{\"event\":\"\",\"id\":\"\\\"\\\\\",\"data\":\"\\r\\n\\t\\u0000\\u001b\\u007f\\u009b\u{a0}\"}\n")
    #expect(
      EventLine.json(ServerSentEvent(data: "a\u{202e}\u{e0041}❤\u{fe0f}"))
        == "{\"event\":\"message\",\"id\":null,\"data\":\"a\\u202e\\udb40\\udc41❤\u{fe0f}\"}\n")
  }
}
