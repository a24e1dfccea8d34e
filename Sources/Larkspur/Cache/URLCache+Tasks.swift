import Foundation

// Of a task it is the request that it is at, after redirections; one that has not begun has the one it was made for.
extension URLSessionTask {
  fileprivate var cachedRequest: URLRequest? { currentRequest ?? originalRequest }
}

extension URLCache {
  func storeResponse(_ cachedResponse: CachedURLResponse, of task: URLSessionTask) {
    if let request = task.cachedRequest { storeCachedResponse(cachedResponse, for: request) }
  }

  /// `body` is called on the cache's queue.
  func findResponse(of task: URLSessionTask, then body: @escaping @Sendable (CachedURLResponse?) -> Void) {
    core.run { body(task.cachedRequest.flatMap { self.cachedResponse(for: $0) }) }
  }

  func removeResponse(of task: URLSessionTask) {
    if let request = task.cachedRequest { removeCachedResponse(for: request) }
  }
}
