import Foundation
import LarkspurHTTP

extension URLSessionEventSource {
  /// How an event source connects, and connects again.
  public struct Configuration: Sendable {
    /// How long to wait before connecting again, until the server sets another time with `retry`. 3 s by default, and
    /// at least 100 ms. A server cannot set less than 500 ms, or than this time if it is shorter.
    ///
    /// Each connection in a row that brings no event doubles the delay. The delay is spread at random between half and
    /// one and a half of this value, and is never shorter than the time that the server has set, or than this one.
    public var reconnectionTime = Duration.seconds(3)
    /// The longest delay that failures lead to. 60 s by default. A longer one that the server asks for, with `retry` or
    /// `Retry-After`, is kept, up to one hour.
    public var reconnectionTimeMax = Duration.seconds(60)
    /// The statuses after which the source connects again: 429, 500, 502, 503 and 504 by default. If the response has
    /// `Retry-After`, the source waits at least as long. Any other status than 200 and 204 ends the source with an
    /// error. The standard ends it for these five, too; for that, set an empty set.
    public var retriedStatuses: Set<Int> = EventSourceMachine.Settings().retriedStatuses
    /// The number of connections in a row without an event that ends the source with the latest one's error, or `nil`
    /// for no limit, as in the standard.
    public var failuresMax: Int?
    /// How long an open stream may be silent, comments included, before the source connects again; or `nil` for no
    /// limit, as in the standard.
    ///
    /// A server that sends a comment every 15 seconds, as the standard suggests, is best watched with 45 seconds. A
    /// connection that has died silently is not detected without this limit. The request's `timeoutInterval` does not
    /// apply to the stream: it limits the wait for the head of the response.
    public var idleTimeout: Duration?
    /// The length in bytes of the longest line that is read. 16 MiB by default. A longer one ends the source with
    /// `URLError.dataLengthExceedsMaximum`.
    public var lineBytesMax = EventStreamLimits().lineBytesMax
    /// The size in bytes of the data of the largest event that is read. 16 MiB by default. A larger one ends the source
    /// with `URLError.dataLengthExceedsMaximum`.
    public var eventBytesMax = EventStreamLimits().eventBytesMax
    /// The ID to resume from, which the first request sends in `Last-Event-ID`; or `nil` to begin with the next event.
    public var lastEventID: String?
    /// Called before each connection with the request, to change it: to refresh a token, for example. All other fields
    /// have been set, `Last-Event-ID` included. An error that it throws ends the source, and is thrown to the reader.
    ///
    /// Closing the source, and cancelling the reader, cancel the task in which this closure runs.
    public var prepare: (@Sendable (inout URLRequest) async throws -> Void)?
    /// Waits before connecting again, for tests. An error that it throws ends the source.
    ///
    /// Closing the source, and cancelling the reader, cancel the task in which this closure runs.
    public var wait: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    /// Called after a connection that has failed, or whose response has one of `retriedStatuses`, with the error and
    /// the delay before the next connection.
    package var tryFailed: (@Sendable (any Error, Duration) -> Void)?
    /// Returns a random number from 0 to 1, which spreads the delays, for tests.
    public var random: @Sendable () -> Double = { .random(in: 0...1) }

    /// Creates the default configuration.
    public init() {}

    var settings: EventSourceMachine.Settings {
      var settings = EventSourceMachine.Settings()
      settings.reconnectionTime = reconnectionTime
      settings.delayMax = reconnectionTimeMax
      settings.retriedStatuses = retriedStatuses
      settings.failuresMax = failuresMax
      return settings
    }

    var limits: EventStreamLimits {
      var limits = EventStreamLimits()
      limits.lineBytesMax = lineBytesMax
      limits.eventBytesMax = eventBytesMax
      return limits
    }
  }
}
