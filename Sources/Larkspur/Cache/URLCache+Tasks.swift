import Foundation

// The request of a task for the cache: the current one, after redirects. A task that has not started has its original
// request.
extension URLSessionTask {
  fileprivate var cachedRequest: URLRequest? { currentRequest ?? originalRequest }
}

extension URLCache {
  func storeResponse(_ cachedResponse: CachedURLResponse, of task: URLSessionTask) {
    if let request = task.cachedRequest { storeCachedResponse(cachedResponse, for: request) }
  }

  /// Finds the response for a task's request and calls `body` with it on the cache's queue.
  func findResponse(of task: URLSessionTask, then body: @escaping @Sendable (CachedURLResponse?) -> Void) {
    core.run { body(task.cachedRequest.flatMap { self.cachedResponse(for: $0) }) }
  }

  func removeResponse(of task: URLSessionTask) {
    if let request = task.cachedRequest { removeCachedResponse(for: request) }
  }
}
