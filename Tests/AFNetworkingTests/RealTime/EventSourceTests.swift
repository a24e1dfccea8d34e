import Dispatch
import LarkspurTestServer
import Synchronization
import Testing

@testable import AFNetworking

/// Tests event sources: events, listeners, the delegate, and new connections.
@Suite(.timeLimit(.minutes(1))) struct EventSourceTests {
  typealias Fixture = EventFixture

  private func problem(_ body: () throws -> Void) -> NSError? {
    do {
      try body()
      return nil
    } catch {
      return error as NSError
    }
  }

  @Test func delegateAndListenersInOrder() async throws {
    let fixture = try Fixture([
      .expectRequest("GET", "/events"), Fixture.head,
      Fixture.chunk(": comment\n\nevent: price\nid: 7\nretry: 2500\ndata: 1\nda"), Fixture.chunk("ta: 2\n\n"),
      Fixture.chunk("data: plain\n\n"), .expectClose,
    ])
    let journal = fixture.journal
    let source = try fixture.source { source in
      source.addListener(forEvent: "price") { journal.note("first \($0.text) \($0.retry)") }
      source.addListener(forEvent: "price") { _ in journal.note("second") }
      source.addListener(forEvent: "message") { journal.note("third \($0.text)") }
      source.addListener(forEvent: "other") { _ in journal.note("other") }
    }
    await journal.wait(for: "third plain")
    #expect(
      journal.lines == [
        "open", "event price 7 1\n2", "first 1\n2 2500.0", "second", "event message 7 plain", "third plain",
      ])
    #expect(source.isOpen && !source.isConnecting && !source.isClosed)
    #expect(source.lastEvent?.text == "plain" && source.lastEvent?.userInfo?.isEmpty == true)
    #expect(source.lastResponse?.statusCode == 200 && source.lastResponse?.mimeType == "text/event-stream")
    try source.close()
    #expect(source.isClosed && !source.isConnecting && !source.isOpen)
    await journal.wait(for: "close")
    #expect(fixture.values("Accept") == ["text/event-stream"])
    #expect(try await fixture.failures(afterConnections: 1) == [])
  }

  /// The delegate is notified when the head arrives, and not only with the first event.
  @Test func aSilentStreamOpens() async throws {
    let fixture = try Fixture([.expectRequest, Fixture.head, .expectClose])
    let source = try fixture.source()
    await fixture.journal.wait(for: "open")
    #expect(source.isOpen && source.lastEvent == nil && source.lastResponse?.statusCode == 200)
    try source.close()
    #expect(try await fixture.failures(afterConnections: 1) == [])
  }

  @Test func itConnectsAgainBehindTheLatestEvent() async throws {
    let fixture = try Fixture(
      [.expectRequest, Fixture.head, Fixture.chunk("id: 1\ndata: a\n\n"), Fixture.lastChunk, .close],
      [.expectRequest, Fixture.head, Fixture.chunk("data: b\n\nid: 2\ndata: c\n\n"), .close],
      [.expectRequest, Fixture.status(204), .close])
    let source = try fixture.source()
    await fixture.journal.wait(for: "close")
    #expect(
      fixture.journal.lines == [
        "open", "event message 1 a", "open", "event message 1 b", "event message 2 c", "close",
      ])
    #expect(fixture.values("Last-Event-ID") == [nil, "1", "2"])
    #expect(source.isClosed && source.lastResponse?.statusCode == 204 && source.lastEvent?.text == "c")
    #expect(try await fixture.failures(afterConnections: 3) == [])
  }

  @Test func aStatusEndsIt() async throws {
    let fixture = try Fixture([.expectRequest, Fixture.status(404), .close])
    let source = try fixture.source()
    await fixture.journal.wait(for: "error \(NSURLErrorBadServerResponse)")
    #expect(fixture.journal.lines == ["error \(NSURLErrorBadServerResponse)"])
    #expect(source.isClosed && source.lastResponse?.statusCode == 404)
    #expect(problem { try source.close() }?.domain == AFEventSourceErrorDomain)
  }

  @Test func withoutURL() async throws {
    let none: URL? = nil
    let request = AFEventSource(url: none).request
    #expect(request.value(forHTTPHeaderField: "Accept") == "text/event-stream" && request.url == nil)
    let journal = Journal()
    let source = AFEventSource(request: nil, opens: false)
    source.details.withLock { $0.failureBlock = { _ in journal.note("failed") } }
    try source.open()
    await journal.wait(for: "failed")
    #expect(source.isClosed && source.lastResponse == nil)
  }

  // MARK: - Opening and closing

  /// An initializer opens the source, and so the first call of `open()` has nothing to do.
  @Test func aNewSourceIsOpen() async throws {
    let ready = TestServer.Signal()
    let fixture = try Fixture([.expectRequest, .wait(ready), Fixture.head, Fixture.chunk("data: a\n\n"), .expectClose])
    let source = AFEventSource(url: URL(string: fixture.server.url("/events")))
    #expect(!source.isClosed)
    let journal = fixture.journal
    source.addListener(forEvent: "message") { journal.note($0.text) }
    _ = try await fixture.server.waitForRequests(1)
    #expect(source.isConnecting)
    ready.fire()
    await journal.wait(for: "a")
    try source.open()
    let error = problem { try source.open() }
    #expect(error?.domain == AFEventSourceErrorDomain && error?.code == 0)
    #expect(error?.localizedDescription == "Event Source Already Opened")
    try source.close()
    #expect(try await fixture.failures(afterConnections: 1) == [])
    #expect(fixture.server.connectionsAccepted == 1)
  }

  @Test func itCanBeOpenedAgain() async throws {
    let fixture = try Fixture(
      [.expectRequest, Fixture.head, Fixture.chunk("id: 5\ndata: a\n\n"), .expectClose],
      [.expectRequest, Fixture.head, Fixture.chunk("data: b\n\n"), .expectClose])
    let source = try fixture.source()
    #expect(problem { try source.open() }?.domain == AFEventSourceErrorDomain)
    await fixture.journal.wait(for: "event message 5 a")
    try source.close()
    #expect(problem { try source.close() }?.localizedDescription == "Event Source Already Closed")
    try source.open()
    await fixture.journal.wait(for: "event message 5 b")
    try source.close()
    await fixture.journal.wait { $0.last == "close" && $0.count == 6 }
    #expect(
      fixture.journal.lines == ["open", "event message 5 a", "close", "open", "event message 5 b", "close"])
    #expect(fixture.values("Last-Event-ID") == [nil, "5"])
    #expect(try await fixture.failures(afterConnections: 2) == [])
  }

  /// An event that has arrived together with the one that closed the source is not delivered.
  @Test func aListenerClosesIt() async throws {
    let fixture = try Fixture([
      .expectRequest, Fixture.head, Fixture.chunk("data: 1\n\ndata: 2\n\n"), .expectClose,
    ])
    let journal = fixture.journal
    let source = try fixture.source { source in
      source.addListener(forEvent: "message") { [weak source] _ in try? source?.close() }
      source.addListener(forEvent: "message") { _ in journal.note("late") }
    }
    await journal.wait(for: "close")
    #expect(try await fixture.failures(afterConnections: 1) == [])
    #expect(journal.lines == ["open", "event message - 1", "close"] && source.lastEvent?.text == "1")
  }

  // MARK: - Listeners

  @Test func removedListeners() async throws {
    let fixture = try Fixture([
      .expectRequest, Fixture.head,
      Fixture.chunk("event: a\ndata: 1\n\nevent: b\ndata: 2\n\nevent: a\ndata: 3\n\nevent: end\ndata: 4\n\n"),
      .expectClose,
    ])
    let journal = fixture.journal
    let source = try fixture.source { source in
      source.delegate = nil
      let number = source.addListener(forEvent: "a") { _ in journal.note("removed") }
      source.addListener(forEvent: "b") { _ in journal.note("removed") }
      source.addListener(forEvent: "b") { _ in journal.note("removed") }
      source.removeEventListener(withIdentifier: number)
      source.removeEventListener(withIdentifier: 1000)
      source.removeAllListeners(forEvent: "b")
      // A listener that is removed during an event does not get that event.
      source.addListener(forEvent: "a") { [weak source] in
        journal.note("a \($0.text)")
        source?.removeAllListeners(forEvent: "a")
      }
      source.addListener(forEvent: "a") { _ in journal.note("removed") }
      source.addListener(forEvent: "end") { journal.note("end \($0.text)") }
    }
    await journal.wait(for: "end 4")
    #expect(journal.lines == ["a 1", "end 4"])
    try source.close()
  }

  // MARK: - Queues

  @Test func theMainQueueByDefault() async throws {
    let fixture = try Fixture([.expectRequest, Fixture.head, Fixture.chunk("data: 1\n\n"), .expectClose])
    let journal = fixture.journal
    let source = try fixture.source { source in
      source.addListener(forEvent: "message") { _ in journal.note(MainQueue.isCurrent ? "main" : "other") }
    }
    await journal.wait { $0.count == 3 }
    #expect(journal.lines.last == "main" && source.completionQueue == nil)
    try source.close()
  }

  /// Calls come one after another, also on a concurrent queue.
  @Test func anotherQueue() async throws {
    let events = (1...100).map { "data: \($0)\n\n" }.joined()
    let fixture = try Fixture([.expectRequest, Fixture.head, Fixture.chunk(events), .expectClose])
    let journal = fixture.journal
    let key = DispatchSpecificKey<String>()
    let queue = DispatchQueue(label: "events", attributes: .concurrent)
    queue.setSpecific(key: key, value: "events")
    let source = try fixture.source { source in
      source.completionQueue = queue
      source.addListener(forEvent: "message") {
        journal.note("\($0.text) \(DispatchQueue.getSpecific(key: key) ?? "elsewhere")")
      }
    }
    await journal.wait(for: "100 events")
    let expected = (1...100).flatMap { ["event message - \($0)", "\($0) events"] }
    #expect(journal.lines == ["open"] + expected)
    try source.close()
  }
}
