import Dispatch
import Foundation
import Larkspur
import Synchronization

/// The domain of the errors of ``AFEventSource/open()`` and ``AFEventSource/close()``.
public let AFEventSourceErrorDomain = "com.alamofire.networking.event-source.error"

/// A source of server-sent events (WHATWG HTML, section 9.2), with listeners for types of events and a delegate.
///
/// ```swift
/// let source = AFEventSource(url: url)
/// source.addListener(forEvent: "price") { event in
///   print(String(decoding: event.data, as: UTF8.self))
/// }
/// ```
///
/// A source connects when it is created, as in AFRocketClient; the first ``open()`` after that changes nothing. Use
/// ``init(request:opens:)`` to set properties and listeners before the first event. When the connection ends, the
/// source connects again, with the field `Last-Event-ID`. The work is done by `URLSessionEventSource`, which documents
/// the errors and statuses after which the source connects again, and the delays. An open source stays in memory until
/// ``close()``, or until it fails or the server ends it, also if the program has no reference to it.
///
/// Safe to use from any thread. The listeners and the delegate are called on ``completionQueue``, which is the main
/// queue by default, one call after another. The source reads the next event when the calls for the one before have
/// returned: a slow program slows the server down. In a program whose main thread does not serve the main queue, set a
/// completion queue.
///
/// The source keeps its listeners when it is closed. A listener that uses the source captures it weakly, or the program
/// removes the listener.
open class AFEventSource: NSObject, NSSecureCoding, NSCopying, @unchecked Sendable {
  /// The delegate and the blocks of the listeners belong to the program, and need not be `Sendable`.
  struct Details: @unchecked Sendable {
    var route: EventSourceRoute
    weak var delegate: (any AFEventSourceDelegate)?
    var listeners = EventListeners()
    var retryInterval: TimeInterval = 3
    var completionQueue: DispatchQueue?
    var lastEvent: AFServerSentEvent?
    /// The current opening, or the latest one.
    var run: EventSourceRun?
    /// Whether the initializer has opened the source, and `open()` has not been called since.
    var isOpenedByInitializer = false
    /// Called after the delegate when the source has failed.
    var failureBlock: ((any Error) -> Void)?
  }

  let details: Mutex<Details>
  private let outbox = EventSourceOutbox()

  /// The request that opens each connection.
  public let request: URLRequest

  /// Creates a source for a URL, and opens it. The request accepts `text/event-stream`.
  ///
  /// - Parameter url: The URL. Without a URL the source fails.
  public convenience init(url: URL!) { self.init(request: URLRequest.eventStream(url), opens: true) }

  /// Creates a source for a request, and opens it. See ``init(request:opens:)``.
  public convenience init(request: URLRequest!) { self.init(request: request, opens: true) }

  /// Creates a source for a request.
  ///
  /// The source uses a session that all such sources share, with the default configuration and the system's trust. For
  /// the session and the security policy of a manager, see
  /// ``AFHTTPSessionManager/openEventSource(with:serializer:using:)``.
  ///
  /// - Parameters:
  ///   - request: The request. The source sets `Accept` and `Cache-Control` unless the request has them. Without a
  ///     request the source fails.
  ///   - opens: Whether to open the source now. If not, it is closed until ``open()``: the program can set its
  ///     properties and listeners before the first event. AFRocketClient does not have this parameter.
  public init(request: URLRequest!, opens: Bool) {
    self.request = request ?? URLRequest.eventStream(nil)
    details = Mutex(Details(route: .standard))
    super.init()
    if opens { try? start(byInitializer: true) }
  }

  // MARK: - Properties

  /// The delegate, which the source does not retain.
  open var delegate: (any AFEventSourceDelegate)? {
    get { details.withLock { $0.delegate } }
    set { details.withLock { $0.delegate = newValue } }
  }

  /// The latest response, or `nil` before there is one.
  open var lastResponse: HTTPURLResponse! { details.withLock { $0.run }?.lastResponse }

  /// The latest event, or `nil` before there is one.
  open var lastEvent: AFServerSentEvent! { details.withLock { $0.lastEvent } }

  /// How long the source waits before it connects again, in seconds, until the server sets another time. 3 by default,
  /// at least 0.1, and at most a day. A server cannot set less than 0.5, or than this time if it is shorter.
  ///
  /// Failures in a row double the time, up to a minute. A new value counts from the next connection on, and replaces
  /// the server's.
  open var retryInterval: TimeInterval {
    get { details.withLock { $0.retryInterval } }
    set { details.withLock { $0.retryInterval = newValue } }
  }

  /// The queue for listeners and the delegate, or `nil`, the default, for the main queue. AFRocketClient does not have
  /// this property.
  open var completionQueue: DispatchQueue? {
    get { details.withLock { $0.completionQueue } }
    set { details.put(newValue, at: \.completionQueue) }
  }

  /// Whether the source has no open connection, and connects or waits before it does. Exactly one of this property,
  /// ``isOpen`` and ``isClosed`` is `true`.
  open var isConnecting: Bool { state == .connecting }

  /// Whether the stream is open.
  open var isOpen: Bool { state == .open }

  /// Whether the source is closed: by the program, by the server, or after an error.
  open var isClosed: Bool { state == .closed }

  private var state: URLSessionEventSource.ReadyState { details.withLock { $0.run }?.state ?? .closed }

  // MARK: - Opening and closing

  /// Opens the source. A source that has been closed asks the server for the events after the latest one.
  ///
  /// - Throws: An error of ``AFEventSourceErrorDomain`` if the source is open already. After an initializer that opens
  ///   the source, the first call does not throw.
  open func open() throws { try start(byInitializer: false) }

  private func start(byInitializer: Bool) throws {
    let (run, old) = try details.withLock { details -> (EventSourceRun?, EventSourceRun?) in
      if let run = details.run, !run.isOver {
        guard details.isOpenedByInitializer else { throw Self.error("Event Source Already Opened") }
        details.isOpenedByInitializer = false
        return (nil, nil)
      }
      let run = EventSourceRun(of: self, details.route, lastEventID: details.run?.lastEventID)
      details.isOpenedByInitializer = byInitializer
      return (run, exchange(&details.run, with: run))
    }
    run?.start()
    // The old run is released after the lock.
    withExtendedLifetime(old) {}
  }

  /// Closes the source. No listener is called after this, except one that is being called on another thread.
  ///
  /// - Throws: An error of ``AFEventSourceErrorDomain`` if the source is closed already.
  open func close() throws {
    guard let run = details.withLock({ $0.run }), run.close() else { throw Self.error("Event Source Already Closed") }
  }

  private static func error(_ message: String) -> NSError {
    NSError(domain: AFEventSourceErrorDomain, code: 0, userInfo: NSError.entries(forMessage: message))
  }

  // MARK: - Listeners

  /// Adds a listener for a type of events.
  ///
  /// - Parameters:
  ///   - event: The type. Events for which the server names no type have the type `message`.
  ///   - block: Called on ``completionQueue`` for each event of the type.
  /// - Returns: The listener's number for ``removeEventListener(withIdentifier:)``.
  @discardableResult
  open func addListener(forEvent event: String, using block: @escaping (AFServerSentEvent) -> Void) -> UInt {
    details.withLock { details in
      details.listeners.add(for: event) { received in { block(received) } }
    }
  }

  /// Removes a listener. An unknown number has no effect.
  open func removeEventListener(withIdentifier identifier: UInt) {
    let old = details.withLock { $0.listeners.remove { $0.identifier == identifier } }
    withExtendedLifetime(old) {}
  }

  /// Removes all listeners for a type of events.
  open func removeAllListeners(forEvent event: String) {
    let old = details.withLock { $0.listeners.remove { $0.event == event } }
    withExtendedLifetime(old) {}
  }

  // MARK: - Calls

  private var queue: DispatchQueue { completionQueue ?? .main }

  /// Calls the delegate for a connection that has opened, also if the server has ended the source since.
  func opened(by run: EventSourceRun) {
    outbox.post(on: queue) { [self] in
      if !run.isClosed { delegate?.eventSourceDidOpen(self) }
    }
  }

  /// Calls the delegate and the listeners for an event, and returns when the calls have returned.
  func received(_ event: ServerSentEvent, by run: EventSourceRun) async {
    let event = AFServerSentEvent(event)
    let (_, listeners) = details.withLock { details -> (AFServerSentEvent?, [EventListeners.Listener]) in
      (exchange(&details.lastEvent, with: event), details.listeners.listeners(for: event.event ?? ""))
    }
    let calls = UncheckedSendable(listeners.compactMap { $0.call(for: event) })
    await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
      outbox.post(on: queue) { [self] in
        deliver(event, calls.value, by: run)
        continuation.resume()
      }
    }
  }

  private func deliver(_ event: AFServerSentEvent, _ calls: [EventListeners.Call], by run: EventSourceRun) {
    guard !run.isOver else { return }
    delegate?.eventSource(self, didReceiveMessage: event)
    for call in calls {
      // An earlier listener may have closed the source, or removed this one.
      guard !run.isOver, details.withLock({ $0.listeners.contains(call.identifier) }) else { continue }
      call.body()
    }
  }

  /// Calls the delegate for the end of an opening.
  func ended(_ error: (any Error)?) {
    outbox.post(on: queue) { [self] in
      guard let error else {
        delegate?.eventSourceDidClose(self)
        return
      }
      delegate?.eventSource(self, didFailWithError: error)
      let block = details.withLock { $0.failureBlock }
      block?(error)
    }
  }

  // MARK: - Archives and copies

  /// `true`: an archive holds the request only.
  open class var supportsSecureCoding: Bool { true }

  private enum Key {
    static let request = "request"
  }

  /// Creates a source from an archive, or returns `nil` if the archive has no request. The source is closed until
  /// ``open()``: reading an archive does not connect to a server.
  public required init?(coder decoder: NSCoder) {
    guard let request = decoder.object(NSURLRequest.self, forKey: Key.request) else { return nil }
    self.request = request as URLRequest
    details = Mutex(Details(route: .standard))
    super.init()
  }

  /// Writes the request to a keyed archive.
  open func encode(with coder: NSCoder) { coder.encode(request as NSURLRequest, forKey: Key.request) }

  open override func copy() -> Any { copy(with: nil) }

  /// Returns a source with the same request, session, queue and interval, without listeners and delegate. The copy is
  /// closed until ``open()``.
  open func copy(with zone: NSZone? = nil) -> Any {
    let (route, interval, queue) = details.withLock { ($0.route, $0.retryInterval, $0.completionQueue) }
    let copy = blank() ?? AFEventSource(request: request, opens: false)
    copy.details.withLock { details in
      details.route = route
      details.retryInterval = interval
      details.completionQueue = queue
    }
    return copy
  }

  /// Creates a source of this class with the same request.
  private func blank() -> AFEventSource? {
    type(of: self) == AFEventSource.self ? nil : recoded()
  }
}
