import Foundation
import LarkspurHTTP
import Synchronization

/// A source of server-sent events that connects again when its connection ends (WHATWG HTML, section 9.2, "Server-sent
/// events").
///
/// ```swift
/// var configuration = URLSessionEventSource.Configuration()
/// configuration.prepare = { request in
///   request.setValue("Bearer \(try await tokens.current())", forHTTPHeaderField: "Authorization")
/// }
/// let source = URLSessionEventSource(request: URLRequest(url: url), configuration: configuration)
/// for try await event in source.events { print(event.event, event.data) }
/// ```
///
/// The source connects when a reader requests the first event, and reads no faster than its reader. It connects again,
/// with `Last-Event-ID`, after a network error, the end of the stream, and the statuses in
/// ``Configuration/retriedStatuses``. The events end without an error when the server answers with status 204 or the
/// program calls ``close()``. They end with an error for any other status (`.badServerResponse`), another type than
/// `text/event-stream` (`.badServerResponse`), and errors that another try would not mend, such as a certificate that
/// is not trusted.
///
/// Usable from any thread. One loop at a time reads the events: a new one takes over, and the one before ends. When a
/// loop is left, the connection closes; the next loop connects again with the latest ID.
public final class URLSessionEventSource: Sendable {
  /// The state of an event source, with the numbers of the standard.
  public enum ReadyState: Int, Sendable {
    /// The source has no open connection: it connects, waits before it connects again, or has no reader.
    case connecting = 0
    /// The stream is open.
    case open = 1
    /// The source has ended and will not connect again.
    case closed = 2
  }

  private struct State {
    var machine: EventSourceMachine
    /// The number of the reader that has the connection. Facts of earlier readers do not count.
    var reader = 0
    /// Cancels what the reader waits for, and its connection.
    var interrupt: (@Sendable () -> Void)?
  }

  /// The request as the program has made it. Each connection sends a copy, with the source's fields.
  public let request: URLRequest
  /// The session that loads the request. Its delegate answers challenges.
  public let session: URLSession
  /// How the source connects.
  public let configuration: Configuration
  private let state: Mutex<State>

  /// Creates a source, which does not connect before its events are read.
  ///
  /// - Parameters:
  ///   - request: The request. A request with a body is sent with it each time, if it is data. The source sets `Accept`
  ///     and `Cache-Control` unless the request has them.
  ///   - session: The session to use. Its `timeoutIntervalForResource`, 7 days by default, ends each connection.
  ///   - configuration: How the source connects.
  public init(request: URLRequest, session: URLSession = .shared, configuration: Configuration = Configuration()) {
    self.request = request
    self.session = session
    self.configuration = configuration
    state = Mutex(
      State(machine: EventSourceMachine(settings: configuration.settings, lastEventID: configuration.lastEventID ?? ""))
    )
  }

  /// Creates a source for a URL.
  public convenience init(
    url: URL, session: URLSession = .shared, configuration: Configuration = Configuration()
  ) {
    self.init(request: URLRequest(url: url), session: session, configuration: configuration)
  }

  deinit { close() }

  /// The events, from the next one on.
  public var events: Events { Events(self) }

  /// The state of the source.
  public var readyState: ReadyState {
    switch state.withLock({ $0.machine.state }) {
    case .idle, .connecting, .waiting: .connecting
    case .open: .open
    case .closed: .closed
    }
  }

  /// The ID of the latest event that has been read and that had one, or `nil`. The next connection sends it.
  public var lastEventID: String? {
    let id = state.withLock { $0.machine.lastEventID }
    return id.isEmpty ? nil : id
  }

  /// Closes the connection, and ends the events without an error. A source that has been closed stays so.
  public func close() {
    let interrupt = state.withLock { state in
      state.machine.close()
      return state.interrupt.take()
    }
    interrupt?()
  }

  // MARK: - The reader's side

  /// Makes a reader the one that has the connection. The reader before it ends.
  ///
  /// - Returns: The reader's number.
  func takeOver() -> Int {
    let (number, interrupt) = state.withLock { state in
      state.reader += 1
      state.machine.left()
      return (state.reader, state.interrupt.take())
    }
    interrupt?()
    return number
  }

  /// Reports a fact of a reader to the machine.
  ///
  /// - Returns: `finish` if another reader has taken over.
  func report(
    _ reader: Int, _ fact: (inout EventSourceMachine) -> EventSourceMachine.Action
  ) -> EventSourceMachine.Action {
    state.withLock { state in state.reader == reader ? fact(&state.machine) : .finish }
  }

  /// Records how to end what a reader waits for, or ends it at once, if it is too late.
  func setInterrupt(_ reader: Int, _ interrupt: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      guard state.reader == reader, state.machine.state != .closed else { return true }
      state.interrupt = interrupt
      return false
    }
    if isLate { interrupt() }
  }

  /// A reader has gone, and its connection with it.
  func leave(_ reader: Int) {
    state.withLock { state in
      guard state.reader == reader else { return }
      state.machine.left()
      state.interrupt = nil
    }
  }
}
