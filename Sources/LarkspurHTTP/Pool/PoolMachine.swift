import LarkspurBytes

/// Decides which request goes over which connection, when connections are opened, and when they are closed.
///
/// Theory of operation. Connections belong to endpoints: any difference that may make two connections unequal makes two
/// endpoints. A request takes the endpoint's connection that became idle last. If there is none, the request waits, and
/// the pool opens a connection as far as the limits allow. Connections and requests are not tied to each other: the
/// connection that becomes free first serves the waiting request of the highest priority, the oldest among equals, and
/// a connection that opens when no request needs it any more is kept for the next one.
///
/// ```
///  a request:     requested --> waiting --run--> running --exchangeEnded--> gone
///                                 |  ^              |
///                cancelled, fail  |  +-- requested, in its old position: the connection turned out to be dead
///                                 v
///                                gone
///
///  a connection:  dialing --dialSucceeded--> running(n) <--> idle --connectionClosed, timerFired--> gone
///                    |                          |
///                    +--dialFailed--> gone      +--exchangeEnded(not reusable)--> gone
/// ```
///
/// When a dial fails, no request fails as long as another dial to the endpoint is in progress: that dial decides. When
/// the last dial fails, the requests fail that were queued before it started. While the endpoint has other connections,
/// which may serve the queue, only the requests for a fresh connection fail at once; the others fail after
/// `dialFailuresMax` failures in a row. Failures due to a lack of descriptors or memory on this machine do not count
/// among these.
///
/// The machine does not depend on hosts, bytes, sockets or the clock. Invariants: a request that waits gets one `run`
/// or one `fail`, unless it is cancelled before; a connection gets exactly one `close` unless it reported its end
/// itself; limits hold after each fact; an endpoint without connections and without waiting requests is dropped.
public struct PoolMachine: Sendable {
  private let limits: PoolLimits
  private let idleNanosecondsMax: UInt64
  private var requestTable = PoolRequestTable()
  var connections: [Connection] = []
  private var freeConnections: [Int] = []
  var endpoints: [Endpoint] = []
  private var freeEndpoints: [Int] = []
  private var stalled: [Int] = []
  private var nextSequenceNumber: UInt64 = 0
  private var isClosed = false

  /// Number of connections to all endpoints, including those being opened.
  public private(set) var connectionCount = 0
  public private(set) var waitingCount = 0
  public private(set) var idleCount = 0
  /// Number of orphaned dials to all endpoints.
  var orphanedCount = 0
  /// When `timerFired` is due. There may be nothing to do by then.
  public internal(set) var timer = Deadline.never

  /// Pause between a failed dial and the next one to an endpoint that has other connections. Without the pause, a
  /// dial that fails at once would be repeated all the time.
  private static let dialPause = Duration.seconds(1)

  /// Number of failed dials in a row after which waiting requests fail although other connections are running: their
  /// exchanges may never end.
  private static let dialFailuresMax = 5

  public init(limits: PoolLimits = PoolLimits()) {
    var limits = limits
    // A limit below one would let no request through.
    limits.perEndpointMax = max(limits.perEndpointMax, 1)
    limits.totalMax = max(limits.totalMax, 1)
    limits.requestsMax = max(limits.requestsMax, 1)
    self.limits = limits
    idleNanosecondsMax = limits.idleMax.wholeNanoseconds
  }

  public mutating func addEndpoint() -> EndpointID {
    let index = freeEndpoints.popLast() ?? endpoints.count
    if index == endpoints.count { endpoints.append(Endpoint()) }
    endpoints[index].generation &+= 1
    endpoints[index].isUsed = true
    return EndpointID(index: index, generation: endpoints[index].generation)
  }

  // MARK: - Requests

  /// Gives the request a connection, or queues it.
  ///
  /// - Returns: The ID that the request's `run` or `fail` action names, or `nil` if the endpoint has been dropped.
  public mutating func requested(
    _ endpoint: EndpointID, _ demand: Demand, now: Deadline, into actions: inout Actions
  ) -> RequestID? {
    let index = endpoint.index
    guard isUsed(endpoint) else { return nil }
    let requestID = requestTable.issue(sequenceNumber: demand.sequenceNumber ?? nextSequenceNumber)
    if demand.sequenceNumber == nil { nextSequenceNumber += 1 }
    guard !isClosed else {
      fail(requestID, .closed, &actions)
      forgetIfUnused(index, &actions)
      return requestID
    }
    if !demand.needsFresh, let connection = takeFree(of: index, demand.isPipelinable, now, &actions) {
      requestTable.release(requestID)
      actions.append(.run(requestID, on: id(connection)))
      return requestID
    }
    guard waitingCount < limits.waitingMax else {
      fail(requestID, .tooManyWaiting, &actions)
      forgetIfUnused(index, &actions)
      return requestID
    }
    wait(requestID, at: index, demand)
    settle(index, now, &actions)
    return requestID
  }

  /// Starts a request on an idle connection, if there is one and no other request waits for it.
  ///
  /// Performance: most requests find an idle connection, and this path needs neither an ID nor an action.
  ///
  /// - Returns: The connection and the request's sequence number, which is `Demand.sequenceNumber` if the request has
  ///   to be repeated; or `nil` if the request has to wait: then call `requested(_:_:now:into:)`.
  public mutating func took(
    _ endpoint: EndpointID, isPipelinable: Bool, now: Deadline, into actions: inout Actions
  ) -> (id: ConnectionID, sequenceNumber: UInt64)? {
    let index = endpoint.index
    guard isUsed(endpoint), !isClosed, let connection = takeFree(of: index, isPipelinable, now, &actions)
    else { return nil }
    nextSequenceNumber += 1
    return (id(connection), nextSequenceNumber - 1)
  }

  /// Dials connections that no request needs yet, so that the endpoint has `count`, as far as the limits allow. No other
  /// connection is closed for them.
  public mutating func prepared(_ endpoint: EndpointID, _ count: Int, now: Deadline, into actions: inout Actions) {
    guard !isClosed, isUsed(endpoint) else { return }
    while endpoints[endpoint.index].members.count < min(count, limits.perEndpointMax), connectionCount < limits.totalMax
    {
      dial(endpoint.index, &actions)
    }
    markOrphaned(of: endpoint.index, now)
    forgetIfUnused(endpoint.index, &actions)
  }

  /// Withdraws a waiting request.
  public mutating func cancelled(_ requestID: RequestID, now: Deadline, into actions: inout Actions) {
    guard let (index, needsFresh) = requestTable.withdraw(requestID) else { return }
    endpoints[index].noteCrowd(now)
    waitingCount -= 1
    if needsFresh {
      endpoints[index].freshWaiting.withdrew(requestTable)
    } else {
      endpoints[index].waiting.withdrew(requestTable)
    }
    markOrphaned(of: index, now, &actions)
    forgetIfUnused(index, &actions)
  }

  // MARK: - Connections

  public mutating func dialSucceeded(_ id: ConnectionID, now: Deadline, into actions: inout Actions) {
    guard isPresent(id, .dialing) else { return }
    endpoints[connections[id.index].endpoint].noteCrowd(now)
    let endpoint = dialEnded(id.index)
    endpoints[endpoint].failedDials = 0
    connections[id.index].requestsLeft = connections[id.index].servesOnce ? 0 : limits.requestsMax
    connections[id.index].idleNanoseconds = idleNanosecondsMax
    connections[id.index].servesUntil = limits.ageMax.map(now.advanced) ?? .never
    endpoints[endpoint].dialsAfter = now
    if let request = endpoints[endpoint].freshWaiting.take(requestTable)
      ?? endpoints[endpoint].waiting.take(requestTable)
    {
      runWaiting(request, on: id.index, &actions)
    } else {
      becameFree(id.index, now, &actions)
    }
    settle(endpoint, now, &actions)
    if orphanedCount > 0 { roomWasMade(now, &actions) }
  }

  /// The connection could not be opened.
  ///
  /// - Parameter isOurs: Whether this machine is out of descriptors or memory, so that a dial to any other endpoint
  ///   would have failed as well.
  public mutating func dialFailed(
    _ id: ConnectionID, isOurs: Bool = false, now: Deadline, into actions: inout Actions
  ) {
    guard isPresent(id, .dialing) else { return }
    endpoints[connections[id.index].endpoint].noteCrowd(now)
    let before = connections[id.index].dialedBefore
    let endpoint = dialEnded(id.index)
    remove(id.index)
    // An idle connection may hold the descriptor or the memory that the dial lacked.
    if isOurs, endpoints[endpoint].waitingCount > 0, evictIdle(&actions) {
      return settle(endpoint, now, &actions)
    }
    if isServed(endpoint, now) { endpoints[endpoint].dialsAfter = now.advanced(by: Self.dialPause) }
    if dialsCounted(endpoint, now) == 0 {
      // Dials that run at the same time count as one failure. A shortage on this machine says nothing about the host.
      if !isOurs { endpoints[endpoint].failedDials += 1 }
      var lost = endpoints[endpoint].freshWaiting.takeAll(before: before, requestTable)
      // Running connections will serve the waiting requests, unless their exchanges never end.
      if !isServed(endpoint, now) || endpoints[endpoint].failedDials >= Self.dialFailuresMax {
        lost += endpoints[endpoint].waiting.takeAll(before: before, requestTable)
      }
      waitingCount -= lost.count
      for request in lost { fail(request.id, .dialFailed, &actions) }
      settle(endpoint, now, &actions)
    }
    roomWasMade(now, &actions)
    forgetIfUnused(endpoint, &actions)
  }

  /// One of the connection's exchanges has ended.
  public mutating func exchangeEnded(
    _ id: ConnectionID, _ outcome: ExchangeOutcome, now: Deadline, into actions: inout Actions
  ) {
    guard isPresent(id, .running) else { return }
    let endpoint = connections[id.index].ended()
    endpoints[endpoint].noteCrowd(now)
    if outcome.isReusable { endpoints[endpoint].failedDials = 0 }
    if let idle = outcome.idle {
      connections[id.index].idleNanoseconds = min(idle.wholeNanoseconds, idleNanosecondsMax)
    }
    if let left = outcome.requestsLeft, left < connections[id.index].requestsLeft {
      connections[id.index].requestsLeft = left
    }
    guard outcome.isReusable else { return retire(id, now, &actions) }
    requestLeft(id.index, of: endpoint, now, &actions)
  }

  /// A request gave its connection back before it was sent, because it was cancelled or has to wait.
  ///
  /// Says nothing about the server: a connection that has served no exchange stays unproven, so that no request is
  /// pipelined on it. The request still counts as one of the connection's `requestsMax`.
  ///
  /// - Parameter isOpen: Whether the connection is still open. If not, the machine closes it.
  public mutating func connectionReturned(
    _ id: ConnectionID, isOpen: Bool, now: Deadline, into actions: inout Actions
  ) {
    guard isPresent(id, .running) else { return }
    endpoints[connections[id.index].endpoint].noteCrowd(now)
    connections[id.index].inFlight -= 1
    guard isOpen else { return retire(id, now, &actions) }
    requestLeft(id.index, of: connections[id.index].endpoint, now, &actions)
  }

  /// The server closed an idle or running connection, or the connection broke.
  public mutating func connectionClosed(_ id: ConnectionID, now: Deadline, into actions: inout Actions) {
    guard isPresent(id, .idle) || isPresent(id, .running) else { return }
    let endpoint = connections[id.index].endpoint
    endpoints[endpoint].noteCrowd(now)
    remove(id.index)
    settle(endpoint, now, &actions)
    roomWasMade(now, &actions)
    forgetIfUnused(endpoint, &actions)
  }

  /// Closes connections whose idle time or age is over and dials that have been orphaned for too long, and repeats
  /// dials that were put off.
  public mutating func timerFired(now: Deadline, into actions: inout Actions) {
    guard timer <= now else { return }
    timer = .never
    for index in connections.indices {
      let connection = connections[index]
      switch connection.phase {
      case .idle where connection.idleUntil <= now: closeIdle(index, &actions)
      case .idle: timer = min(timer, connection.idleUntil)
      case .dialing: growOld(index, now, &actions)
      case .running, .gone: continue
      }
    }
    if waitingCount > 0 {
      for index in endpoints.indices where endpoints[index].isUsed {
        endpoints[index].noteCrowd(now)
        settle(index, now, &actions)
      }
    }
    roomWasMade(now, &actions)
  }

  /// Closes the idle connections of all endpoints. Running connections finish their requests and take no further one.
  /// Connections that are being opened serve at most one request, which has to be waiting when the dial succeeds.
  public mutating func connectionsOutdated(into actions: inout Actions) {
    for index in connections.indices {
      switch connections[index].phase {
      case .idle: closeIdle(index, &actions)
      case .dialing: connections[index].servesOnce = true
      case .running: connections[index].requestsLeft = 0
      case .gone: continue
      }
    }
  }

  /// Shuts the pool down: fails the waiting requests, and closes idle connections and those being opened. Running
  /// connections finish their requests. Later requests fail with `Failure.closed`.
  public mutating func shutDown(into actions: inout Actions) {
    isClosed = true
    for index in endpoints.indices where endpoints[index].isUsed {
      let waiting =
        endpoints[index].freshWaiting.takeAll(before: .max, requestTable)
        + endpoints[index].waiting.takeAll(before: .max, requestTable)
      waitingCount -= waiting.count
      for request in waiting { fail(request.id, .closed, &actions) }
    }
    for index in connections.indices {
      switch connections[index].phase {
      case .idle: close(index, &actions)
      case .dialing:
        _ = dialEnded(index)
        close(index, &actions)
      case .running: connections[index].requestsLeft = 0
      case .gone: continue
      }
    }
    timer = .never
    for index in endpoints.indices { forgetIfUnused(index, &actions) }
  }

  public func isDialing(_ id: ConnectionID) -> Bool { isPresent(id, .dialing) }

  public func isRunning(_ id: ConnectionID) -> Bool { isPresent(id, .running) }

  /// Returns the endpoint that a request waits for, or `nil` if it does not wait.
  public func endpoint(awaitedBy requestID: RequestID) -> EndpointID? {
    requestTable.endpoint(awaitedBy: requestID).map { EndpointID(index: $0, generation: endpoints[$0].generation) }
  }

  private func isUsed(_ endpoint: EndpointID) -> Bool {
    let index = endpoint.index
    return endpoints.indices.contains(index) && endpoints[index].generation == endpoint.generation
      && endpoints[index].isUsed
  }

  /// Returns the indices of an endpoint's connections, including those being opened.
  public func members(of endpoint: EndpointID) -> [Int] { isUsed(endpoint) ? endpoints[endpoint.index].members : [] }

  /// Returns the endpoint of a connection that is present.
  public func endpoint(of id: ConnectionID) -> EndpointID? {
    guard isPresent(id) else { return nil }
    let index = connections[id.index].endpoint
    return EndpointID(index: index, generation: endpoints[index].generation)
  }

  /// Returns the latest moment at which the endpoint's waiting requests waited for connections that other requests use,
  /// and not for connections that are being opened for them: `now` if they do so.
  public func crowdedUntil(_ endpoint: EndpointID, now: Deadline) -> Deadline {
    endpoints[endpoint.index].isCrowded ? now : endpoints[endpoint.index].crowdedUntil
  }

  /// Whether the connection exists: it is being opened, idle or running.
  public func isPresent(_ id: ConnectionID) -> Bool {
    connections.indices.contains(id.index) && connections[id.index].generation == id.generation
      && connections[id.index].phase != .gone
  }

  // MARK: - Matching

  /// Gives free connections to waiting requests, and dials the connections that are missing.
  private mutating func settle(_ endpoint: Int, _ now: Deadline, _ actions: inout Actions) {
    guard !isClosed else { return }
    while let request = endpoints[endpoint].waiting.peek(requestTable),
      let connection = takeIdle(of: endpoint, now, &actions)
        ?? (mayDial(endpoint, now) ? nil : takeRunning(of: endpoint, for: request, now))
    {
      _ = endpoints[endpoint].waiting.take(requestTable)
      runWaiting(request, on: connection, &actions)
    }
    while dialsCounted(endpoint, now) < dialsNeeded(endpoint, now) {
      if endpoints[endpoint].members.count >= limits.perEndpointMax, !closeOrphaned(of: endpoint, now, &actions) {
        // Only requests for a fresh connection are left: an idle connection makes room for one.
        guard let connection = takeIdle(of: endpoint, now, &actions) else { return }
        connections[connection].phase = .running
        close(connection, &actions)
      }
      guard connectionCount < limits.totalMax || evictIdle(&actions) || closeOrphaned(for: endpoint, now, &actions)
      else { return stall(endpoint) }
      dial(endpoint, &actions)
    }
    markOrphaned(of: endpoint, now)
  }

  /// Number of dials that should be in progress.
  private mutating func dialsNeeded(_ endpoint: Int, _ now: Deadline) -> Int {
    guard isSpared(endpoint, now) else { return endpoints[endpoint].waitingCount }
    timer = min(timer, endpoints[endpoint].dialsAfter)
    return dialsCounted(endpoint, now) > 0 ? 0 : endpoints[endpoint].freshWaiting.count
  }

  private func isSpared(_ endpoint: Int, _ now: Deadline) -> Bool {
    endpoints[endpoint].dialsAfter > now && isServed(endpoint, now)
  }

  private func mayDial(_ endpoint: Int, _ now: Deadline) -> Bool {
    !isSpared(endpoint, now)
      && endpoints[endpoint].members.count
        - orphanedCount(of: endpoint, now, after: OrphanedDialAge.replaceable) < limits.perEndpointMax
      && (connectionCount < limits.totalMax || idleCount > 0)
  }

  /// Puts the endpoint on the list of those that wait for `totalMax` to allow a connection.
  mutating func stall(_ endpoint: Int) {
    guard !endpoints[endpoint].isStalled else { return }
    endpoints[endpoint].isStalled = true
    stalled.append(endpoint)
  }

  /// Serves the endpoints that wait for `totalMax`, as far as there is room now.
  mutating func roomWasMade(_ now: Deadline, _ actions: inout Actions) {
    // An endpoint that finds no room goes to the end of the list.
    var left = stalled.count
    while left > 0, !stalled.isEmpty,
      connectionCount < limits.totalMax || idleCount > 0 || !replaceableDials(now).isEmpty
    {
      left -= 1
      let endpoint = stalled.removeFirst()
      endpoints[endpoint].isStalled = false
      endpoints[endpoint].noteCrowd(now)
      settle(endpoint, now, &actions)
      forgetIfUnused(endpoint, &actions)
    }
  }

  /// Takes the endpoint's latest idle connection out of the idle list. Closes those whose idle time or age is over.
  private mutating func takeIdle(of endpoint: Int, _ now: Deadline, _ actions: inout Actions) -> Int? {
    while let id = endpoints[endpoint].idle.popLast() {
      guard isPresent(id, .idle) else { continue }
      if connections[id.index].idleUntil > now, connections[id.index].servesUntil > now {
        idleCount -= 1
        endpoints[endpoint].idleCount -= 1
        return id.index
      }
      close(id.index, &actions)
    }
    return nil
  }

  /// Returns the running connection with the fewest requests in flight, among those that may take one more by
  /// pipelining.
  private func takeRunning(of endpoint: Int, for request: PoolQueue.Request, _ now: Deadline) -> Int? {
    guard limits.pipelineDepth > 1, request.isPipelinable else { return nil }
    var best: Int?
    for index in endpoints[endpoint].members {
      let connection = connections[index]
      guard connection.phase == .running, connection.isProven, connection.isPipelinable,
        connection.inFlight < limits.pipelineDepth, connection.requestsLeft > 0, connection.servesUntil > now,
        connection.inFlight < best.map({ connections[$0].inFlight }) ?? .max
      else { continue }
      best = index
    }
    return best
  }

  /// Starts a request on an idle connection, unless other requests wait for one.
  private mutating func takeFree(
    of endpoint: Int, _ isPipelinable: Bool, _ now: Deadline, _ actions: inout Actions
  ) -> Int? {
    guard endpoints[endpoint].waiting.count == 0, let connection = takeIdle(of: endpoint, now, &actions) else {
      return nil
    }
    connections[connection].started(isPipelinable)
    return connection
  }

  private mutating func runWaiting(_ request: PoolQueue.Request, on index: Int, _ actions: inout Actions) {
    waitingCount -= 1
    connections[index].started(request.isPipelinable)
    requestTable.release(request.id)
    actions.append(.run(request.id, on: id(index)))
  }

  private mutating func fail(_ requestID: RequestID, _ failure: Failure, _ actions: inout Actions) {
    requestTable.release(requestID)
    actions.append(.fail(requestID, failure))
  }

  /// Uses the room that a request has left on a reusable connection.
  private mutating func requestLeft(_ index: Int, of endpoint: Int, _ now: Deadline, _ actions: inout Actions) {
    if connections[index].inFlight == 0 { becameFree(index, now, &actions) }
    if endpoints[endpoint].waitingCount > 0 { settle(endpoint, now, &actions) }
    if endpoints[endpoint].dialing > 0 { markOrphaned(of: endpoint, now, &actions) }
  }

  /// Gives a connection that has no request in flight to a waiting request, makes it idle, or closes it.
  private mutating func becameFree(_ index: Int, _ now: Deadline, _ actions: inout Actions) {
    let endpoint = connections[index].endpoint
    guard !isClosed, connections[index].requestsLeft > 0, connections[index].servesUntil > now else {
      connections[index].phase = .running
      return retire(id(index), now, &actions)
    }
    if endpoints[endpoint].waiting.count > 0, let request = endpoints[endpoint].waiting.take(requestTable) {
      return runWaiting(request, on: index, &actions)
    }
    let until = connections[index].rests(from: now)
    timer = min(timer, until)
    idleCount += 1
    endpoints[endpoint].rests(id(index))
    // Remove closed connections from the list once they are the majority.
    if endpoints[endpoint].idle.count > 2 * endpoints[endpoint].idleCount + 16 {
      endpoints[endpoint].idle = endpoints[endpoint].idle.filter { isPresent($0, .idle) }
    }
    if !stalled.isEmpty { roomWasMade(now, &actions) }
  }

  private mutating func dial(_ endpoint: Int, _ actions: inout Actions) {
    let index = freeConnections.popLast() ?? connections.count
    if index == connections.count { connections.append(Connection()) }
    var connection = Connection()
    connection.generation = connections[index].generation &+ 1
    connection.phase = .dialing
    connection.endpoint = endpoint
    connection.member = endpoints[endpoint].members.count
    connection.dialedBefore = nextSequenceNumber
    connections[index] = connection
    connectionCount += 1
    endpoints[endpoint].members.append(index)
    endpoints[endpoint].dialing += 1
    actions.append(
      .dial(id(index), to: EndpointID(index: endpoint, generation: endpoints[endpoint].generation)))
  }

  /// Closes a connection that takes no further request, and lets waiting requests use the room.
  private mutating func retire(_ id: ConnectionID, _ now: Deadline, _ actions: inout Actions) {
    let endpoint = connections[id.index].endpoint
    close(id.index, &actions)
    settle(endpoint, now, &actions)
    roomWasMade(now, &actions)
    forgetIfUnused(endpoint, &actions)
  }

  /// Closes the idle connection of any endpoint whose idle time ends first.
  ///
  /// - Returns: Whether a connection was closed.
  private mutating func evictIdle(_ actions: inout Actions) -> Bool {
    guard idleCount > 0 else { return false }
    var oldest: Int?
    for index in connections.indices where connections[index].phase == .idle {
      if connections[index].idleUntil < oldest.map({ connections[$0].idleUntil }) ?? .never { oldest = index }
    }
    guard let oldest else { return false }
    closeIdle(oldest, &actions)
    return true
  }

  // MARK: - Bookkeeping

  mutating func close(_ index: Int, _ actions: inout Actions) {
    actions.append(.close(id(index)))
    remove(index)
  }

  private mutating func closeIdle(_ index: Int, _ actions: inout Actions) {
    close(index, &actions)
    forgetIfUnused(connections[index].endpoint, &actions)
  }

  private mutating func remove(_ index: Int) {
    let connection = connections[index]
    if connection.phase == .idle {
      idleCount -= 1
      endpoints[connection.endpoint].idleCount -= 1
    }
    // The last member moves to the free index.
    let last = endpoints[connection.endpoint].members.removeLast()
    if last != index {
      endpoints[connection.endpoint].members[connection.member] = last
      connections[last].member = connection.member
    }
    connections[index].phase = .gone
    connections[index].generation &+= 1
    freeConnections.append(index)
    connectionCount -= 1
  }

  mutating func forgetIfUnused(_ index: Int, _ actions: inout Actions) {
    let endpoint = endpoints[index]
    guard endpoint.isUsed, endpoint.members.isEmpty, endpoint.waitingCount == 0, !endpoint.isStalled else { return }
    actions.append(.forget(EndpointID(index: index, generation: endpoint.generation)))
    var unused = Endpoint()
    unused.generation = endpoint.generation
    endpoints[index] = unused
    freeEndpoints.append(index)
  }

  private mutating func wait(_ requestID: RequestID, at endpoint: Int, _ demand: Demand) {
    requestTable.wait(requestID, at: endpoint, needsFresh: demand.needsFresh)
    waitingCount += 1
    let request = PoolQueue.Request(id: requestID, priority: demand.priority, isPipelinable: demand.isPipelinable)
    if demand.needsFresh {
      endpoints[endpoint].freshWaiting.insert(request)
    } else {
      endpoints[endpoint].waiting.insert(request)
    }
  }

  private func isPresent(_ id: ConnectionID, _ phase: Phase) -> Bool {
    isPresent(id) && connections[id.index].phase == phase
  }

  private func id(_ index: Int) -> ConnectionID {
    ConnectionID(index: index, generation: connections[index].generation)
  }
}
