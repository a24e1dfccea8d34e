import Foundation
import Larkspur
import LarkspurTestServer
import Synchronization
import Testing

/// A server with scripts for the connections of an event source, and a source that does not really wait.
final class EventSourceScript: Sendable {
  let server: TestServer
  let session = URLSession(configuration: .ephemeral)
  private let recorded = Mutex<[Duration]>([])

  init(_ scripts: [TestServer.Step]...) throws {
    server = try TestServer()
    for steps in scripts { server.enqueue(TestServer.Script(steps)) }
  }

  deinit { session.invalidateAndCancel() }

  /// The delays before each new connection.
  var delays: [Duration] { recorded.withLock { $0 } }

  /// The values of a field in all requests.
  func values(_ name: String) -> [String?] { server.requests.map { $0.fields[name] } }

  /// A configuration with the shortest delays, which pass at once.
  var configuration: URLSessionEventSource.Configuration {
    var configuration = URLSessionEventSource.Configuration()
    configuration.random = { 0 }
    configuration.wait = { [self] delay in recorded.withLock { $0.append(delay) } }
    return configuration
  }

  func request(_ path: String = "/events") throws -> URLRequest {
    URLRequest(url: try #require(URL(string: server.url(path))))
  }

  func source(
    _ change: (inout URLSessionEventSource.Configuration) -> Void = { _ in }
  ) throws -> URLSessionEventSource {
    var configuration = configuration
    change(&configuration)
    return URLSessionEventSource(request: try request(), session: session, configuration: configuration)
  }

  /// The data of all events of a source until it ends.
  static func data(of source: URLSessionEventSource) async throws -> [String] {
    var list: [String] = []
    for try await event in source.events { list.append(event.data) }
    return list
  }

  static func error(of source: URLSessionEventSource) async -> URLError? {
    do {
      _ = try await data(of: source)
      return nil
    } catch {
      return error as? URLError
    }
  }

  /// The error of an iterator's next step, or `nil` if it has none.
  static func errorOfNext(_ iterator: inout some AsyncIteratorProtocol) async -> URLError? {
    do {
      _ = try await iterator.next(isolation: #isolation)
      return nil
    } catch {
      return error as? URLError
    }
  }

  // MARK: - Steps

  static let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

  /// Sends a stream that ends with the connection.
  static func stream(_ text: String) -> [TestServer.Step] { [.expectRequest, .send(head + text), .close] }

  /// Sends a response without content.
  static func status(_ status: Int, _ fields: String = "") -> [TestServer.Step] {
    [.expectRequest, .send("HTTP/1.1 \(status) X\r\n\(fields)Content-Length: 0\r\nConnection: close\r\n\r\n"), .close]
  }

  /// Ends the source.
  static let end = [
    TestServer.Step.expectRequest, .send("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"), .close,
  ]
}
