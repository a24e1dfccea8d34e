import AFNetworking
import Dispatch
import LarkspurTestServer
import TestKit

/// A server with one script for each connection, and a journal of the calls of a delegate.
final class EventFixture: Sendable {
  let server: TestServer
  let journal = Journal()
  private let log: EventLog

  init(_ scripts: [TestServer.Step]...) throws {
    MainQueue.mark()
    server = try TestServer()
    log = EventLog(journal)
    for steps in scripts { server.enqueue(TestServer.Script(steps)) }
  }

  /// Opens a source that waits no longer than the server asks for.
  ///
  /// - Parameter set: Sets properties and listeners before the source is opened.
  func source(_ set: (AFEventSource) -> Void = { _ in }) throws -> AFEventSource {
    let source = closedSource()
    set(source)
    try source.open()
    return source
  }

  func closedSource() -> AFEventSource {
    let source = AFEventSource(request: URL(string: server.url("/events")).map { URLRequest(url: $0) }, opens: false)
    source.retryInterval = 0
    source.delegate = log
    return source
  }

  /// Waits until a source is open. The call of its delegate may come later.
  func waitUntilOpen(_ source: AFEventSource) async { await Wait.until("the source is open") { source.isOpen } }

  func waitUntilClosed(_ source: AFEventSource) async { await Wait.until("the source is closed") { source.isClosed } }

  /// A manager for the server, which the caller invalidates.
  func manager() -> AFHTTPSessionManager {
    AFHTTPSessionManager(baseURL: URL(string: server.url("/")), sessionConfiguration: .ephemeral)
  }

  /// The values of a field in all requests.
  func values(_ name: String) -> [String?] { server.requests.map { $0.fields[name] } }

  /// Waits until a number of connections have ended.
  ///
  /// - Returns: The failures of the scripts.
  func failures(afterConnections count: Int) async throws -> [String] {
    try await server.waitForClosedConnections(count)
    return server.failures
  }

  // MARK: - Steps

  /// The head of an event stream in chunks. The connection is not used again.
  static let head = TestServer.Step.send(
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")

  static func chunk(_ text: String) -> TestServer.Step {
    .send(String(text.utf8.count, radix: 16) + "\r\n" + text + "\r\n")
  }

  /// A chunk with an event whose data is a JSON Patch of one operation.
  static func patch(_ id: String, _ operation: String) -> TestServer.Step {
    chunk("event: patch\nid: \(id)\ndata: [\ndata: \(operation)\ndata: ]\n\n")
  }

  static let lastChunk = TestServer.Step.send("0\r\n\r\n")

  /// A response without content.
  static func status(_ status: Int) -> TestServer.Step {
    .send("HTTP/1.1 \(status) X\r\n\(status == 204 ? "" : "Content-Length: 0\r\n")Connection: close\r\n\r\n")
  }
}

/// Notes the calls of an event source.
private final class EventLog: AFEventSourceDelegate, Sendable {
  private let journal: Journal

  init(_ journal: Journal) { self.journal = journal }

  func eventSourceDidOpen(_ source: AFEventSource) { journal.note("open") }

  func eventSource(_ source: AFEventSource, didReceiveMessage event: AFServerSentEvent) {
    journal.note("event \(event.event ?? "-") \(event.identifier ?? "-") \(event.text)")
  }

  func eventSourceDidClose(_ source: AFEventSource) { journal.note("close") }

  func eventSource(_ source: AFEventSource, didFailWithError error: any Error) {
    journal.note("error \((error as NSError).code)")
  }
}

extension AFServerSentEvent {
  /// The data as text.
  var text: String { data.map { String(decoding: $0, as: UTF8.self) } ?? "-" }
}
