import Dispatch
import Foundation
import LarkspurTestServer
import Synchronization
import Testing

@testable import AFNetworking

/// Tests the lifetime of event sources, their interval, copies and archives.
@Suite(.timeLimit(.minutes(1))) struct EventSourceLifecycleTests {
  typealias Fixture = EventFixture

  /// Opens a source without keeping it. The source closes itself at the event `2`.
  private func open(_ fixture: Fixture) throws {
    let journal = fixture.journal
    let parting = DeinitObserver { journal.note("gone") }
    _ = try fixture.source { source in
      source.addListener(forEvent: "message") { [weak source] event in
        withExtendedLifetime(parting) { journal.note(event.text) }
        if event.text == "2" { try? source?.close() }
      }
    }
  }

  @Test func anOpenSourceKeepsItself() async throws {
    let more = TestServer.Signal()
    let fixture = try Fixture([
      .expectRequest, Fixture.head, Fixture.chunk("data: 1\n\n"), .wait(more), Fixture.chunk("data: 2\n\n"),
      .expectClose,
    ])
    try open(fixture)
    await fixture.journal.wait(for: "1")
    #expect(!fixture.journal.lines.contains("gone"))
    more.fire()
    await fixture.journal.wait(for: "gone")
    #expect(fixture.journal.lines.contains("2"))
    #expect(try await fixture.failures(afterConnections: 1) == [])
  }

  @Test func aFailedSourceIsReleased() async throws {
    let fixture = try Fixture([.expectRequest, Fixture.status(404), .close])
    try open(fixture)
    await fixture.journal.wait(for: "gone")
    #expect(fixture.journal.lines.contains("error \(NSURLErrorBadServerResponse)"))
  }

  /// A connection that has opened is reported before the end, also if the completion queue is busy up to the end.
  @Test func anOpeningIsReportedBeforeTheEnd() async throws {
    let more = TestServer.Signal()
    let fixture = try Fixture(
      [.expectRequest, Fixture.head, .wait(more), Fixture.lastChunk, .close],
      [.expectRequest, Fixture.status(204), .close])
    let queue = DispatchQueue(label: "busy")
    queue.suspend()
    let source = try fixture.source { $0.completionQueue = queue }
    await fixture.waitUntilOpen(source)
    more.fire()
    await fixture.waitUntilClosed(source)
    queue.resume()
    await fixture.journal.wait(for: "close")
    #expect(fixture.journal.lines == ["open", "close"])
  }

  /// Creates a source without opening it.
  private func create(_ fixture: Fixture) {
    let journal = fixture.journal
    let parting = DeinitObserver { journal.note("gone") }
    let source = fixture.closedSource()
    source.addListener(forEvent: "message") { _ in withExtendedLifetime(parting) {} }
  }

  /// A source that is never opened does not keep itself.
  @Test func aClosedSourceIsReleased() throws {
    let fixture = try Fixture()
    create(fixture)
    #expect(fixture.journal.lines == ["gone"])
  }

  /// Without the new interval the second connection would take an hour.
  @Test func theIntervalCanBeChanged() async throws {
    let more = TestServer.Signal()
    let fixture = try Fixture(
      [.expectRequest, Fixture.head, Fixture.chunk("id: 1\ndata: a\n\n"), .wait(more), Fixture.lastChunk, .close],
      [.expectRequest, Fixture.head, Fixture.chunk("data: b\n\n"), .expectClose])
    let source = try fixture.source { $0.retryInterval = 3600 }
    await fixture.journal.wait(for: "event message 1 a")
    source.retryInterval = 0
    more.fire()
    await fixture.journal.wait(for: "event message 1 b")
    #expect(fixture.values("Last-Event-ID") == [nil, "1"])
    #expect(fixture.journal.lines == ["open", "event message 1 a", "open", "event message 1 b"])
    try source.close()
    #expect(try await fixture.failures(afterConnections: 2) == [])
  }

  /// Closing ends the wait between two connections.
  @Test func itIsClosedWhileItWaits() async throws {
    let fixture = try Fixture([.expectRequest, Fixture.head, Fixture.chunk("data: a\n\n"), Fixture.lastChunk, .close])
    let source = try fixture.source { $0.retryInterval = 3600 }
    await fixture.journal.wait(for: "event message - a")
    try await fixture.server.waitForClosedConnections(1)
    try source.close()
    await fixture.journal.wait(for: "close")
    #expect(source.isClosed && fixture.server.connectionsAccepted == 1)
  }

  @Test(arguments: [TimeInterval.nan, -1, .infinity, -.infinity, 1e300]) func strangeIntervals(
    interval: TimeInterval
  ) async throws {
    let fixture = try Fixture([.expectRequest, Fixture.head, .expectClose])
    let source = try fixture.source { $0.retryInterval = interval }
    await fixture.journal.wait(for: "open")
    try source.close()
    #expect(try await fixture.failures(afterConnections: 1) == [])
  }

  // MARK: - Archives and copies

  private final class OwnSource: AFEventSource, @unchecked Sendable {
    var note = ""
  }

  private func request() throws -> URLRequest {
    var request = URLRequest(url: try #require(URL(string: "http://example.invalid/events")))
    request.httpMethod = "SUBSCRIBE"
    request.setValue("1", forHTTPHeaderField: "X-Field")
    return request
  }

  /// Neither a decoded source nor a copy connects by itself.
  @Test func archives() throws {
    let source = AFEventSource(request: try request(), opens: false)
    let data = try NSKeyedArchiver.archivedData(withRootObject: source, requiringSecureCoding: true)
    let decoded = try #require(try NSKeyedUnarchiver.unarchivedObject(ofClass: AFEventSource.self, from: data))
    #expect(decoded.isClosed && decoded.request.httpMethod == "SUBSCRIBE")
    #expect(decoded.request.url == source.request.url)
    #expect(decoded.request.value(forHTTPHeaderField: "X-Field") == "1")
  }

  @Test func copies() throws {
    let queue = DispatchQueue(label: "events")
    let session = URLSession(configuration: .ephemeral)
    let request = try request()
    for source in [AFEventSource(request: request, opens: false), OwnSource(request: request, opens: false)] {
      source.completionQueue = queue
      source.retryInterval = 17
      source.details.withLock { $0.route = EventSourceRoute(session: session) }
      let copy = try #require(source.copy() as? AFEventSource)
      #expect(copy !== source && type(of: copy) == type(of: source) && copy.isClosed)
      #expect(copy.request.url == request.url && copy.retryInterval == 17 && copy.completionQueue === queue)
      #expect(copy.details.withLock { $0.route.session } === session)
    }
    session.invalidateAndCancel()
  }

  /// A wrong value of any kind for any key does not trap.
  @Test func wrongArchives() throws {
    let wrong: [(NSKeyedArchiver, String) -> Void] = [
      { $0.encode(NSURL(fileURLWithPath: "/"), forKey: $1) }, { $0.encode("a\r\nb" as NSString, forKey: $1) },
      { $0.encode(NSArray(array: [1, "a", NSNull()]), forKey: $1) }, { $0.encode(NSData(), forKey: $1) },
      { $0.encode(NSDictionary(dictionary: ["a": 1]), forKey: $1) }, { $0.encode(Int64.min, forKey: $1) },
      { $0.encode(Double.nan, forKey: $1) }, { $0.encode(NSDate(), forKey: $1) },
    ]
    let types: [any (NSObject & NSCoding).Type] = [AFEventSource.self, AFServerSentEvent.self]
    for write in wrong {
      for key in ["request", "event", "identifier", "data", "retry", "userInfo"] {
        let archiver = NSKeyedArchiver(requiringSecureCoding: true)
        write(archiver, key)
        archiver.finishEncoding()
        let decoder = try NSKeyedUnarchiver(forReadingFrom: archiver.encodedData)
        decoder.decodingFailurePolicy = .setErrorAndReturn
        for type in types {
          let object = type.init(coder: decoder)
          #expect(object == nil || object?.isKind(of: type) == true)
        }
      }
    }
  }
}
