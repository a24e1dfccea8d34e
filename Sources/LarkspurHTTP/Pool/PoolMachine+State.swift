import LarkspurBytes

/// The state of one connection and of one endpoint.
extension PoolMachine {
  enum Phase {
    case gone
    case dialing
    case idle
    case running
  }

  struct Connection {
    var generation: UInt32 = 0
    var phase = Phase.gone
    var endpoint = 0
    /// Index in the endpoint's `members`.
    var member = 0
    var inFlight = 0
    /// Whether another request may be pipelined behind each request in flight.
    var isPipelinable = false
    /// Whether an exchange has ended on this connection. A connection that an exchange leaves unusable is closed at
    /// once, so the server has kept every proven connection alive at least once.
    var isProven = false
    var requestsLeft = 0
    var servesUntil = Deadline.never
    var idleUntil = Deadline.never
    /// How long the connection may be idle: the smaller of the pool's limit and the server's.
    var idleNanoseconds: UInt64 = 0
    /// The sequence number of the next new request when the dial started. Requests with a smaller one are older than
    /// the dial.
    var dialedBefore: UInt64 = 0
    /// Whether a connection that is still being opened may serve at most one request, which has to be waiting when the
    /// dial succeeds.
    var servesOnce = false
    /// Since when the dial is orphaned, which means that no request waits for it. `nil` otherwise.
    var orphanedSince: Deadline?

    var isOrphaned: Bool { orphanedSince != nil }

    /// Counts a request that starts on the connection.
    mutating func started(_ isPipelinable: Bool) {
      self.isPipelinable = isPipelinable && (inFlight == 0 || self.isPipelinable)
      phase = .running
      inFlight += 1
      if requestsLeft != .max, requestsLeft > 0 { requestsLeft -= 1 }
    }

    /// Counts a request that has ended.
    ///
    /// - Returns: The index of the endpoint.
    mutating func ended() -> Int {
      inFlight -= 1
      isProven = true
      return endpoint
    }

    /// Makes the connection idle.
    ///
    /// - Returns: When its idle time ends.
    mutating func rests(from now: Deadline) -> Deadline {
      phase = .idle
      idleUntil = min(now.advanced(byNanoseconds: idleNanoseconds), servesUntil)
      return idleUntil
    }
  }

  struct Endpoint {
    var generation: UInt32 = 0
    var isUsed = false
    /// Indices of all connections to the endpoint.
    var members: [Int] = []
    var dialing = 0
    /// Number of orphaned dials, which are included in `dialing`.
    var orphanedCount = 0
    /// Idle connections, the latest to become idle last. May hold connections that have been closed since.
    var idle: [ConnectionID] = []
    var idleCount = 0
    var waiting = PoolQueue()
    var freshWaiting = PoolQueue()
    /// After a failed dial, no connection is opened before this moment as long as the endpoint has other connections.
    /// Requests for a fresh connection are exempt.
    var dialsAfter = Deadline(nanoseconds: 0)
    /// Number of dial failures in a row without another dial in progress. A dial that succeeds, and an exchange that
    /// leaves its connection reusable, reset the number.
    var failedDials = 0
    /// Whether the endpoint needs a connection and waits for `totalMax` to allow one.
    var isStalled = false

    /// The latest moment before the current one at which the endpoint was crowded.
    var crowdedUntil = Deadline(nanoseconds: 0)

    var waitingCount: Int { waiting.count + freshWaiting.count }

    /// Whether the waiting requests wait for connections that other requests use: there is not a dial for each of them,
    /// and dials are not all that the endpoint has.
    var isCrowded: Bool { waitingCount > dialing && (dialing == 0 || members.count > dialing + idleCount) }

    /// Call before each change of the counts that `isCrowded` reads.
    mutating func noteCrowd(_ now: Deadline) {
      if isCrowded { crowdedUntil = now }
    }

    mutating func rests(_ connection: ConnectionID) {
      idleCount += 1
      idle.append(connection)
    }
  }
}
