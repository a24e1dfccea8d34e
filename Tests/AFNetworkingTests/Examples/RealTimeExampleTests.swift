import AFNetworking
import Dispatch
import LarkspurTestServer
import Testing

/// The examples of RealTime.md.
@Suite(.timeLimit(.minutes(1))) struct RealTimeExampleTests {
  private final class Library: @unchecked Sendable {
    let journal: Journal
    var songs: Any? { didSet { journal.note((songs as? [String])?.joined(separator: ", ") ?? "nothing") } }

    init(_ journal: Journal) { self.journal = journal }
  }

  private func follow(_ library: Library, by manager: AFHTTPSessionManager) {
    manager.get("songs", parameters: nil, headers: nil, progress: nil) { task, songs in
      library.songs = songs
      _ = try? manager.subscribe("songs") { operations, error in
        guard let operations, let songs = library.songs else { return }
        library.songs = try? AFJSONPatchOperation.apply(operations, to: songs)
      }
    } failure: { task, error in
      print(error.localizedDescription)
    }
  }

  @Test func subscription() async throws {
    let fixture = try EventFixture(
      [
        .expectRequest("GET", "/songs"),
        .send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 8\r\nConnection: close\r\n\r\n"),
        .send("[\"dawn\"]"), .close,
      ],
      [
        .expectRequest("SUBSCRIBE", "/songs"), EventFixture.head,
        EventFixture.patch("1", #"{"op": "add", "path": "/-", "value": "noon"}"#), .expectClose,
      ])
    let manager = fixture.manager()
    follow(Library(fixture.journal), by: manager)
    await fixture.journal.wait(for: "dawn, noon")
    manager.invalidateSessionCancelingTasks(true, resetSession: false)
    #expect(try await fixture.failures(afterConnections: 2) == [])
  }

  private final class Prices: @unchecked Sendable {
    let journal: Journal
    private var source: AFEventSource?

    init(_ journal: Journal) { self.journal = journal }

    private func show(_ text: String) { journal.note(text) }

    func listen(to url: URL) throws {
      let source = AFEventSource(request: URLRequest(url: url), opens: false)
      source.completionQueue = DispatchQueue(label: "org.example.prices")
      source.retryInterval = 10
      source.addListener(forEvent: "price") { [weak self] event in
        self?.show(String(decoding: event.data, as: UTF8.self))
      }
      try source.open()
      self.source = source
    }

    func stop() { try? source?.close() }
  }

  @Test func listeners() async throws {
    let fixture = try EventFixture([
      .expectRequest, EventFixture.head, EventFixture.chunk("event: price\ndata: 17\n\n"), .expectClose,
    ])
    let prices = Prices(fixture.journal)
    try prices.listen(to: try #require(URL(string: fixture.server.url("/prices"))))
    await fixture.journal.wait(for: "17")
    prices.stop()
    #expect(try await fixture.failures(afterConnections: 1) == [])
  }

  func prices(at url: URL, by manager: AFHTTPSessionManager) async throws {
    let source = URLSessionEventSource(request: URLRequest(url: url), session: manager.session)
    for try await event in source.events {
      print(event.event, event.data)
      if event.event == "end" { break }
    }
  }

  @Test func aLoop() async throws {
    let fixture = try EventFixture([
      .expectRequest, EventFixture.head, EventFixture.chunk("data: 17\n\nevent: end\ndata: \n\n"), .expectClose,
    ])
    let manager = fixture.manager()
    try await prices(at: try #require(URL(string: fixture.server.url("/prices"))), by: manager)
    #expect(try await fixture.failures(afterConnections: 1) == [])
    manager.invalidateSessionCancelingTasks(true, resetSession: false)
  }
}
