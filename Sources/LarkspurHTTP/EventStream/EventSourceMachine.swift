/// Decides when an event source connects, with which ID, and when it ends (WHATWG HTML, sections 9.2.2 and 9.2.3).
///
/// Theory of operation. The owner reports facts; each fact has one action as its answer, which the owner carries out
/// and reports the outcome of. The machine keeps the latest event ID, the reconnection time and the number of failures
/// since the latest event.
///
/// ```
///            start                200 and the type is right
///   idle ------------> connecting -------------------------> open <--+ received
///    ^                  ^     |                                |  |--+
///    |                  |     | network error, retried status  | end, network error
///    |          waited  |     v                                |
///    |                 waiting <-------------------------------+
///    | left: from connecting, open, waiting
///
///   closed: after 204, another status or type, a futile error, too many failures, or close; never left again
/// ```
///
/// The machine does not depend on requests, time or random numbers: the owner passes in a fraction that spreads the
/// delay. Invariants: `connect` is answered only in the state `connecting`, `read` only in `open`, `wait` only in
/// `waiting`; a fact that does not fit the state changes nothing; `closed` answers `finish`.
package struct EventSourceMachine: Sendable {
  package struct Settings: Hashable, Sendable {
    /// The delay before the first reconnection, until the server sets another with `retry`. The standard suggests "in
    /// the region of a few seconds".
    package var reconnectionTime = Duration.seconds(3)
    /// The longest delay that failures lead to. A longer one that the server asks for is kept.
    package var delayMax = Duration.seconds(60)
    /// The longest delay that a server can ask for, by `retry` or `Retry-After`. Without this limit, a server could
    /// silence a source forever.
    package var serverDelayMax = Duration.seconds(3600)
    /// The statuses after which the source connects again.
    package var retriedStatuses: Set<Int> = [429, 500, 502, 503, 504]
    /// The number of failures without an event between them that ends the source, or `nil` for no limit.
    package var failuresMax: Int?

    package init() {}
  }

  package enum State: Hashable, Sendable, CaseIterable {
    case idle, connecting, open, waiting, closed
  }

  package enum Failure: Hashable, Sendable {
    /// The response has this status, which is not retried or was received too often.
    case status(Int)
    /// The response has status 200, and another type than `text/event-stream`.
    case contentType
    /// The connection has failed, and the owner knows the error.
    case connection
    /// The stream has ended too often without an event.
    case ended
  }

  package enum Action: Hashable, Sendable {
    /// Send the request. The ID is the value of `Last-Event-ID`, or empty for a request without that field.
    case connect(lastEventID: String)
    /// Read the next event.
    case read
    /// Let this time pass.
    case wait(Duration)
    /// End without an error.
    case finish
    case fail(Failure)
  }

  /// The shortest reconnection time that a server can set with `retry`, as in Firefox. Without this limit, a server that
  /// sends `retry: 0` would make each of its clients connect without a pause. A program's own time may be shorter.
  package static let serverDelayMin = Duration.milliseconds(500)
  /// The shortest reconnection time that a program can set.
  package static let delayMin = Duration.milliseconds(100)

  /// A delay in seconds that is as good as forever, and that a `Duration` can express.
  private static let longestSeconds = 1e9

  package private(set) var state = State.idle
  package private(set) var lastEventID: String
  private let settings: Settings
  private var reconnectionTime: Duration
  /// The shortest reconnection time that the server of this source can set.
  private let serverDelayLeast: Duration
  /// Whether an event has arrived on this connection. Its end is then no failure.
  private var hasReceived = false
  /// The number of connections since the latest event that failed or ended.
  package private(set) var failureCount = 0

  package init(settings: Settings = Settings(), lastEventID: String = "") {
    self.settings = settings
    self.lastEventID = lastEventID
    reconnectionTime = max(settings.reconnectionTime, Self.delayMin)
    serverDelayLeast = min(reconnectionTime, Self.serverDelayMin)
  }

  // MARK: - Facts

  /// A reader needs an event.
  package mutating func start() -> Action {
    switch state {
    case .idle, .connecting, .waiting: return connect()
    case .open: return .read
    case .closed: return .finish
    }
  }

  /// The head of a response has arrived.
  ///
  /// - Parameters:
  ///   - isEventStream: Whether the type of the content is `text/event-stream`.
  ///   - retryAfter: The delay that the response asks for, in seconds.
  ///   - fraction: A random number from 0 to 1.
  package mutating func responded(
    status: Int, isEventStream: Bool, retryAfter: Double?, fraction: Double
  ) -> Action {
    guard state == .connecting else { return unfitting }
    if status == 200, isEventStream {
      state = .open
      return .read
    }
    if status == 204 {
      // The standard's way for a server to stop its clients.
      state = .closed
      return .finish
    }
    if status == 200 { return fail(.contentType) }
    guard settings.retriedStatuses.contains(status) else { return fail(.status(status)) }
    return wait(atLeast: retryAfter.map(serverDelay) ?? .zero, fraction, orFail: .status(status))
  }

  /// An event has arrived.
  package mutating func received(lastEventID: String, reconnectionMilliseconds: UInt64?) -> Action {
    guard state == .open else { return unfitting }
    learn(lastEventID, reconnectionMilliseconds)
    failureCount = 0
    hasReceived = true
    return .read
  }

  /// The stream has ended in order.
  ///
  /// - Parameters:
  ///   - lastEventID: The ID to resume from, which lines without data may have changed.
  ///   - reconnectionMilliseconds: The latest value of `retry` on this connection.
  package mutating func ended(
    lastEventID: String, reconnectionMilliseconds: UInt64?, fraction: Double
  ) -> Action {
    guard state == .open else { return unfitting }
    learn(lastEventID, reconnectionMilliseconds)
    return wait(atLeast: .zero, fraction, orFail: .ended)
  }

  /// Connecting has failed, or reading the stream.
  ///
  /// - Parameter isFutile: Whether another try would fail in this way, too.
  package mutating func failed(
    isFutile: Bool, lastEventID: String, reconnectionMilliseconds: UInt64?, fraction: Double
  ) -> Action {
    switch state {
    case .idle, .waiting, .closed: return unfitting
    case .open: learn(lastEventID, reconnectionMilliseconds)
    case .connecting: break
    }
    if isFutile { return fail(.connection) }
    return wait(atLeast: .zero, fraction, orFail: .connection)
  }

  /// The delay has passed.
  package mutating func waited() -> Action {
    state == .waiting ? connect() : unfitting
  }

  /// The reader has gone, and with it the connection or the wait.
  package mutating func left() {
    if state != .closed { state = .idle }
  }

  package mutating func close() { state = .closed }

  /// The code of the program that prepares a request, or waits, has failed.
  package mutating func gaveUp() -> Action {
    state == .connecting || state == .waiting ? fail(.connection) : unfitting
  }

  // MARK: - Decisions

  /// The answer to a fact that does not fit the state. A reader that gets it makes no further call.
  private var unfitting: Action { .finish }

  private mutating func connect() -> Action {
    state = .connecting
    hasReceived = false
    return .connect(lastEventID: lastEventID)
  }

  private mutating func fail(_ failure: Failure) -> Action {
    state = .closed
    return .fail(failure)
  }

  private mutating func learn(_ lastEventID: String, _ milliseconds: UInt64?) {
    self.lastEventID = lastEventID
    guard let milliseconds else { return }
    reconnectionTime = max(min(.milliseconds(milliseconds), settings.serverDelayMax), serverDelayLeast)
  }

  private func serverDelay(seconds: Double) -> Duration {
    let longest = settings.serverDelayMax.seconds
    return .seconds(seconds.isNaN ? 0 : min(max(seconds, 0), longest))
  }

  private mutating func wait(
    atLeast least: Duration, _ fraction: Double, orFail failure: Failure
  ) -> Action {
    let delay = delay(atLeast: least, fraction)
    if !hasReceived {
      failureCount += 1
      if let failuresMax = settings.failuresMax, failureCount >= max(failuresMax, 1) { return fail(failure) }
    }
    hasReceived = false
    state = .waiting
    return .wait(delay)
  }

  /// Returns the delay: between half and one and a half of the reconnection time, doubled for each failure since the
  /// latest event, so that the clients of a server that restarts do not return at once. The delay is never shorter than
  /// what the server has asked for, and not longer than the maximum unless the server has asked for that much.
  private func delay(atLeast least: Duration, _ fraction: Double) -> Duration {
    let base = reconnectionTime.seconds
    let longest = max(settings.delayMax.seconds, 0)
    let doubled = Double(UInt64(1) << UInt64(min(failureCount, 40)))
    let value = min(base * doubled, max(longest, base))
    let low = max(base, value / 2, least.seconds)
    let high = low < longest ? min(max(value * 1.5, low + base / 2), longest) : low + base / 2
    let share = fraction.isNaN ? 0 : min(max(fraction, 0), 1)
    return .seconds(min(low + (high - low) * share, Self.longestSeconds))
  }
}

extension Duration {
  fileprivate var seconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }
}
