import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The connections of one loop. A pool performs the decisions of a `PoolMachine`, and belongs to its loop's thread.
///
/// ```swift
/// let endpoint = pool.endpoint(for: Route(host: "example.org", port: 80))
/// try await pool.cancelledWithTask { slot in
///   let running = try await pool.start(PoolRequest(head), with: endpoint, in: slot)
///   while try await running.exchange.receiveData({ ... }) {}
/// }
/// ```
///
/// A request that finds no connection is queued. The task or callback that queued it uses the connection itself, and
/// the connection is free for the next request when the `RunningExchange` is released. The pool's own tasks open the
/// connections.
///
/// Dials, connections and timers keep the pool alive, so each pool has to be shut down by `shutDown`. Performance: a
/// weak reference to the pool would make all of its reference counting slower.
public final class Pool: @unchecked Sendable {
  /// The options of a pool. `limits` are the machine's.
  public struct Options: Sendable {
    public var limits = PoolLimits()
    /// The longest time for opening a connection: looking up the name, connecting, TLS.
    public var dialMax = Duration.seconds(60)
    /// The time limits of the parts of opening a connection.
    public var timeouts = Timeouts()
    /// The upper limits of rates.
    public var rates = RateLimits()
    public var resolver = Resolver.shared
    /// The limits of responses.
    public var responseLimits = Limits()
    /// The observer of the pool's connections. If there is one, requests are not pipelined.
    public var observer: PoolObserver?

    public init() {}

    /// Checks that each option can be used.
    ///
    /// - Throws: `optionInvalid`.
    public func check() throws(TransportError) {
      try timeouts.check()
      try rates.check()
    }
  }

  /// A queued request.
  struct PendingRequest {
    enum State {
      case free
      case waiting
      case running(PoolMachine.ConnectionID)
      indirect case failed(TransportError)
    }

    enum Waiter {
      case none
      case task(TaskContinuation)
      case callback(any LoopCallback)
    }

    var state = State.free
    var id: PoolMachine.RequestID?
    var waiter = Waiter.none
    /// The record of the failed dial that the request waited for.
    var failedDial: DialRecord?
    /// The number of the load, for the pool's observer.
    var task: Int?
    /// Whether a connection has been dialled for the request. Noted for an observer only.
    var hasDial = false
    var sequenceNumber: UInt64 { id?.sequenceNumber ?? 0 }
  }

  enum ConnectionSlot {
    case empty
    case dialing(Task<Void, Never>)
    case open(Connection)
  }

  struct State: ~Copyable {
    var machine: PoolMachine
    var actions: PoolMachine.Actions = []
    var endpoints: [Route: Endpoint] = [:]
    /// The endpoints by the indices of the machine's IDs.
    var endpointsByID: [Endpoint?] = []
    /// The connections by the indices of the machine's IDs.
    var connectionSlots: [ConnectionSlot] = []
    var pendingRequests: [PendingRequest] = []
    var freePendingIndices: [Int] = []
    /// The indices of `pendingRequests` by the indices of the machine's request IDs.
    var pendingByRequestID: [Int] = []
    /// The number of connections that were dialled so far.
    var dialsSeen: UInt64 = 0
    var timer: (deadline: Deadline, timer: ClientLoop.Timer)?
    /// Cancelled dials whose sockets are still open. A new dial awaits them, so that `totalMax` holds.
    var cancelledDials: [(id: PoolMachine.ConnectionID, dial: Task<Void, Never>)] = []
    /// The error and the record of the dial whose failure is being reported.
    var dialFailure: (error: TransportError, record: DialRecord)?

    init(limits: PoolLimits) { machine = PoolMachine(limits: limits) }

    /// Reports a fact to the machine, or queries it. Performance: a direct query would copy the machine.
    @inline(__always)
    mutating func decide<T>(_ fact: (inout PoolMachine, inout PoolMachine.Actions) -> T) -> T {
      fact(&machine, &actions)
    }
  }

  public let loop: ClientLoop
  let options: Options
  let loopBound: LoopBound<State>
  let rates: PoolRates

  public init(on loop: ClientLoop, options: Options = Options()) {
    self.loop = loop
    self.options = options
    rates = PoolRates(options.rates, at: loop.kernel.now())
    loopBound = LoopBound(State(limits: options.limits))
  }

  public func endpoint(for route: Route) -> Endpoint {
    loopBound.state.endpoints[route] ?? Endpoint(route)
  }

  /// The numbers of connections (including those being opened), of idle connections, and of waiting requests.
  public var counts: (connections: Int, idle: Int, waiting: Int) {
    loopBound.state.decide { machine, _ in (machine.connectionCount, machine.idleCount, machine.waitingCount) }
  }

  // MARK: - Requests

  /// Ends an exchange: adds its metrics to the slot, and releases its connection.
  @inline(__always)
  func ended(_ exchange: Exchange, _ id: PoolMachine.ConnectionID, in slot: RequestSlot) {
    ended(exchange.connection, id, exchange.number, in: slot)
    slot.end()
  }

  func ended(
    _ connection: Connection, _ id: PoolMachine.ConnectionID, _ number: UInt64?, in slot: RequestSlot
  ) {
    if slot.collectsMetrics, let number, let metrics = connection.metrics(of: number, requested: slot.requested) {
      slot.metrics.append(metrics)
    }
    slot.runsNowhere()
    if connection.isObserved { observe(connection) }
    release(connection, id, number)
  }

  /// Runs `operation` with a slot that is cancelled with the task. One slot serves any number of requests, one after
  /// another.
  public func cancelledWithTask<E: Error>(
    _ operation: (RequestSlot) async throws(E) -> Void
  ) async throws(E) {
    let slot = RequestSlot(of: self)
    let result: Result<Void, E> = await withTaskCancellationHandler {
      do throws(E) {
        return .success(try await operation(slot))
      } catch {
        return .failure(error)
      }
    } onCancel: {
      slot.cancel()
    }
    try result.get()
  }

  /// Returns a free connection, or `nil` if there is none or the demand needs more than that.
  @inline(__always)
  func take(_ endpoint: Endpoint, _ demand: PoolMachine.Demand) -> (PoolMachine.ConnectionID, sequenceNumber: UInt64)? {
    guard !demand.needsFresh, demand.sequenceNumber == nil, let endpointID = endpoint.id else { return nil }
    let now = loop.now
    let taken = loopBound.state.decide { $0.took(endpointID, isPipelinable: demand.isPipelinable, now: now, into: &$1) }
    if !loopBound.state.actions.isEmpty { perform() }
    return taken
  }

  /// Whether a request that must not be sent again has to wait, because the server may still close the connection behind
  /// its first response. See `Connection.provenAt`.
  func waitsForProof(_ request: PoolRequest, of id: PoolMachine.ConnectionID) -> Bool {
    guard !request.mayBeSentAgain, let moment = openConnection(id)?.provenAt else { return false }
    return moment > loop.now
  }

  /// Waits until the server is known to keep the connection. If the server closes it meanwhile, nothing has been sent.
  func waitForProof(
    of id: PoolMachine.ConnectionID, in slot: RequestSlot, deadline: Deadline
  ) async throws(TransportError) {
    guard let moment = openConnection(id)?.provenAt else { return }
    let timer = loop.startTimer(min(moment, deadline)) { slot.endPause() }
    await TaskContinuation.suspend { slot.pause = $0 }
    loop.stopTimer(timer)
    guard slot.isCancelled else { return }
    giveBack(id)
    throw .cancelled
  }

  /// Waits for a connection, in the queue. Takes the place of a callback that waits in the slot.
  @inline(never)
  func wait(
    for endpoint: Endpoint, _ demand: PoolMachine.Demand, in slot: RequestSlot, deadline: Deadline
  ) async throws(TransportError) -> (PoolMachine.ConnectionID, sequenceNumber: UInt64) {
    let index = if case .subscribed(let index) = slot.state { index } else { enqueue(endpoint, demand, in: slot) }
    slot.state = .queued(index)
    if case .waiting = loopBound.state.pendingRequests[index].state { await wait(index, deadline: deadline) }
    let pending = leaveQueue(index, in: slot)
    switch pending.state {
    case .running(let id):
      guard slot.isCancelled else { return (id, pending.sequenceNumber) }
      giveBack(id)
      throw .cancelled
    case .failed(let error):
      // A request that was cancelled or timed out has no failed dial, so the latest dial's peer is reported.
      if pending.failedDial == nil { slot.failedPeer = endpoint.latestDial?.peer }
      throw error
    case .waiting, .free: throw .internalInconsistency
    }
  }

  /// Has a callback wait in the queue.
  ///
  /// - Returns: The result of the wait if it is over, or `waiting`.
  func wait(_ index: Int, for callback: any LoopCallback) -> PendingRequest.State {
    if case .waiting = loopBound.state.pendingRequests[index].state {
      loopBound.state.pendingRequests[index].waiter = .callback(callback)
    }
    return loopBound.state.pendingRequests[index].state
  }

  /// Ends the use of a pending request by its slot, and returns it.
  func leaveQueue(_ index: Int, in slot: RequestSlot) -> PendingRequest {
    let pending = loopBound.state.pendingRequests[index]
    if case .running = pending.state { slot.leftQueue() }
    if let dial = pending.failedDial {
      slot.failedPeer = dial.peer
      if slot.collectsMetrics {
        var metrics = ExchangeMetrics(requested: slot.requested)
        metrics.opening = dial.finished()
        slot.metrics.append(metrics)
      }
    }
    slot.state = .started
    loopBound.state.pendingRequests[index] = PendingRequest()
    loopBound.state.freePendingIndices.append(index)
    return pending
  }

  /// Returns the endpoint that a queued request waits for, and the latest moment at which it waited for a connection that
  /// other requests use.
  ///
  /// - Returns: `nil` if the request does not wait any more.
  func wait(of index: Int) -> (endpoint: Endpoint, crowdedUntil: Deadline)? {
    let now = loop.now
    guard let requestID = loopBound.state.pendingRequests[index].id,
      let id = loopBound.state.decide({ machine, _ in machine.endpoint(awaitedBy: requestID) }),
      let endpoint = loopBound.state.endpointsByID[id.index]
    else { return nil }
    return (endpoint, loopBound.state.decide { machine, _ in machine.crowdedUntil(id, now: now) })
  }

  /// Withdraws a request for which a callback waits, and its result.
  func withdrawSubscription(_ index: Int, in slot: RequestSlot) {
    loopBound.state.pendingRequests[index].waiter = .none
    withdraw(index, .cancelled)
    if case .running(let id) = leaveQueue(index, in: slot).state { giveBack(id) }
  }

  /// Requests a connection from the machine.
  func enqueue(_ endpoint: Endpoint, _ demand: PoolMachine.Demand, in slot: RequestSlot) -> Int {
    let index = takePendingRequest()
    loopBound.state.pendingRequests[index].task = slot.task
    let (endpointID, now) = (id(of: endpoint), loop.now)
    let requestID = loopBound.state.decide { $0.requested(endpointID, demand, now: now, into: &$1) }
    guard let requestID else {
      loopBound.state.pendingRequests[index].state = .failed(.internalInconsistency)
      return index
    }
    loopBound.state.pendingRequests[index].state = .waiting
    loopBound.state.pendingRequests[index].id = requestID
    while loopBound.state.pendingByRequestID.count <= requestID.index { loopBound.state.pendingByRequestID.append(0) }
    loopBound.state.pendingByRequestID[requestID.index] = index
    perform()
    return index
  }

  private func wait(_ index: Int, deadline: Deadline) async {
    var timer: ClientLoop.Timer?
    if deadline != .never {
      timer = loop.startTimer(deadline) { [self] in withdraw(index, .timedOut(.queueing)) }
    }
    await TaskContinuation.suspend { loopBound.state.pendingRequests[index].waiter = .task($0) }
    if let timer { loop.stopTimer(timer) }
  }

  func openConnection(_ id: PoolMachine.ConnectionID) -> Connection? {
    guard loopBound.state.decide({ machine, _ in machine.isRunning(id) }),
      case .open(let connection) = loopBound.state.connectionSlots[id.index]
    else { return nil }
    return connection
  }

  /// Removes a queued request from the queue and fails it.
  func withdraw(_ index: Int, _ error: TransportError) {
    guard case .waiting = loopBound.state.pendingRequests[index].state,
      let requestID = loopBound.state.pendingRequests[index].id
    else { return }
    loopBound.state.pendingRequests[index].state = .failed(error)
    let now = loop.now
    loopBound.state.decide { $0.cancelled(requestID, now: now, into: &$1) }
    perform()
    wake(index)
  }

  /// Cancels the operation in progress in a slot.
  func cancel(_ slot: RequestSlot) {
    slot.cancelRunning()
    slot.endWaits()
  }

  private func wake(_ index: Int) {
    let waiter = loopBound.state.pendingRequests[index].waiter
    loopBound.state.pendingRequests[index].waiter = .none
    switch waiter {
    case .none: break
    case .task(let continuation): continuation.resume()
    case .callback(let callback): loop.submit(callback, inline: false)
    }
  }

  // MARK: - Connections

  /// Releases a connection after an exchange, whatever its outcome.
  ///
  /// - Parameter number: The number of the exchange, or `nil` if the exchange was not started.
  func release(_ connection: Connection, _ id: PoolMachine.ConnectionID, _ number: UInt64?) {
    let now = loop.now
    if let number {
      connection.vacate(number)
      var outcome = connection.exchangeOutcome
      // The request ends before its turn. The connection is closed when that turn comes, so no further requests may be
      // queued on it.
      if connection.isBehind(number) { outcome = PoolMachine.ExchangeOutcome(isReusable: true, requestsLeft: 0) }
      loopBound.state.decide { $0.exchangeEnded(id, outcome, now: now, into: &$1) }
    } else {
      // The connection is as good for other requests as it was, unless the server has closed it meanwhile.
      connection.lookForEnd()
      let isOpen = connection.isOpen
      loopBound.state.decide { $0.connectionReturned(id, isOpen: isOpen, now: now, into: &$1) }
      noteUnused(connection, id)
    }
    perform()
    connection.wakeFollowers()
    if loopBound.state.machine.idleCount > Self.rememberingIdleMax { connection.forgetResponse() }
    if !connection.isOpen { closed(id) }
  }

  /// Releases a connection that was assigned to a request and has not been used.
  func giveBack(_ id: PoolMachine.ConnectionID) {
    if let connection = openConnection(id) { release(connection, id, nil) }
  }

  /// Opens a connection over a route for another protocol than HTTP. It is not one of the pool's connections.
  ///
  /// - Parameter deadline: The deadline for all of it.
  public func openTunnel(over route: Route, deadline: Deadline = .never) async throws(TransportError) -> Tunnel {
    await loop.leaveInlineTick()
    let connection = try await route.connect(
      by: options.resolver, on: loop, deadline: deadline, timeouts: options.timeouts, limits: options.responseLimits,
      observer: nil)
    guard let tunnel = connection.takeStream() else { throw .connectionClosed }
    return tunnel
  }

  private func dial(_ id: PoolMachine.ConnectionID, to endpoint: Endpoint) {
    let (route, loop, options) = (endpoint.route, loop, options)
    let deadline = loop.kernel.now().advanced(by: options.dialMax)
    loopBound.state.dialsSeen += 1
    let record = DialRecord(number: loopBound.state.dialsSeen, of: route)
    let observer = options.observer?.observer(of: record, for: taskAwaitingDial(of: endpoint))
    endpoint.latestDial = record
    let cancelledDials = loopBound.state.cancelledDials
    let task = Task(executorPreference: loop) { @concurrent [self] in
      await loop.leaveInlineTick()
      for former in cancelledDials { await former.dial.value }
      defer { loopBound.state.cancelledDials.removeAll { $0.id == id } }
      do throws(TransportError) {
        let connection = try await route.connect(
          by: options.resolver, on: loop, deadline: deadline, timeouts: options.timeouts,
          limits: options.responseLimits,
          observer: { event, time in
            record.note(event, at: time)
            observer?(event, time)
          })
        connection.dialRecord = record
        if connection.hasLeftProxy { record.leftProxy() }
        observe(connection)
        opened(connection, as: id)
      } catch {
        observer?(.openFailed(error), loop.kernel.now())
        failed(error, record, as: id)
      }
    }
    loopBound.state.connectionSlots[id.index] = .dialing(task)
  }

  /// Starts dials so that the endpoint has `count` connections.
  ///
  /// - Returns: All dials of the endpoint.
  func startDials(_ count: Int, of endpoint: Endpoint) -> [Task<Void, Never>] {
    let (endpointID, now) = (id(of: endpoint), loop.now)
    loopBound.state.decide { $0.prepared(endpointID, count, now: now, into: &$1) }
    perform()
    return loopBound.state.decide { machine, _ in machine.members(of: endpointID) }.compactMap { index in
      if case .dialing(let task) = loopBound.state.connectionSlots[index] { task } else { nil }
    }
  }

  private func opened(_ connection: Connection, as id: PoolMachine.ConnectionID) {
    guard loopBound.state.decide({ machine, _ in machine.isDialing(id) }) else { return connection.close() }
    guard connection.isIdle else { return failed(.connectionClosed, connection.dialRecord ?? DialRecord(), as: id) }
    loopBound.state.connectionSlots[id.index] = .open(connection)
    connection.watch(by: IdleWatch(self, id))
    if options.rates.limitsBytes { connection.limit(by: byteRates(of: id)) }
    let now = loop.now
    loopBound.state.decide { $0.dialSucceeded(id, now: now, into: &$1) }
    noteUnused(connection, id)
    perform()
  }

  /// Returns the buckets of a connection: those of its host, and those of all connections.
  private func byteRates(of id: PoolMachine.ConnectionID) -> [ByteRates] {
    let endpoint = loopBound.state.decide { machine, _ in machine.endpoint(of: id) }
      .flatMap { loopBound.state.endpointsByID[$0.index] }
    return rates.bytes(of: endpoint, at: loop.now)
  }

  /// Notes if a connection is idle before its first request.
  private func noteUnused(_ connection: Connection, _ id: PoolMachine.ConnectionID) {
    guard connection.exchangeNumber == 0 else { return }
    if loopBound.state.decide({ machine, _ in !machine.isRunning(id) }) { connection.wasKeptUnused = true }
  }

  private func failed(_ error: TransportError, _ record: DialRecord, as id: PoolMachine.ConnectionID) {
    guard loopBound.state.decide({ machine, _ in machine.isDialing(id) }) else { return }
    loopBound.state.connectionSlots[id.index] = .empty
    record.failure = error
    loopBound.state.dialFailure = (error, record)
    let now = loop.now
    let isOurs = if case .unavailable = error { true } else { false }
    loopBound.state.decide { $0.dialFailed(id, isOurs: isOurs, now: now, into: &$1) }
    perform()
    loopBound.state.dialFailure = nil
  }

  /// Handles input on an idle connection.
  fileprivate func becameReadable(_ id: PoolMachine.ConnectionID) {
    guard loopBound.state.decide({ machine, _ in machine.isPresent(id) }),
      case .open(let connection) = loopBound.state.connectionSlots[id.index],
      connection.isIdle
    else { return }
    connection.lookForEnd()
    if !connection.isIdle { closed(id) }
  }

  /// Handles the end of an idle connection: the server has closed it, or sent unsolicited bytes.
  private func closed(_ id: PoolMachine.ConnectionID) {
    guard loopBound.state.decide({ machine, _ in machine.isPresent(id) }) else { return }
    loopBound.state.connectionSlots[id.index] = .empty
    let now = loop.now
    loopBound.state.decide { $0.connectionClosed(id, now: now, into: &$1) }
    perform()
  }

  /// Closes the idle connections. Connections that are in use or being opened serve no requests beyond those that use
  /// them or wait for them.
  public func renewConnections() {
    loopBound.state.decide { $0.connectionsOutdated(into: &$1) }
    perform()
  }

  /// Closes the idle connections and the dials, fails the waiting requests, and refuses new ones. Running exchanges end
  /// by themselves.
  public func shutDown() {
    loopBound.state.decide { $0.shutDown(into: &$1) }
    perform()
    stopTimer()
  }

  /// Maximum number of idle connections that keep the memory of their latest response. Beyond it, a released connection
  /// gives that memory back.
  private static let rememberingIdleMax = 64

  // MARK: - Decisions

  private func perform() {
    // Tasks and callbacks that are resumed here run later, so they add no actions to this list.
    var index = 0
    while index < loopBound.state.actions.count {
      perform(loopBound.state.actions[index])
      index += 1
    }
    // Performance: removing one by one keeps the storage, and does not query its capacity.
    while !loopBound.state.actions.isEmpty { loopBound.state.actions.removeLast() }
    let deadline = loopBound.state.decide { machine, _ in machine.timer }
    guard deadline < loopBound.state.timer?.deadline ?? .never else { return }
    stopTimer()
    loopBound.state.timer = (deadline, loop.startTimer(deadline) { [self] in timerFired() })
  }

  private func stopTimer() {
    guard let timer = loopBound.state.timer else { return }
    loopBound.state.timer = nil
    loop.stopTimer(timer.timer)
  }

  private func timerFired() {
    stopTimer()
    let now = loop.now
    loopBound.state.decide { $0.timerFired(now: now, into: &$1) }
    perform()
  }

  private func perform(_ action: PoolMachine.Action) {
    switch action {
    case .run(let requestID, let id): settle(requestID, .running(id))
    case .fail(let requestID, let failure):
      loopBound.state.pendingRequests[loopBound.state.pendingByRequestID[requestID.index]].failedDial =
        loopBound.state.dialFailure?.record
      settle(requestID, .failed(transportError(failure)))
    case .dial(let id, let endpoint):
      while loopBound.state.connectionSlots.count <= id.index { loopBound.state.connectionSlots.append(.empty) }
      guard let endpoint = loopBound.state.endpointsByID[endpoint.index] else { return }
      dial(id, to: endpoint)
    case .close(let id):
      let connectionSlot = loopBound.state.connectionSlots[id.index]
      loopBound.state.connectionSlots[id.index] = .empty
      switch connectionSlot {
      case .open(let connection): connection.close()
      case .dialing(let task):
        task.cancel()
        loopBound.state.cancelledDials.append((id, task))
      case .empty: break
      }
    case .forget(let id):
      guard let endpoint = loopBound.state.endpointsByID[id.index] else { return }
      loopBound.state.endpointsByID[id.index] = nil
      endpoint.id = nil
      loopBound.state.endpoints[endpoint.route] = nil
    }
  }

  private func settle(_ requestID: PoolMachine.RequestID, _ end: PendingRequest.State) {
    let index = loopBound.state.pendingByRequestID[requestID.index]
    loopBound.state.pendingRequests[index].state = end
    wake(index)
  }

  private func transportError(_ failure: PoolMachine.Failure) -> TransportError {
    switch failure {
    case .dialFailed: loopBound.state.dialFailure?.error ?? .internalInconsistency
    case .tooManyWaiting: .tooManyWaiting
    case .closed: .localMisuse(.poolShutDown)
    }
  }

  // MARK: - Books

  private func id(of endpoint: Endpoint) -> PoolMachine.EndpointID {
    if let id = endpoint.id { return id }
    // Another endpoint for this route may have been created since the machine dropped this one.
    if let id = loopBound.state.endpoints[endpoint.route]?.id { return id }
    let id = loopBound.state.machine.addEndpoint()
    endpoint.id = id
    loopBound.state.endpoints[endpoint.route] = endpoint
    while loopBound.state.endpointsByID.count <= id.index { loopBound.state.endpointsByID.append(nil) }
    loopBound.state.endpointsByID[id.index] = endpoint
    return id
  }

  private func takePendingRequest() -> Int {
    if let index = loopBound.state.freePendingIndices.popLast() { return index }
    loopBound.state.pendingRequests.append(PendingRequest())
    return loopBound.state.pendingRequests.count - 1
  }
}

/// Watches an idle connection for its pool.
private final class IdleWatch: ChannelWatcher {
  private let pool: Pool
  private let id: PoolMachine.ConnectionID

  init(_ pool: Pool, _ id: PoolMachine.ConnectionID) {
    self.pool = pool
    self.id = id
  }

  func becameReadable() { pool.becameReadable(id) }
}
