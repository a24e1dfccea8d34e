import Foundation
import Larkspur
import LarkspurTestServer
import Testing

/// The example of the page on replaying.
@Suite(.timeLimit(.minutes(1))) struct ReplayExampleTests {
  private func items(from recording: TestServer.Recording) async throws -> Data {
    var replay = TestServer.Replay()
    replay.faults = [.unavailable(times: 1, retryAfter: 0), .cut(afterBytes: 2, times: 1)]
    let server = try TestServer(replaying: recording, replay)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.interceptors = [URLSession.RetryPolicy.standard]
    let session = URLSession(configuration: configuration)
    defer { session.invalidateAndCancel() }
    let (data, _) = try await session.data(from: try #require(URL(string: server.url("/items"))))
    #expect(server.requestsReceived == 3)
    #expect(server.failures.isEmpty)
    return data
  }

  /// A session's traffic is recorded, and a test repeats it with faults.
  @Test func recordedAndReplayed() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).har")
    defer { try? FileManager.default.removeItem(at: file) }
    let server = try TestServer()
    server.route("GET", "/items") { _ in .json(["items": [1, 2, 3]]) }
    let recorder = try HARRecorder(file)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.eventObserver = recorder
    let session = URLSession(configuration: configuration)
    let (data, _) = try await session.data(from: try #require(URL(string: server.url("/items"))))
    session.invalidateAndCancel()
    try recorder.flush()
    let recording = try TestServer.Recording(contentsOf: file.path(percentEncoded: false))
    #expect(try await items(from: recording) == data)
  }
}
