import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(2))) struct URLSessionEventSourceTests {
  typealias Script = EventSourceScript

  // MARK: - Connecting again

  @Test func reconnection() async throws {
    let script = try Script(
      Script.stream("id: 1\nretry: 1500\ndata: a\n\n"), Script.status(503, "Retry-After: 7\r\n"),
      Script.stream("data: b\n\nid: 2\ndata: c\n\nid: 3\ndata: dropped\n"), [.expectRequest, .reset],
      Script.stream("id: 4\n\n"), Script.end)
    let source = try script.source()
    #expect(source.readyState == .connecting && source.lastEventID == nil)
    var events: [ServerSentEvent] = []
    for try await event in source.events {
      events.append(event)
      #expect(source.readyState == .open && source.lastEventID == event.id)
    }
    #expect(
      events == [
        ServerSentEvent(id: "1", data: "a", retry: .milliseconds(1500)), ServerSentEvent(id: "1", data: "b"),
        ServerSentEvent(id: "2", data: "c"),
      ])
    #expect(source.readyState == .closed && source.lastEventID == "4")
    #expect(script.values("Last-Event-ID") == [nil, "1", "1", "2", "2", "4"])
    #expect(script.values("Accept") == Array(repeating: "text/event-stream", count: 6))
    #expect(script.values("Cache-Control") == Array(repeating: "no-store", count: 6))
    #expect(script.delays == [1.5, 7, 1.5, 1.5, 1.5].map { .seconds($0) })
    #expect(script.server.failures == [])
  }

  @Test func thePauseGrowsUntilAnEventComes() async throws {
    let failure = Script.status(502)
    let script = try Script(
      failure, failure, failure, Script.stream(": no event\n\n"), Script.stream("data: x\n\n"), failure, Script.end)
    #expect(try await Script.data(of: script.source { $0.reconnectionTime = .seconds(1) }) == ["x"])
    #expect(script.delays == [1, 1, 2, 4, 1, 1].map { .seconds($0) })
  }

  @Test func aServerThatIsNotThere() async throws {
    let script = try Script(Script.stream("data: x\n\n"))
    let server = script.server
    let source = try script.source { $0.failuresMax = 3 }
    var iterator = source.events.makeAsyncIterator()
    #expect(try await iterator.next()?.data == "x")
    server.stop()
    #expect(await Script.errorOfNext(&iterator) != nil)
    #expect(try await iterator.next() == nil)
    #expect(source.readyState == .closed && script.delays.count == 3)
  }

  @Test func theStartingID() async throws {
    let script = try Script(Script.stream("data: x\n\n"), Script.end)
    let source = try script.source { $0.lastEventID = "40" }
    #expect(source.lastEventID == "40")
    #expect(try await Script.data(of: source) == ["x"])
    #expect(script.values("Last-Event-ID") == ["40", "40"])
  }

  /// What an ID may contain and a field may not does not keep the source from connecting.
  @Test func idsInFields() async throws {
    let script = try Script(
      Script.stream("id:  é\t\ndata: 1\n\n"), Script.stream("id: a\u{1}b\ndata: 2\n\n"),
      Script.stream("id: \u{7f}\ndata: 3\n\n"), Script.stream("id:   \ndata: 4\n\n"), Script.end)
    #expect(try await Script.data(of: script.source()) == ["1", "2", "3", "4"])
    let values = script.values("Last-Event-ID").map { $0.map { Array($0.utf8) } }
    // The server reads fields as UTF-8 or, if that is invalid, as ISO 8859-1.
    #expect(values == [nil, Array("é".utf8), nil, nil, nil])
  }

  @Test func theRequestsOwnFieldsStay() async throws {
    let script = try Script(Script.status(500), Script.end)
    var request = try script.request()
    request.setValue("text/event-stream, application/json", forHTTPHeaderField: "Accept")
    request.setValue("no-cache", forHTTPHeaderField: "Cache-Control")
    request.httpMethod = "POST"
    request.httpBody = Data("{}".utf8)
    let source = URLSessionEventSource(
      request: request, session: script.session, configuration: script.configuration)
    #expect(try await Script.data(of: source) == [])
    #expect(script.values("Accept") == Array(repeating: "text/event-stream, application/json", count: 2))
    #expect(script.values("Cache-Control") == ["no-cache", "no-cache"])
    #expect(script.server.requests.map(\.method) == ["POST", "POST"])
    #expect(script.server.requests.map(\.bodyText) == ["{}", "{}"])
  }

  // MARK: - Ends

  @Test func noContent() async throws {
    let script = try Script(Script.end)
    let source = try script.source()
    #expect(try await Script.data(of: source) == [])
    #expect(source.readyState == .closed)
    // A source that has ended does not connect again.
    #expect(try await Script.data(of: source) == [])
    #expect(script.server.requestsReceived == 1)
  }

  @Test(arguments: [201, 205, 400, 401, 403, 404, 501]) func otherStatuses(status: Int) async throws {
    let script = try Script(Script.status(status, "Content-Type: text/event-stream\r\nX-Why: because\r\n"))
    let source = try script.source()
    let error = try #require(await Script.error(of: source))
    #expect(error.code == .badServerResponse)
    let response = try #require(error.failingResponse as? HTTPURLResponse)
    #expect(response.statusCode == status && response.value(forHTTPHeaderField: "X-Why") == "because")
    #expect(error.failingURL == response.url && error.localizedDescription.contains("\(status)"))
    #expect(source.readyState == .closed && script.delays == [])
    #expect(try await Script.data(of: source) == [])
  }

  @Test func theStandardsStatuses() async throws {
    let script = try Script(Script.status(503))
    let error = await Script.error(of: try script.source { $0.retriedStatuses = [] })
    #expect((error?.failingResponse as? HTTPURLResponse)?.statusCode == 503)
  }

  @Test(arguments: [
    ("text/event-stream", true), ("Text/Event-Stream;charset=utf-8", true), ("text/event-stream ; x=y", true),
    ("text/plain", false), ("text/event-streams", false), ("", false), ("application/json", false),
  ])
  func types(type: String, isRight: Bool) async throws {
    let script = try Script(
      [.expectRequest, .send("HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\n\r\ndata: x\n\n"), .close], Script.end)
    let source = try script.source()
    if isRight {
      #expect(try await Script.data(of: source) == ["x"])
    } else {
      let error = await Script.error(of: source)
      #expect(error?.code == .badServerResponse)
      #expect((error?.failingResponse as? HTTPURLResponse)?.statusCode == 200)
      #expect(source.readyState == .closed && script.server.requestsReceived == 1)
    }
  }

  @Test func errorsThatAnotherTryDoesNotMend() async throws {
    let script = try Script()
    for address in ["unknown://host/", "http:///path"] {
      let source = URLSessionEventSource(
        url: try #require(URL(string: address)), session: script.session, configuration: script.configuration)
      let error = try #require(await Script.error(of: source))
      #expect([.unsupportedURL, .badURL].contains(error.code) && error.failingResponse == nil)
    }
    #expect(script.delays == [])
  }

  @Test func anInvalidatedSession() async throws {
    let script = try Script([.expectRequest, .send(Script.head + "data: x\n\n"), .hang])
    let source = try script.source()
    var iterator = source.events.makeAsyncIterator()
    #expect(try await iterator.next()?.data == "x")
    script.session.invalidateAndCancel()
    #expect(await Script.errorOfNext(&iterator)?.code == .cancelled)
    #expect(source.readyState == .closed && script.delays == [])
  }

  @Test func limits() async throws {
    let script = try Script(
      [.expectRequest, .send(Script.head + "data: 1\n\n: a comment that is long\n\n"), .hang])
    let source = try script.source { $0.lineBytesMax = 10 }
    var iterator = source.events.makeAsyncIterator()
    #expect(try await iterator.next()?.data == "1")
    #expect(await Script.errorOfNext(&iterator)?.code == .dataLengthExceedsMaximum)
    #expect(source.readyState == .closed)
    // The connection is closed although the iterator still lives.
    try await script.server.waitForClosedConnections(1)
    _ = iterator
  }

  @Test func tooManyFailures() async throws {
    let script = try Script(Script.status(503), Script.status(500))
    let error = await Script.error(of: try script.source { $0.failuresMax = 2 })
    #expect(error?.code == .badServerResponse)
    #expect((error?.failingResponse as? HTTPURLResponse)?.statusCode == 500)
    let other = try Script(Script.stream(""), Script.stream(""))
    #expect(await Script.error(of: try other.source { $0.failuresMax = 2 })?.code == .networkConnectionLost)
  }

  // MARK: - Preparing

  @Test func aTokenIsRefreshed() async throws {
    let script = try Script(Script.stream("id: 7\ndata: x\n\n"), Script.status(503), Script.end)
    let tokens = Mutex(0)
    let seen = Mutex<[String?]>([])
    let source = try script.source { configuration in
      configuration.prepare = { request in
        let id = request.value(forHTTPHeaderField: "Last-Event-ID")
        seen.withLock { $0.append(id) }
        await Task.yield()
        let number = tokens.withLock { number in
          number += 1
          return number
        }
        request.setValue("Bearer \(number)", forHTTPHeaderField: "Authorization")
      }
    }
    #expect(try await Script.data(of: source) == ["x"])
    #expect(script.values("Authorization") == ["Bearer 1", "Bearer 2", "Bearer 3"])
    #expect(seen.withLock { $0 } == [nil, "7", "7"])
  }

  private struct NoToken: Error {}

  @Test func aTokenThatCannotBeRefreshed() async throws {
    let script = try Script()
    let source = try script.source { $0.prepare = { _ in throw NoToken() } }
    await #expect(throws: NoToken.self) { try await Script.data(of: source) }
    #expect(source.readyState == .closed && script.server.connectionsAccepted == 0)
    let other = try Script(Script.status(503))
    let waiting = try other.source { $0.wait = { _ in throw NoToken() } }
    await #expect(throws: NoToken.self) { try await Script.data(of: waiting) }
    #expect(waiting.readyState == .closed)
  }

  @Test("CVE-2022-1650: an event source sends Authorization and Cookie to another origin")
  func cve_2022_1650() async throws {
    let other = try Script(Script.stream("data: x\n\n"), Script.end)
    let location = "Location: \(other.server.url("/events"))\r\n"
    let script = try Script(Script.status(302, location), Script.status(302, location))
    var request = try script.request()
    request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
    request.setValue("a=secret", forHTTPHeaderField: "Cookie")
    let source = URLSessionEventSource(
      request: request, session: script.session, configuration: script.configuration)
    #expect(try await Script.data(of: source) == ["x"])
    #expect(script.values("Authorization") == ["Bearer secret", "Bearer secret"])
    #expect(other.values("Authorization") == [nil, nil])
    #expect(other.values("Cookie") == [nil, nil])
  }

  // MARK: - The stream

  @Test func slowDrips() async throws {
    let text = Script.head + "id: 1\r\ndata: ä\r\n\r\ndata: b\r\r"
    let script = try Script([.expectRequest, .send(text, inPiecesOf: 1), .close], Script.end)
    #expect(try await Script.data(of: script.source()) == ["ä", "b"])
  }

  /// Each event is flushed by itself, and is delivered before the next one comes.
  @Test func aCompressedStream() async throws {
    let (first, second): ([UInt8], [UInt8]) = (
      [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xca, 0x4c, 0xb1, 0x52, 0x30, 0xe4, 0x4a, 0x49,
        0x2c, 0x49, 0xb4, 0x52, 0xc8, 0xcf, 0x4b, 0xe5, 0xe2, 0x02, 0x00, 0x00, 0x00, 0xff, 0xff,
      ],
      [0x83, 0x30, 0x4b, 0xca, 0xf3, 0xb9, 0xb8, 0x00, 0x2d, 0x1b, 0xbf, 0x07, 0x1c, 0x00, 0x00, 0x00]
    )
    let head =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"
      + "Transfer-Encoding: chunked\r\n\r\n"
    func chunk(_ bytes: [UInt8]) -> [UInt8] {
      Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + Array("\r\n".utf8)
    }
    let next = TestServer.Signal()
    let script = try Script(
      [
        .expectRequest, .send(head), .send(chunk(first)), .wait(next), .send(chunk(second)), .send("0\r\n\r\n"), .close,
      ],
      // A server that stops mostly leaves its coding without an end.
      [.expectRequest, .send(head), .send(chunk(first)), .send("0\r\n\r\n"), .close], Script.end)
    var iterator = try script.source().events.makeAsyncIterator()
    #expect(try await iterator.next() == ServerSentEvent(id: "1", data: "one"))
    next.fire()
    #expect(try await iterator.next() == ServerSentEvent(id: "1", data: "two"))
    #expect(try await iterator.next() == ServerSentEvent(id: "1", data: "one"))
    #expect(try await iterator.next() == nil)
    #expect(script.values("Last-Event-ID") == [nil, "1", "1"])
  }

  // MARK: - Time

  @Test func aSilentStream() async throws {
    let script = try Script(
      [.expectRequest, .send(Script.head + "id: 1\ndata: x\n\n"), .expectClose], Script.end)
    #expect(try await Script.data(of: script.source { $0.idleTimeout = .milliseconds(100) }) == ["x"])
    #expect(script.values("Last-Event-ID") == [nil, "1"])
    #expect(script.server.failures == [])
  }

  /// The request's timeout limits the wait for the head, and not the silence of the stream.
  @Test func theTimeoutOfTheRequest() async throws {
    let script = try Script(
      [.expectRequest, .expectClose],
      [.expectRequest, .send(Script.head), .pause(.seconds(5)), .send("data: x\n\n"), .close], Script.end)
    var request = try script.request()
    request.timeoutInterval = 4
    let source = URLSessionEventSource(
      request: request, session: script.session, configuration: script.configuration)
    #expect(try await Script.data(of: source) == ["x"])
    #expect(script.server.requestsReceived == 3 && script.server.failures == [])
  }
}
