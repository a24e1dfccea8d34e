import LarkspurBytes
import Synchronization

extension TestServer {
  /// How a server answers from a recording.
  public struct Replay: Sendable {
    /// Which entries may answer a request.
    public enum Order: Hashable, Sendable {
      /// The first entry that matches and has not answered yet, or else the last one that matches.
      case anyOrder
      /// The entry that follows the one before, which has to match.
      case recordedOrder
    }

    /// When a response is sent.
    public enum Timing: Sendable {
      /// At once.
      case none
      /// After the recorded times.
      case recorded
      /// After the recorded times on a clock that the test advances.
      case clock(VirtualClock)
    }

    /// Any order by default.
    public var order = Order.anyOrder
    /// The names of the request fields that have to agree, besides method, path and query.
    public var matchedFields: [String] = []
    /// Whether the request's body has to agree.
    public var matchesBody = true
    /// At once by default.
    public var timing = Timing.none
    /// The faults, of which the first that takes the request strikes.
    public var faults: [Fault] = []

    /// Creates the defaults.
    public init() {}
  }

  /// A fault that a server lays over recorded responses.
  public struct Fault: Sendable {
    enum Kind: Hashable, Sendable {
      case cut(Int)
      case reset(Int)
      case stall(Int)
      case unavailable(retryAfter: Int?)
      case entityTag(String)
    }

    let kind: Kind
    private let path: PathPattern
    /// The number of requests that the fault strikes, or `nil` for all.
    let count: Int?

    private init(_ kind: Kind, _ path: String, _ count: Int?) {
      self.kind = kind
      self.path = PathPattern(path)
      self.count = count
    }

    func takes(_ request: Request) -> Bool { path.match(request.path) != nil }

    /// Closes the connection after this number of bytes of the response's body.
    ///
    /// - Parameters:
    ///   - count: The number of bytes. A negative number counts as 0.
    ///   - path: The pattern of the paths, as for routes. `/*` is any path.
    ///   - times: The number of requests that the fault strikes, or `nil` for all.
    public static func cut(afterBytes count: Int, path: String = "/*", times: Int? = nil) -> Self {
      Self(.cut(max(0, count)), path, times)
    }

    /// Resets the connection after this number of bytes of the response's body.
    public static func reset(afterBytes count: Int, path: String = "/*", times: Int? = nil) -> Self {
      Self(.reset(max(0, count)), path, times)
    }

    /// Sends nothing more after this number of bytes of the response's body, until the client ends its side.
    public static func stall(afterBytes count: Int, path: String = "/*", times: Int? = nil) -> Self {
      Self(.stall(max(0, count)), path, times)
    }

    /// Answers the first requests with 503, in place of the recorded response, which the next request gets.
    ///
    /// - Parameters:
    ///   - times: The number of requests that are answered with 503.
    ///   - retryAfter: The value of `Retry-After` in seconds, or `nil` for no such field.
    ///   - path: The pattern of the paths, as for routes. `/*` is any path.
    public static func unavailable(times: Int, retryAfter: Int? = nil, path: String = "/*") -> Self {
      Self(.unavailable(retryAfter: retryAfter), path, times)
    }

    /// Replaces the `ETag` of responses: the content is another version's.
    public static func entityTag(_ tag: String, path: String = "/*", times: Int? = nil) -> Self {
      Self(.entityTag(tag), path, times)
    }
  }

  /// Starts a server that answers from a recording, and has no other routes.
  ///
  /// A request is answered by an entry with its method, path and query, and, if ``Replay`` says so, body and fields.
  /// The recorded origin does not count. A redacted value of a recording agrees with any value. A request that no entry
  /// answers gets a 404 whose body names the nearest entry and the differences; ``failures`` has the same text.
  /// Recorded redirections to a recorded origin lead to this server.
  ///
  /// - Parameters:
  ///   - recording: The entries.
  ///   - replay: How the entries are chosen, and the faults.
  ///   - options: The limits of the server.
  ///   - tls: The TLS settings, or `nil` for HTTP without TLS.
  public convenience init(
    replaying recording: Recording, _ replay: Replay = Replay(), options: Options = Options(), tls: TLS? = nil
  ) throws(ListenError) {
    try self.init(options, tls: tls)
    let player = Player(recording, replay, core)
    core.replaceRoutes(by: Router.Route("*", "/*") { player.answer($0) })
  }
}

extension TestServer {
  /// A clock that stands still until a test advances it. Any thread may use a clock, and several servers may share one.
  public final class VirtualClock: Sendable {
    private struct State {
      var now = Duration.zero
      var sleeps: [(end: Duration, signal: Signal)] = []
      var sleepsSeen = 0
      var awaited: [(count: Int, signal: Signal)] = []
    }

    private let state = Mutex(State())

    /// Creates a clock that shows zero.
    public init() {}

    /// The time since the clock's start.
    public var now: Duration { state.withLock { $0.now } }

    /// Advances the clock, and ends the sleeps whose time is over.
    public func advance(by duration: Duration) {
      let over = state.withLock { state in
        state.now += duration
        let over = state.sleeps.filter { $0.end <= state.now }
        state.sleeps.removeAll { $0.end <= state.now }
        return over
      }
      for sleep in over { sleep.signal.fire() }
    }

    /// Suspends until responses have begun to wait for the clock `count` times since the clock's start.
    public func waitForSleeps(_ count: Int) async throws {
      let signal = state.withLock { state -> Signal? in
        guard state.sleepsSeen < count else { return nil }
        let signal = Signal()
        state.awaited.append((count, signal))
        return signal
      }
      try await signal?.wait()
    }

    /// Returns a signal that fires at the end of a sleep.
    func sleep(for duration: Duration) -> Signal {
      let signal = Signal()
      let begun = state.withLock { state in
        state.sleeps.append((state.now + duration, signal))
        state.sleepsSeen += 1
        let begun = state.awaited.filter { $0.count <= state.sleepsSeen }
        state.awaited.removeAll { $0.count <= state.sleepsSeen }
        return begun
      }
      for waiter in begun { waiter.signal.fire() }
      if duration <= .zero { advance(by: .zero) }
      return signal
    }
  }
}
