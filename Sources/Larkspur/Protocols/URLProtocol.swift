import Foundation
import Synchronization

/// A way to load requests that a program provides: another URL scheme, a replacement for a server in tests, an observer
/// of the traffic. Subclass it, and add the subclass to `URLSessionConfiguration.protocolClasses` or register it.
///
/// For each load, a session asks the classes of its configuration in their order, and then the registered classes, the
/// last registered first. The first class whose ``canInit(with:)-(URLSessionTask)`` returns `true` creates an object
/// for this load. The object reports the load to its ``client``. After a redirection, another object is created, of the
/// class that loads the new request.
///
/// Threads. The initialisers, ``startLoading()`` and ``stopLoading()`` are called one after another, on a serial
/// queue that belongs to this load. These methods may block; `stopLoading()` is called after a blocked `startLoading()`
/// has returned. The queue has no run loop. The class methods are called on any thread, for several loads at once. The
/// client may be called from any thread.
///
/// The protocol's request has the fields of the configuration's `httpAdditionalHeaders`. The request's body is a stream
/// in `httpBodyStream`, as on Darwin. A body of data, such as that of an upload task, is in `httpBody` as well, as in
/// Foundation on Linux.
open class URLProtocol: NSObject {
  private struct Details {
    var client: (any URLProtocolClient)?
    var task: URLSessionTask?
  }

  private let storedRequest: URLRequest
  private let storedCachedResponse: CachedURLResponse?
  private let details: Mutex<Details>

  /// Creates a protocol for one load. Sessions call ``init(task:cachedResponse:client:)``, which calls this
  /// initialiser.
  ///
  /// - Parameters:
  ///   - request: The request to load, in its canonical form.
  ///   - cachedResponse: The response that the session's cache has for the request, if any.
  ///   - client: The object that the protocol reports to.
  public required init(
    request: URLRequest, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
  ) {
    storedRequest = request
    storedCachedResponse = cachedResponse
    details = Mutex(Details(client: client))
    super.init()
  }

  /// Creates a protocol for one load of a task, with the task's current request.
  public required convenience init(
    task: URLSessionTask, cachedResponse: CachedURLResponse?, client: (any URLProtocolClient)?
  ) {
    let request = (client as? ProtocolClient)?.request ?? task.currentRequest ?? URLRequest(RequestStorage(url: nil))
    self.init(request: request, cachedResponse: cachedResponse, client: client)
    self.task = task
  }

  /// The object that the protocol reports to.
  open var client: (any URLProtocolClient)? {
    get { details.withLock { $0.client } }
    set {
      // The previous client may be released here, and its deinitialiser may run any code: not while the lock is held.
      _ = details.withLock { details in
        defer { details.client = newValue }
        return details.client
      }
    }
  }

  /// The request to load.
  open var request: URLRequest { storedRequest }

  /// The response that the session's cache had for the request. `nil` if there is none, or if the session has no cache.
  open var cachedResponse: CachedURLResponse? { storedCachedResponse }

  /// The task that loads the request.
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

  /// Whether this class loads a request. `false` unless a subclass overrides the method.
  open class func canInit(with request: URLRequest) -> Bool { false }

  /// Whether this class loads the current request of a task. Without an override, calls `canInit(with:)` with that
  /// request.
  open class func canInit(with task: URLSessionTask) -> Bool {
    guard let request = task.currentRequest else { return false }
    return canInit(with: request)
  }

  /// Returns the form of a request that all equivalent requests share. The protocol object gets this form. Without an
  /// override, returns the request itself.
  open class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

  /// Whether a response cached for one request answers the other. Without an override, whether both have one URL.
  /// Sessions do not call this method: their cache decides by RFC 9111.
  open class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool { a.url == b.url }

  /// Starts to load. Called once. Without an override, fails with `URLError.unsupportedURL`.
  open func startLoading() {
    let error = URLError.make(
      .unsupportedURL, "\(type(of: self)) does not override startLoading()", url: request.url)
    client?.urlProtocol(self, didFailWithError: error)
  }

  /// Ends the load, which is complete, has failed or is no longer wanted. Called once for each ``startLoading()``.
  /// Calls of the client from then on have no effect.
  open func stopLoading() {}

  // MARK: - Properties of requests

  /// Returns a property that a protocol has set on a request. Properties are not sent, and do not count when requests
  /// are compared.
  open class func property(forKey key: String, in request: URLRequest) -> Any? { request.property(key) }

  /// Sets a property of a request, for example that a protocol has handled the request already.
  open class func setProperty(_ value: Any, forKey key: String, in request: NSMutableURLRequest) {
    request.value.setProperty(value, key)
  }

  /// Removes a property that ``setProperty(_:forKey:in:)`` has set.
  open class func removeProperty(forKey key: String, in request: NSMutableURLRequest) {
    request.value.setProperty(nil, key)
  }

  // MARK: - Registration

  /// Registers a class for all sessions of the process, before the classes that are registered already.
  ///
  /// - Returns: `false` if the class is no subclass of `URLProtocol`.
  open class func registerClass(_ protocolClass: AnyClass) -> Bool { ProtocolRegistry.register(protocolClass) }

  /// Removes a class from the registered ones. Loads that have started continue.
  open class func unregisterClass(_ protocolClass: AnyClass) { ProtocolRegistry.unregister(protocolClass) }
}
