import AFNetworking
import LarkspurTestServer
import Testing

/// Tests events, and the serializers for event streams.
@Suite struct ServerSentEventTests {
  @Test func fields() {
    let event = AFServerSentEvent(fields: [
      "event": "price", "id": "7", "data": "1\n2", "retry": "2500", "color": "red", "size": 3,
    ])
    #expect(event.event == "price" && event.identifier == "7" && event.text == "1\n2" && event.retry == 2500)
    #expect(event.userInfo?.count == 2 && event.userInfo?["color"] as? String == "red")
    #expect(event.userInfo?["size"] as? Int == 3)
    let empty = AFServerSentEvent(fields: nil)
    #expect(empty.event == nil && empty.identifier == nil && empty.data == nil && empty.retry == 0)
    #expect(empty.userInfo?.isEmpty == true && AFServerSentEvent().userInfo == nil)
  }

  @Test(arguments: [("17", 17.0), ("", 0.0), ("-1", 0.0), ("1.5", 0.0), ("1e3", 0.0), ("nan", 0.0), ("٣", 0.0)])
  func retries(text: String, expected: TimeInterval) {
    #expect(AFServerSentEvent(fields: ["retry": text]).retry == expected)
    #expect(AFServerSentEvent(fields: ["retry": 250, "event": 1, "data": 2, "id": 3]).retry == 250)
  }

  @Test func archivesAndCopies() throws {
    let event = AFServerSentEvent(fields: ["event": "a", "id": "b", "data": "c", "retry": "5", "x": "y", "n": 1])
    let copy = try #require(event.copy() as? AFServerSentEvent)
    #expect(copy !== event && copy.event == "a" && copy.identifier == "b" && copy.text == "c" && copy.retry == 5)
    #expect(copy.userInfo?.count == 2)
    copy.event = "other"
    #expect(event.event == "a")
    let data = try NSKeyedArchiver.archivedData(withRootObject: event, requiringSecureCoding: true)
    let decoded = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: AFServerSentEvent.self, from: data))
    #expect(decoded.event == "a" && decoded.identifier == "b" && decoded.text == "c" && decoded.retry == 5)
    // Numbers of the user info are not kept.
    #expect(decoded.userInfo as? [String: String] == ["x": "y"])
  }

  // MARK: - The response serializer

  private func response(_ type: String, status: Int = 200) throws -> HTTPURLResponse {
    let url = try #require(URL(string: "http://example.com/events"))
    return try #require(
      HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: ["Content-Type": type]))
  }

  private func parsed(_ text: String) throws -> AFServerSentEvent? {
    let serializer = AFServerSentEventResponseSerializer()
    var error: NSError?
    let object = serializer.responseObject(for: try response("text/event-stream"), data: Data(text.utf8), error: &error)
    #expect(error == nil)
    return object as? AFServerSentEvent
  }

  @Test(arguments: ["\n", "\r", "\r\n"]) func messages(lineEnd: String) throws {
    let text = "\u{FEFF}: comment\n\nevent: old\nevent:price\nid\ndata:  1\nother: x\ndata:\ndata: 2\n\nevent: next\n\n"
    let event = try #require(try parsed(text.replacing("\n", with: lineEnd)))
    #expect(event.event == "price" && event.identifier == "" && event.text == " 1\n\n2")
    #expect(event.userInfo as? [String: String] == ["other": "x"])
  }

  @Test func theEndOfTheBytesEndsAMessage() throws {
    for text in ["data: a", "data: a\r", "data: a\n\ndata: b\n\n"] { #expect(try parsed(text)?.text == "a") }
    for text in ["", ": x\n\n", "\r\n\r\n"] { #expect(try parsed(text) == nil) }
  }

  @Test func invalidBytes() throws {
    let serializer = AFServerSentEventResponseSerializer()
    let object = serializer.responseObject(for: nil, data: Data([0x64, 0x61, 0x74, 0x61, 0x3A, 0xFF]), error: nil)
    #expect((object as? AFServerSentEvent)?.text == "\u{FFFD}")
  }

  @Test func unacceptableResponses() throws {
    let serializer = AFServerSentEventResponseSerializer.serializer()
    #expect(serializer.acceptableContentTypes == ["text/event-stream"])
    let data = Data("data: a\n\n".utf8)
    for (made, code) in [
      (try response("text/plain"), NSURLErrorCannotDecodeContentData),
      (try response("text/event-stream", status: 500), NSURLErrorBadServerResponse),
    ] {
      var error: NSError?
      let object = serializer.responseObject(for: made, data: data, error: &error)
      #expect(object == nil && error?.domain == AFURLResponseSerializationErrorDomain && error?.code == code)
    }
    let copy = try #require(serializer.copy() as? AFServerSentEventResponseSerializer)
    #expect(copy.acceptableContentTypes == ["text/event-stream"])
  }

  // MARK: - The request serializer

  @Test func requests() throws {
    let serializer = AFEventSourceRequestSerializer.serializer()
    serializer.setValue("token", forHTTPHeaderField: "X-Token")
    serializer.setValue("text/html", forHTTPHeaderField: "Accept")
    let copy = try #require(serializer.copy() as? AFEventSourceRequestSerializer)
    for serializer in [serializer, copy] {
      let request = try serializer.request(
        withMethod: "GET", urlString: "http://example.com/events", parameters: ["a": "b"])
      #expect(request.value(forHTTPHeaderField: "Accept") == "text/event-stream")
      #expect(request.value(forHTTPHeaderField: "X-Token") == "token")
      #expect(request.url?.absoluteString == "http://example.com/events?a=b")
    }
  }
}
