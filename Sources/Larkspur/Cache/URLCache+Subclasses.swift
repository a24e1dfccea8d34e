import Foundation
import LarkspurHTTP

/// The request and the task that a session passes to a subclass of the cache.
struct CacheSubject: Sendable {
  var request: URLRequest
  /// The task, which Apple's documentation has subclasses override members for. `nil` if there is none, or if the task
  /// has moved on to another request.
  var task: URLSessionDataTask?
}

// A subclass may store responses elsewhere, so sessions call only its public members, on the cache's queue.
extension URLCache {
  /// Whether this is a subclass. A subclass may store responses elsewhere, so the session calls its members.
  var isSubclass: Bool { type(of: self) != URLCache.self }

  /// Asks the subclass for a response. The subclass decides on which thread `body` is called, and how often.
  func find(_ subject: CacheSubject, then body: @escaping @Sendable (CachedURLResponse?) -> Void) {
    core.run {
      guard let task = subject.task else { return body(self.cachedResponse(for: subject.request)) }
      self.getCachedResponse(for: task, completionHandler: body)
    }
  }

  func store(_ cached: CachedURLResponse, of subject: CacheSubject) {
    core.run {
      guard let task = subject.task else { return self.storeCachedResponse(cached, for: subject.request) }
      self.storeCachedResponse(cached, for: task)
    }
  }

  func remove(_ subject: CacheSubject) {
    core.run {
      guard let task = subject.task else { return self.removeCachedResponse(for: subject.request) }
      self.removeCachedResponse(for: task)
    }
  }
}

extension CacheExchange {
  /// Returns the subject of a response to this exchange. After a redirect that is followed, the task has another
  /// request and is left out.
  func subject(status: Int) -> CacheSubject {
    var subject = subject ?? CacheSubject(request: URLRequest(url: url))
    if RedirectPolicy.isFollowed(status) { subject.task = nil }
    return subject
  }

  /// Returns the subject of the response that is stored for GET, for an exchange that may be a HEAD.
  func subjectOfGet(status: Int) -> CacheSubject {
    request.isGet ? subject(status: status) : CacheSubject(request: URLRequest(url: url))
  }
}
