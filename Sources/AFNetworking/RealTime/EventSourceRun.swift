import Foundation
import Larkspur
import Synchronization

/// One opening of an event source, from `open()` to its end. A task reads the events of a `URLSessionEventSource`,
/// which connects as often as that takes.
///
/// ```
///   start -> [connecting -> open -> event ... -> connecting -> ...] -> closed | failed
/// ```
///
/// The run retains the `AFEventSource` until the end. `URLSessionEventSource` does not report that a connection has
/// opened. Its state changes only in the reader's task, so the run looks at the state after each step of that task:
/// `StepExecutor`. The task's steps find their run in `current`, which the session's delegate reads when a task for a
/// connection is created.
///
/// Locks: the run's lock may be taken while that of the `AFEventSource` is held, and not the other way round.
final class EventSourceRun: Sendable {
  /// The run that the current Swift task reads for.
  @TaskLocal static var current: EventSourceRun?

  /// The program has changed the interval. Thrown before the next connection, which needs a new configuration.
  private struct IntervalChanged: Error {}

  private struct Details {
    var owner: AFEventSource?
    var source: URLSessionEventSource?
    var reader: Task<Void, Never>?
    var isOver = false
    /// Whether the program has ended the run.
    var isClosed = false
    var lastEventID: String?
    var interval: Duration
    /// Number of connections that have been begun.
    var connectionCount = 0
    /// The number of the connection that has been reported as open.
    var reportedConnection = 0
    /// The task of the latest connection.
    var task: URLSessionTask?
    var record: TaskRecord?
    /// The latest response of earlier connections.
    var response: HTTPURLResponse?

    var latestResponse: HTTPURLResponse? { task?.response as? HTTPURLResponse ?? response }

    /// The ID to resume from. A server can take an ID back.
    var resumptionID: String? {
      if let source { source.lastEventID } else { lastEventID }
    }
  }

  private let request: URLRequest
  private let route: EventSourceRoute
  private let details: Mutex<Details>

  /// - Parameter lastEventID: The ID to resume from, or `nil`.
  init(of owner: AFEventSource, _ route: EventSourceRoute, lastEventID: String?) {
    request = owner.request
    self.route = route
    details = Mutex(Details(owner: owner, lastEventID: lastEventID, interval: Self.defaultInterval))
  }

  // MARK: - State

  var isOver: Bool { details.withLock { $0.isOver } }

  var isClosed: Bool { details.withLock { $0.isClosed } }

  var state: URLSessionEventSource.ReadyState {
    let (source, isOver) = details.withLock { ($0.source, $0.isOver) }
    if isOver { return .closed }
    return source?.readyState == .open ? .open : .connecting
  }

  var lastEventID: String? { details.withLock { $0.resumptionID } }

  var lastResponse: HTTPURLResponse? { details.withLock { $0.latestResponse } }

  // MARK: - Beginning and end

  /// Starts to read, unless the run has been closed already.
  func start() {
    guard let owner = details.withLock({ $0.owner }) else { return }
    let interval = Self.interval(of: owner)
    let executor = StepExecutor { [weak self] in self?.stepEnded() }
    details.withLock { details in
      guard !details.isOver else { return }
      details.interval = interval
      details.source = source(interval, details.lastEventID)
      details.reader = Task(executorPreference: executor) { @concurrent in
        await EventSourceRun.$current.withValue(self) { await self.read() }
        // The executor has to live as long as the task.
        withExtendedLifetime(executor) {}
      }
    }
  }

  /// Ends the run, and reports that to the `AFEventSource`.
  ///
  /// - Returns: `false` if the run has ended before.
  func close() -> Bool {
    guard let owner = end(byProgram: true) else { return false }
    owner.ended(nil)
    return true
  }

  private func finish(_ error: (any Error)?) {
    let failure = failure(behind: error)
    end()?.ended(failure)
  }

  /// - Returns: The owner, or `nil` if the run has ended before.
  @discardableResult
  private func end(byProgram: Bool = false) -> AFEventSource? {
    let old = details.withLock { details -> Details in
      let old = details
      details.isOver = true
      if byProgram { details.isClosed = true }
      details.response = old.latestResponse
      details.lastEventID = old.resumptionID
      details.owner = nil
      details.source = nil
      details.reader = nil
      details.task = nil
      details.record = nil
      return old
    }
    // The source first: a reader that finds itself cancelled and the source closed ends without an error.
    old.source?.close()
    old.reader?.cancel()
    return old.owner
  }

  /// Returns the error to report. If a manager's security policy has refused the connection, the manager's record of
  /// the task holds the reason.
  private func failure(behind error: (any Error)?) -> (any Error)? {
    guard let error else { return nil }
    let record = details.withLock { details -> TaskRecord? in
      if let response = (error as? URLError)?.failingResponse as? HTTPURLResponse, details.task == nil {
        details.response = response
      }
      return details.record
    }
    var cause: (any Error)?
    record?.change { cause = $0.failure }
    return cause ?? error
  }

  // MARK: - Reading

  private func read() async {
    while let source = details.withLock({ $0.source }) {
      do {
        for try await event in source.events {
          stepEnded()
          guard let owner = details.withLock({ $0.owner }) else { return }
          await owner.received(event, by: self)
        }
        return finish(nil)
      } catch is IntervalChanged {
        guard let interval = replaceSource() else { return }
        // Cancelled when the run ends.
        try? await Task.sleep(for: interval)
      } catch {
        return finish(error)
      }
    }
  }

  /// Creates the source with which the run continues after a change of the interval.
  ///
  /// - Returns: The new interval, or `nil` if the run has ended.
  private func replaceSource() -> Duration? {
    guard let owner = details.withLock({ $0.owner }) else { return nil }
    let interval = Self.interval(of: owner)
    let (isOver, old) = details.withLock { details -> (Bool, URLSessionEventSource?) in
      guard !details.isOver else { return (true, nil) }
      details.interval = interval
      let lastEventID = details.resumptionID
      let next = source(interval, lastEventID)
      details.lastEventID = lastEventID
      return (false, exchange(&details.source, with: next))
    }
    withExtendedLifetime(old) {}
    return isOver ? nil : interval
  }

  private func source(_ interval: Duration, _ lastEventID: String?) -> URLSessionEventSource {
    var configuration = URLSessionEventSource.Configuration()
    configuration.reconnectionTime = interval
    configuration.reconnectionTimeMax = max(configuration.reconnectionTimeMax, interval)
    configuration.lastEventID = lastEventID
    configuration.prepare = { [weak self] _ in try self?.connectionBegins() }
    configuration.wait = { [weak self] delay in try await self?.wait(delay) }
    return URLSessionEventSource(request: request, session: route.session, configuration: configuration)
  }

  private func connectionBegins() throws {
    try route.check()
    details.withLock { $0.connectionCount &+= 1 }
  }

  private func wait(_ delay: Duration) async throws {
    let (owner, interval) = details.withLock { ($0.owner, $0.interval) }
    guard let owner else { throw CancellationError() }
    guard Self.interval(of: owner) == interval else { throw IntervalChanged() }
    try await Task.sleep(for: delay)
  }

  // MARK: - Connections

  /// Notes a task that the session has created for this run.
  ///
  /// - Parameter record: The manager's record of the task.
  func created(_ task: URLSessionTask, _ record: TaskRecord? = nil) {
    let old = details.withLock { details -> (URLSessionTask?, TaskRecord?) in
      // While an event is read, a serializer of the program may create tasks.
      guard details.source?.readyState == .connecting else { return (nil, nil) }
      details.response = details.latestResponse
      return (exchange(&details.task, with: task), exchange(&details.record, with: record))
    }
    withExtendedLifetime(old) {}
  }

  /// Reports a connection that has opened, once. Called after each step of the reader, and before each event.
  private func stepEnded() {
    let owner = details.withLock { details -> AFEventSource? in
      guard details.reportedConnection != details.connectionCount, details.source?.readyState == .open else {
        return nil
      }
      details.reportedConnection = details.connectionCount
      return details.owner
    }
    owner?.opened(by: self)
  }

  // MARK: - Intervals

  private static let defaultInterval = Duration.seconds(3)

  /// Maximum interval, in seconds: one day.
  private static let intervalSecondsMax: TimeInterval = 86_400

  private static func interval(of owner: AFEventSource) -> Duration {
    let seconds = owner.retryInterval
    return seconds.isNaN ? defaultInterval : .seconds(min(max(seconds, 0), intervalSecondsMax))
  }
}
