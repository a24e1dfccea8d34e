import Foundation
import LarkspurHTTP

/// By what a program's own cache is asked and told of a response.
enum CacheSubject: Sendable {
  case request(URLRequest)
  /// As Apple documents it for subclasses, which then know more of it.
  case task(URLSessionDataTask, at: URLRequest)
}

// A subclass may keep its responses elsewhere: sessions use its public members alone, on the cache's queue.
extension URLCache {
  /// A subclass may store elsewhere than here: the session then asks its members.
  var isSubclass: Bool { type(of: self) != URLCache.self }

  /// `body` is called by whomever the subclass lets call it, and however often.
  func find(_ subject: CacheSubject, then body: @escaping @Sendable (CachedURLResponse?) -> Void) {
    core.run {
      switch subject {
      case .request(let request): body(self.cachedResponse(for: request))
      case .task(let task, _): self.getCachedResponse(for: task, completionHandler: body)
      }
    }
  }

  func store(_ cached: CachedURLResponse, of subject: CacheSubject) {
    core.run {
      switch subject {
      case .request(let request): self.storeCachedResponse(cached, for: request)
      case .task(let task, _): self.storeCachedResponse(cached, for: task)
      }
    }
  }

  func remove(_ subject: CacheSubject) {
    core.run {
      switch subject {
      case .request(let request): self.removeCachedResponse(for: request)
      case .task(let task, _): self.removeCachedResponse(for: task)
      }
    }
  }
}

extension CacheExchange {
  /// By what a program's own cache is told of a response to this. After a redirection its task is at another request.
  func subject(status: Int) -> CacheSubject {
    guard case .task(_, let request)? = subject, Redirection.isFollowed(status) else {
      return subject ?? .request(URLRequest(url: url))
    }
    return .request(request)
  }

  /// The same for what is stored for GET, of which this may be the HEAD.
  func subjectOfGet(status: Int) -> CacheSubject {
    request.isGet ? subject(status: status) : .request(URLRequest(url: url))
  }
}
