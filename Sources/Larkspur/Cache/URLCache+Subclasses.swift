import Foundation
import LarkspurHTTP

/// By what a program's own cache is asked and told of a response.
struct CacheSubject: Sendable {
  var request: URLRequest
  /// As Apple documents it for subclasses, which then know more of it. Nil: there is none, or it is at another request.
  var task: URLSessionDataTask?
}

// A subclass may keep its responses elsewhere: sessions use its public members alone, on the cache's queue.
extension URLCache {
  /// A subclass may store elsewhere than here: the session then asks its members.
  var isSubclass: Bool { type(of: self) != URLCache.self }

  /// `body` is called by whomever the subclass lets call it, and however often.
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
  /// By what a program's own cache is told of a response to this. After a redirection its task is at another request.
  func subject(status: Int) -> CacheSubject {
    var subject = subject ?? CacheSubject(request: URLRequest(url: url))
    if Redirection.isFollowed(status) { subject.task = nil }
    return subject
  }

  /// The same for what is stored for GET, of which this may be the HEAD.
  func subjectOfGet(status: Int) -> CacheSubject {
    request.isGet ? subject(status: status) : CacheSubject(request: URLRequest(url: url))
  }
}
