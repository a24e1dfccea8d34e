import BenchmarkUsage
import Foundation
import Larkspur

/// Streams of server-sent events, each a response to a request for a number of events.
struct EventStreams: Sendable {
  let url: URL
  let session: URLSession

  private func request(_ count: Int) -> URLRequest { URLRequest(url: url.appendingPathComponent("\(count)")) }

  /// Reads `count` events from the bytes of one response, to its end.
  func readBytes(_ count: Int) async throws {
    guard count > 0 else { return }
    let (bytes, response) = try await session.bytes(for: request(count))
    guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw Failure(description: "\(response)") }
    var received = 0
    for try await event in bytes.serverSentEvents {
      try Self.check(event)
      received += 1
    }
    guard received == count else { throw Failure(description: "\(received) events") }
  }

  /// Reads `count` events from an event source, which is left after the last of them.
  func readSource(_ count: Int) async throws {
    guard count > 0 else { return }
    let source = URLSessionEventSource(request: request(count), session: session)
    var received = 0
    for try await event in source.events {
      try Self.check(event)
      received += 1
      if received == count { return }
    }
    throw Failure(description: "\(received) events")
  }

  private static func check(_ event: ServerSentEvent) throws {
    guard event.data.utf8.count == Workload.eventDataBytes else {
      throw Failure(description: "an event with data \(event.data)")
    }
  }
}
