import Foundation
import Larkspur
import Metrics
import Synchronization

/// Measures the requests and connections of one session, under the names that OpenTelemetry gives them.
public final class MetricsObserver: HTTPEventObserver {
  private struct Request {
    var attributes: [(String, String)]
    var start: Duration
  }

  private let requests = Mutex<[Int: Request]>([:])
  private let connections = Mutex<Set<Int>>([])

  public init() {}

  public func observe(_ event: HTTPEvent) {
    switch event.kind {
    case .request(let method, let url):
      guard let task = event.task, let parts = URLComponents(string: url) else { return }
      let port = parts.port ?? (parts.scheme == "https" ? 443 : 80)
      let attributes = [
        ("http.request.method", method), ("server.address", parts.host ?? ""), ("server.port", "\(port)"),
      ]
      requests.withLock { $0[task] = Request(attributes: attributes, start: event.time) }
    case .connection(.headReceived(let status, _)): end(event, [("http.response.status_code", "\(status)")])
    case .ended(let error): end(event, error == nil ? nil : [("error.type", "_OTHER")])
    case .connection(.connected): count { $0.insert(event.connection ?? 0) }
    case .connection(.closed), .connection(.openFailed), .connection(.handedOver):
      count { $0.remove(event.connection ?? 0) }
    case .started, .cache, .retry, .connection: break
    }
  }

  private func count<Change>(_ change: (inout Set<Int>) -> Change) {
    let count = connections.withLock { connections in
      _ = change(&connections)
      return connections.count
    }
    Meter(label: "http.client.open_connections").set(count)
  }

  /// Records a request whose response begins, or that has failed. `nil` drops a request that the cache has answered.
  private func end(_ event: HTTPEvent, _ result: [(String, String)]?) {
    guard let task = event.task, let request = requests.withLock({ $0.removeValue(forKey: task) }), let result else {
      return
    }
    let timer = Timer(label: "http.client.request.duration", dimensions: request.attributes + result)
    timer.record(duration: event.time - request.start)
  }
}
