import Foundation

/// Whom a ``URLProtocol`` tells what it loads. Programs call it and do not implement it.
///
/// For any thread, and at any time: also within `startLoading()`. The calls return at once; what they say is delivered in
/// their order. What comes after the load's end has no effect, nor has a second response or a second end.
public protocol URLProtocolClient: NSObjectProtocol, Sendable {
  /// The resource is elsewhere. The task's delegate is asked; then this protocol is stopped, and the new request is
  /// loaded by whatever loads it. If the delegate refuses, `redirectResponse` is what the task has loaded, with such content
  /// as the protocol tells of before it returns from `startLoading()`.
  func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)

  /// The cached response that the protocol was made with is good. It is delivered when the protocol finishes without a
  /// response of its own.
  func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)

  /// The response has begun.
  func urlProtocol(
    _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)

  /// A piece of the content. Each is delivered on its own. Without a response before it, one is made of the request's URL.
  func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)

  /// The content is complete.
  func urlProtocolDidFinishLoading(_ protocol: URLProtocol)

  /// The load has failed. The task fails with this very error.
  func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)

  /// Somebody wants credentials. The task's delegate is asked, and the challenge's sender hears the answer, on the load's
  /// queue.
  func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)

  /// The answer to a challenge is not wanted any more.
  func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
