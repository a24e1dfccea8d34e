import Foundation
import Larkspur

/// The way in which an event source reaches its server.
struct EventSourceRoute: Sendable {
  var session: URLSession
  /// Called before each connection. If this throws, the source fails with the error.
  var check: @Sendable () throws -> Void = {}

  /// The route of sources that belong to no manager.
  static let standard = EventSourceRoute(session: session)

  /// The number of connections to one host. An open source never gives its connection back, so this is also the number
  /// of sources that can be open.
  private static let connectionsPerHostMax = 1000

  private static let session: URLSession = {
    let configuration = URLSessionConfiguration.default
    configuration.httpMaximumConnectionsPerHost = connectionsPerHostMax
    return URLSession(configuration: configuration, delegate: TaskObserver(), delegateQueue: nil)
  }()

  /// Notes the tasks of a session's event sources.
  private final class TaskObserver: NSObject, URLSessionTaskDelegate {
    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
      EventSourceRun.current?.created(task)
    }
  }
}

extension URLRequest {
  /// Returns a request for an event stream. Without a URL the request fails when it is loaded.
  static func eventStream(_ url: URL?) -> URLRequest {
    var request = URLRequest(url: url ?? URL(filePath: "/"))
    if url == nil { request.url = nil }
    request.setValue("text/event-stream", forHTTPHeaderField: "Accept")
    return request
  }
}
