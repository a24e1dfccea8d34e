import Foundation
import Synchronization

/// A way to load requests that a program brings along: another scheme, a stand-in for a server in tests, a look at the
/// traffic. Subclass it, and name the subclass in `URLSessionConfiguration.protocolClasses` or register it.
///
/// For each load a session asks the classes of its configuration in their order, then the registered ones, the last one
/// first. The first whose ``canInit(with:)-(URLSessionTask)`` says yes makes an object for this load. The object tells its
/// ``client`` what comes. After a redirection another object is made, of whatever class takes the new request.
///
/// Threads. The initialisers, ``startLoading()`` and ``stopLoading()`` are called one after another on a serial queue that
/// belongs to this load. They may block; a `stopLoading()` comes after a `startLoading()` that does. There is no run loop on
/// that queue. The class methods are called on any thread, for several loads at once. The client may be called from any
/// thread.
///
/// The request that a protocol gets has the fields of the configuration's `httpAdditionalHeaders`. Its body is a stream in
/// `httpBodyStream`, as on Darwin; data, also that of an upload task, is in `httpBody` as well, as Foundation on Linux has it.
open class URLProtocol: NSObject {
  private struct Details {
    var client: (any URLProtocolClient)?
    var task: URLSessionTask?
  }

  private let storedRequest: URLRequest
  private let storedCachedResponse: CachedURLResponse?
  private let details: Mutex<Details>

  /// A protocol for one load. Sessions call ``init(task:cachedResponse:client:)``, which comes here.
  ///
  /// - Parameters:
  ///   - request: What is to be loaded, in its canonical form.
  ///   - cachedResponse: What the session's cache has for it.
  ///   - client: Whom to tell.
  public required init(
    request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
  ) {
    storedRequest = request
    storedCachedResponse = cachedResponse
    details = Mutex(Details(client: client))
    super.init()
  }

  /// A protocol for one load of a task: of its current request.
  public required convenience init(
    task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
  ) {
    let request = (client as? ProtocolClient)?.request ?? task.currentRequest ?? URLRequest(RequestStorage(url: nil))
    self.init(request: request, cachedResponse: cachedResponse, client: client)
    self.task = task
  }

  /// Whom to tell what comes.
  open var client: (any URLProtocolClient)? {
    get { details.withLock { $0.client } }
    set {
      // The old one may go with this, and do on its way what it likes: not while the lock is held.
      _ = details.withLock { details in
        defer { details.client = newValue }
        return details.client
      }
    }
  }

  /// What is to be loaded.
  open var request: URLRequest { storedRequest }

  /// What the session's cache had for the request. Nil: nothing, or there is no cache.
  open var cachedResponse: CachedURLResponse? { storedCachedResponse }

  /// The task that loads.
  open var task: URLSessionTask? {
    get { details.withLock { $0.task } }
    set {
      _ = details.withLock { details in
        defer { details.task = newValue }
        return details.task
      }
    }
  }

  // MARK: - For subclasses

  /// Whether this class loads such requests. Not unless a subclass says so.
  open class func canInit(with request: URLRequest) -> Bool { false }

  /// Whether this class loads what the task loads at present. Without an override, whether it loads such requests.
  open class func canInit(with task: URLSessionTask) -> Bool {
    guard let request = task.currentRequest else { return false }
    return canInit(with: request)
  }

  /// The form of a request that all equivalent ones have. It is what the object gets. Without an override, the request
  /// itself.
  open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  /// Whether what was cached for one request answers the other. Without an override, whether they have the same URL.
  /// Sessions do not ask: in their cache requests are equivalent if RFC 9111 says so.
  open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool { a.url == b.url }

  /// Begins to load. Called once. Without an override, fails with `URLError.unsupportedURL`.
  open func startLoading() {
    let error = URLError.make(
      .unsupportedURL, "\(type(of: self)) does not override startLoading()", url: request.url)
    client?.urlProtocol(self, didFailWithError: error)
  }

  /// Ends the load: it is complete, or has failed, or is not wanted any more. Called once for each ``startLoading()``. What
  /// the client is told from then on has no effect.
  open func stopLoading() {}

  // MARK: - Properties of requests

  /// What a protocol has noted on a request. It is not sent, and does not make two requests unequal.
  open class func property(forKey key: String, in request: URLRequest) -> Any? { request.property(key) }

  /// Notes something on a request: that a protocol has seen it already, say.
  open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
    request.value.setProperty(value, key)
  }

  /// Forgets what ``setProperty(_:forKey:in:)`` has kept.
  open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
    request.value.setProperty(nil, key)
  }

  // MARK: - Registration

  /// Offers a class to all sessions of the process, before those that were registered earlier.
  ///
  /// - Returns: False: it is no subclass of `URLProtocol`.
  open class func registerClass(_ protocolClass: AnyClass) -> Bool { ProtocolRegistry.register(protocolClass) }

  /// Takes back the last registration of a class. Loads that have begun go on.
  open class func unregisterClass(_ protocolClass: AnyClass) { ProtocolRegistry.unregister(protocolClass) }
}
