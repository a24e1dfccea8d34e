import LarkspurBytes
import LarkspurTransport

/// An observer of all tasks and connections of a session or a client.
///
/// ```swift
/// struct Times: HTTPEventObserver {
///   func observe(_ event: HTTPEvent) { print(event.task ?? 0, event.time, event.kind) }
/// }
/// ```
///
/// Cost. Without an observer each event costs one comparison. With an observer an event costs a call, and a copy of the head
/// if it has one: 8 calls for a small request over a used connection, 12 over a new one, 14 with TLS. Requests are not
/// pipelined then. Bodies are copied only up to ``bodyBytesMax``.
public protocol HTTPEventObserver: Sendable {
  /// Maximum number of bytes of each request's and each response's body that events carry. Read once, when the session or
  /// the client is made. 0 by default: the events have the numbers of bytes only. With more than 0, downloads pass through
  /// the program's memory on their way into a file.
  var bodyBytesMax: Int { get }

  /// Takes an event, soon after it happened. Called on the loop's thread, which serves other loads as well: it must not
  /// block, and must not wait for a load. Events have their order. Each session and each client numbers its tasks and
  /// connections by itself, so the numbers of several of them may be equal; and several loops may call the observer at a time.
  func observe(_ event: HTTPEvent)
}

extension HTTPEventObserver {
  /// No bytes of bodies.
  public var bodyBytesMax: Int { 0 }
}

/// Several observers in one. Each gets all events, in the order of the list.
public struct HTTPEventObservers: HTTPEventObserver {
  private let observers: [any HTTPEventObserver]
  /// The largest of the observers' limits.
  public let bodyBytesMax: Int

  /// Combines observers. Bodies are copied up to the largest of their limits, and all of them get these copies.
  public init(_ observers: [any HTTPEventObserver]) {
    self.observers = observers
    bodyBytesMax = observers.map(\.bodyBytesMax).max() ?? 0
  }

  /// Passes an event to each observer.
  public func observe(_ event: HTTPEvent) { for observer in observers { observer.observe(event) } }
}

extension PoolObserver {
  /// Makes events of a pool's connections for an observer of loads.
  package init(_ observer: any HTTPEventObserver) {
    self.init(bodyBytesMax: max(0, observer.bodyBytesMax)) { event, time, connection, task in
      observer.observe(HTTPEvent(.connection(event), task: task, connection: Int(clamping: connection), at: time))
    }
  }
}
