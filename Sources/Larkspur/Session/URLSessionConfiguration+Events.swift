import Foundation

@_exported import struct LarkspurEngine.HTTPEvent
@_exported import protocol LarkspurEngine.HTTPEventObserver
@_exported import struct LarkspurEngine.HTTPEventObservers
@_exported import enum LarkspurTransport.ConnectionEvent

extension URLSessionConfiguration {
  /// The observer of the session's tasks, requests and connections: look-ups, attempts to connect, TLS, heads, numbers of
  /// bytes, reuse, retries, the cache's decisions, ends. `nil` by default. Darwin has no such property.
  ///
  /// Of WebSockets the opening handshake is observed, and of streams nothing but start and end. A background session whose
  /// tasks the transfer service carries out is not observed. See <doc:Observing>.
  public var eventObserver: (any HTTPEventObserver)? {
    get { storage.eventObserver }
    set { storage.eventObserver = newValue }
  }
}
