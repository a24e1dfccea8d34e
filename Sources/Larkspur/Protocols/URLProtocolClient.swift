import Foundation

/// The object that a ``URLProtocol`` reports its load to. Programs call this protocol's methods and do not implement
/// them.
///
/// Thread-safe. The methods may be called at any time, also within `startLoading()`. Each call returns at once; the
/// events are delivered in the order of the calls. Calls after the end of the load have no effect; neither has a second
/// response or a second end.
public protocol URLProtocolClient: NSObjectProtocol, Sendable {
  /// Reports a redirection. The task's delegate is asked; then this protocol is stopped, and the new request is loaded,
  /// by another protocol or by the session. If the delegate refuses, the task's response is `redirectResponse`, with
  /// the content that the protocol reports before it returns from `startLoading()`.
  func urlProtocol(_ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse)

  /// Reports that the protocol's cached response is valid. The cached response is delivered if the protocol finishes
  /// without another response.
  func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse)

  /// Reports the response.
  func urlProtocol(
    _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy)

  /// Reports a piece of the content. Each piece is delivered separately. If no response comes before it, delegates and
  /// completion handlers get content without a response, as in Foundation; async functions return a response that is
  /// made from the request's URL.
  func urlProtocol(_ protocol: URLProtocol, didLoad data: Data)

  /// Reports that the content is complete.
  func urlProtocolDidFinishLoading(_ protocol: URLProtocol)

  /// Reports a failure. The task fails with this very error.
  func urlProtocol(_ protocol: URLProtocol, didFailWithError error: any Error)

  /// Reports a challenge. The task's delegate is asked, and its answer goes to the challenge's sender, on the queue of
  /// this load.
  func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge)

  /// Withdraws a challenge, because its answer is no longer needed.
  func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge)
}
