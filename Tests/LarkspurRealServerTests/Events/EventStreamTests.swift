import Foundation
import Larkspur
import Synchronization
import TestKit
import Testing

/// Event streams of a Python server behind nginx: see `Tests/LivePeers/push_server.py`.
@Suite(.serialized, .ownThread) struct EventStreamTests {
  private let session = URLSession(configuration: .ephemeral)
  private let origin: PythonServer

  init() throws {
    origin = try PythonServer("Tests/LivePeers/push_server.py")
  }

  private func front(_ buffering: String) throws -> SessionServer {
    try SessionServer(
      .nginx, "location / { proxy_pass http://127.0.0.1:\(origin.port); proxy_buffering \(buffering); }")
  }

  /// The server ends each stream after three events. The source resumes behind the latest one, until the server answers
  /// with 204.
  @Test(arguments: ["on", "off"]) func reconnections(buffering: String) async throws {
    let server = try front(buffering)
    let delays = Mutex<[Duration]>([])
    var configuration = URLSessionEventSource.Configuration()
    configuration.reconnectionTime = .milliseconds(5)
    configuration.random = { 0 }
    configuration.wait = { delay in delays.withLock { $0.append(delay) } }
    let source = URLSessionEventSource(
      url: try server.url("/events"), session: session, configuration: configuration)
    var events: [ServerSentEvent] = []
    for try await event in source.events { events.append(event) }
    #expect(events.map(\.data) == (1...9).map { "number \($0)\nof 9" })
    #expect(events.compactMap(\.id) == (1...9).map { "\($0)" })
    #expect(events.allSatisfy { $0.event == "tick" })
    #expect(source.lastEventID == "9" && source.readyState == .closed)
    // The server asks for 7 ms, and the program for 5 ms. 100 ms is the least.
    #expect(delays.withLock { $0.count } == 3)
    #expect(delays.withLock { $0.allSatisfy { $0 > .milliseconds(99) && $0 < .milliseconds(101) } })
  }

  /// A new source begins behind the event that the program has seen before.
  @Test(arguments: ["on", "off"]) func resumption(buffering: String) async throws {
    var configuration = URLSessionEventSource.Configuration()
    configuration.lastEventID = "6"
    let server = try front(buffering)
    let source = URLSessionEventSource(
      url: try server.url("/events"), session: session, configuration: configuration)
    var ids: [String] = []
    for try await event in source.events {
      ids += [event.id].compactMap(\.self)
      if event.id == "9" { source.close() }
    }
    #expect(ids == ["7", "8", "9"])
  }

  /// Each event arrives while the stream is open: the server sends the next one when the program has read the one
  /// before. A server can switch nginx's buffering off with a field of its response.
  @Test(arguments: [("off", false), ("on", true)])
  func eventsArriveAtOnce(buffering: String, isSwitchedOff: Bool) async throws {
    let server = try front(buffering)
    var request = URLRequest(url: try server.url("/stepwise"))
    if isSwitchedOff { request.setValue("unbuffered", forHTTPHeaderField: "X-Ask") }
    let (bytes, response) = try await session.bytes(for: request)
    #expect(response.mimeType == "text/event-stream")
    var events: [ServerSentEvent] = []
    for try await event in bytes.serverSentEvents {
      events.append(event)
      #expect(try await session.load(server.url("/step")).status == 200)
    }
    #expect(events == (0..<3).map { ServerSentEvent(id: "\($0)", data: "step \($0)") })
  }
}
