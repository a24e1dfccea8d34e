import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The connections of one loop: carries out what a `PoolMachine` decides. It belongs to its loop's thread.
///
/// ```swift
/// let endpoint = pool.endpoint(for: Route(host: "example.org", port: 80))
/// try await pool.cancelledWithTask { slot in
///   try await pool.exchange(PoolRequest(head), with: endpoint, in: slot) { exchange in
///     try await exchange.receiveBody { ... }
///   }
/// }
/// ```
///
/// Who asks for a connection waits if there is none, and is who uses it then: a task, or work. The
/// connection is free for the next one when the task's closure returns. Connections are opened by tasks of the pool's own.
///
/// What it has begun keeps it, a dial, a connection, a timer: whoever makes a pool shuts it down. (None refers to it weakly, for
/// that would make each count of a reference to it slower.)
public final class Pool: @unchecked Sendable {
  /// For what is not a limit of the machine's.
  public struct Options: Sendable {
    public var limits = PoolLimits()
    /// How long opening a connection may take: looking the name up, connecting, TLS.
    public var dialMax = Duration.seconds(60)
    public var resolver = Resolver.shared
    /// Limits of the responses.
    public var responseLimits = Limits()

    public init() {}
  }

  /// A request that waits for a connection.
  struct Entry {
    fileprivate var state = EntryState.free
    fileprivate var ticket: PoolMachine.Ticket?
    /// The task, if it sleeps.
    fileprivate var waiter: Waiter?
    /// What is done in place of waking a task.
    fileprivate var work: (any LoopCallback)?
    /// How the connection was tried to be opened that it waited for.
    fileprivate var failedDial: DialRecord?
  }

  fileprivate enum EntryState {
    case free
    case waiting
    case running(PoolMachine.ConnectionID)
    indirect case failed(TransportError)
  }

  private enum Place {
    case empty
    case dialing(Task<Void, Never>)
    case open(Connection)
  }

  private struct State: ~Copyable {
    var machine: PoolMachine
    var actions: PoolMachine.Actions = []
    var endpoints: [Route: Endpoint] = [:]
    /// By the numbers of the machine's endpoints.
    var endpointsByID: [Endpoint?] = []
    /// By the numbers of the machine's connections.
    var places: [Place] = []
    var entries: [Entry] = []
    var freeEntries: [Int] = []
    /// By the numbers of the machine's tickets: whose they are.
    var entriesByTicket: [Int] = []
    var timer: (deadline: Deadline, timer: ClientLoop.Timer)?
    /// What was being opened and is not to be any more, until its socket has closed: who takes its place waits for that.
    var givenUp: [(id: PoolMachine.ConnectionID, dial: Task<Void, Never>)] = []
    /// What the dial that is being reported has failed with.
    var dialFailure: (error: TransportError, record: DialRecord)?

    init(limits: PoolLimits) { machine = PoolMachine(limits: limits) }

    /// Also for questions: asked directly, the machine would be copied.
    @inline(__always)
    mutating func decide<T>(_ fact: (inout PoolMachine, inout PoolMachine.Actions) -> T) -> T {
      fact(&machine, &actions)
    }
  }

  public let loop: ClientLoop
  let options: Options
  private let own: Confined<State>

  public init(on loop: ClientLoop, options: Options = Options()) {
    self.loop = loop
    self.options = options
    own = Confined(State(limits: options.limits))
  }

  public func endpoint(for route: Route) -> Endpoint {
    own.state.endpoints[route] ?? Endpoint(route)
  }

  /// Connections, those that are being opened included; of them idle; requests that wait.
  public var counts: (connections: Int, idle: Int, waiting: Int) {
    own.state.decide { machine, _ in (machine.connectionCount, machine.idleCount, machine.waitingCount) }
  }

  // MARK: - Requests

  /// Whether a request would find a connection now that nobody uses.
  public func hasIdleConnection(to endpoint: Endpoint) -> Bool {
    guard let id = endpoint.id else { return false }
    return own.state.decide { machine, _ in machine.hasIdle(id) }
  }

  /// The exchange is not used any more.
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
    if connection.isObserved { connection.stopObserving() }
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

  /// A connection that is free.
  @inline(__always)
  func take(_ endpoint: Endpoint, _ demand: PoolMachine.Demand) -> (PoolMachine.ConnectionID, order: UInt64)? {
    guard !demand.wantsFresh, demand.order == nil, let number = endpoint.id else { return nil }
    let now = loop.now
    let taken = own.state.decide { $0.took(number, isPipelinable: demand.isPipelinable, now: now, into: &$1) }
    if !own.state.actions.isEmpty { perform() }
    return taken
  }

  /// Whether a request must not be sent twice, and the connection has not shown yet that its server means to keep it.
  func waitsForProof(_ request: PoolRequest, of id: PoolMachine.ConnectionID) -> Bool {
    guard !request.mayBeSentAgain, let moment = openConnection(id)?.provenAt else { return false }
    return moment > loop.now
  }

  /// Waits until it has. If it closes meanwhile, nothing is lost.
  func waitForProof(
    of id: PoolMachine.ConnectionID, in slot: RequestSlot, deadline: Deadline
  ) async throws(TransportError) {
    guard let moment = openConnection(id)?.provenAt else { return }
    let timer = loop.startTimer(min(moment, deadline)) { slot.endPause() }
    await Waiter.suspend { slot.pause = $0 }
    loop.stopTimer(timer)
    guard slot.isCancelled else { return }
    if let connection = openConnection(id) { release(connection, id, nil) }
    throw .cancelled
  }

  /// Waits for a connection.
  func wait(
    for endpoint: Endpoint, _ demand: PoolMachine.Demand, in slot: RequestSlot, deadline: Deadline
  ) async throws(TransportError) -> (PoolMachine.ConnectionID, order: UInt64) {
    let asked = slot.takeAsking()
    let index = asked ?? takeEntry()
    slot.entry = index
    defer {
      if let dial = own.state.entries[index].failedDial {
        slot.failedPeer = dial.peer
        if slot.collectsMetrics {
          var metrics = ExchangeMetrics(requested: slot.requested)
          metrics.opening = dial.finished()
          slot.metrics.append(metrics)
        }
      }
      slot.entry = nil
      releaseEntry(index)
    }
    if asked == nil { ask(index, endpoint, demand) }
    if case .waiting = own.state.entries[index].state { await wait(index, deadline: deadline) }
    switch own.state.entries[index].state {
    case .running(let id):
      guard slot.isCancelled else { return (id, order: own.state.entries[index].ticket?.order ?? 0) }
      if let connection = openConnection(id) { release(connection, id, nil) }
      throw .cancelled
    case .failed(let error):
      // If no dial has told this one that it failed, it has waited for the latest.
      if own.state.entries[index].failedDial == nil { slot.failedPeer = endpoint.latestDial?.peer }
      throw error
    case .waiting, .free: throw .internalInconsistency
    }
  }

  /// Asks for a connection, for a request that is not pipelined. `work` is done when there is one, or none to be had: `sendNow`
  /// or `begin` goes on from there. False: the slot may not have a request now.
  public func ask(for endpoint: Endpoint, priority: UInt8, in slot: RequestSlot, for work: any LoopCallback) -> Bool {
    guard loop.isCurrent, !slot.isCancelled, !slot.isHeld, slot.begin(at: loop.now) else { return false }
    var demand = PoolMachine.Demand()
    demand.priority = priority
    let index = takeEntry()
    slot.entry = index
    slot.isAsking = true
    ask(index, endpoint, demand)
    if case .waiting = own.state.entries[index].state {
      own.state.entries[index].work = work
    } else {
      loop.submit(work, inline: false)
    }
    return true
  }

  /// The connection that has come of `ask`. Nil: `begin` has to look at what has.
  func asked(in slot: RequestSlot) -> PoolMachine.ConnectionID? {
    guard slot.isAsking, !slot.isCancelled, !slot.isHeld, let index = slot.entry,
      case .running(let id) = own.state.entries[index].state
    else { return nil }
    return id
  }

  /// The connection that has come of `ask`, and the request's place among those that waited.
  func takeAsked(in slot: RequestSlot) -> (PoolMachine.ConnectionID, order: UInt64)? {
    guard let id = asked(in: slot), let index = slot.takeAsking() else { return nil }
    let order = own.state.entries[index].ticket?.order ?? 0
    slot.entry = nil
    releaseEntry(index)
    return (id, order)
  }

  /// What has come of `ask` is not wanted.
  public func stopAsking(in slot: RequestSlot) {
    guard let index = slot.takeAsking() else { return }
    if case .running(let id) = own.state.entries[index].state, let connection = openConnection(id) {
      release(connection, id, nil)
    }
    slot.entry = nil
    releaseEntry(index)
    slot.end()
  }

  /// Asks the machine for a connection.
  private func ask(_ index: Int, _ endpoint: Endpoint, _ demand: PoolMachine.Demand) {
    let (id, now) = (number(of: endpoint), loop.now)
    let ticket = own.state.decide { $0.requested(id, demand, now: now, into: &$1) }
    guard let ticket else { return own.state.entries[index].state = .failed(.internalInconsistency) }
    own.state.entries[index].state = .waiting
    own.state.entries[index].ticket = ticket
    while own.state.entriesByTicket.count <= ticket.index { own.state.entriesByTicket.append(0) }
    own.state.entriesByTicket[ticket.index] = index
    perform()
  }

  private func wait(_ index: Int, deadline: Deadline) async {
    var timer: ClientLoop.Timer?
    if deadline != .never {
      timer = loop.startTimer(deadline) { [self] in giveUp(index, .timedOut(.queueing)) }
    }
    await Waiter.suspend { own.state.entries[index].waiter = $0 }
    if let timer { loop.stopTimer(timer) }
  }

  func openConnection(_ id: PoolMachine.ConnectionID) -> Connection? {
    guard own.state.decide({ machine, _ in machine.isRunning(id) }),
      case .open(let connection) = own.state.places[id.index]
    else { return nil }
    return connection
  }

  /// Nobody waits for a connection any more.
  private func giveUp(_ index: Int, _ error: TransportError) {
    guard case .waiting = own.state.entries[index].state, let ticket = own.state.entries[index].ticket else { return }
    own.state.entries[index].state = .failed(error)
    let now = loop.now
    own.state.decide { $0.cancelled(ticket, now: now, into: &$1) }
    perform()
    wake(index)
  }

  /// Ends what goes on in a slot.
  func cancel(_ slot: RequestSlot) {
    slot.cancelRunning()
    slot.endWaits()
    if let entry = slot.entry { giveUp(entry, .cancelled) }
  }

  private func wake(_ index: Int) {
    if let work = own.state.entries[index].work.take() { return loop.submit(work, inline: false) }
    guard let waiter = own.state.entries[index].waiter else { return }
    own.state.entries[index].waiter = nil
    waiter.wake()
  }

  // MARK: - Connections

  /// The exchange of that number is over, whatever came of it. Nil: it was refused before it began.
  func release(_ connection: Connection, _ id: PoolMachine.ConnectionID, _ number: UInt64?) {
    var ending: PoolMachine.Ending
    if let number {
      connection.letGo(number)
      ending = connection.ending
      // It has left before its turn. When that comes, the connection ends.
      if connection.isBehind(number) { ending = PoolMachine.Ending(isReusable: true, requestsLeft: 0) }
    } else {
      // Then the connection is others', as good as it was.
      ending = connection.ending
      if connection.isOpen { ending = PoolMachine.Ending(isReusable: true) }
    }
    let now = loop.now
    own.state.decide { $0.exchangeEnded(id, ending, now: now, into: &$1) }
    perform()
    connection.wakeFollowers()
    if own.state.machine.idleCount > Self.rememberingIdleMax { connection.forgetResponse() }
    if !connection.isOpen { closed(id) }
  }

  private func dial(_ id: PoolMachine.ConnectionID, to endpoint: Endpoint) {
    let (route, loop, options) = (endpoint.route, loop, options)
    let deadline = loop.kernel.now().advanced(by: options.dialMax)
    let record = DialRecord()
    endpoint.latestDial = record
    let givenUp = own.state.givenUp
    let task = Task(executorPreference: loop) { @concurrent [self] in
      await loop.leaveInlineTick()
      for former in givenUp { await former.dial.value }
      defer { own.state.givenUp.removeAll { $0.id == id } }
      do throws(TransportError) {
        let connection = try await route.connect(
          by: options.resolver, on: loop, deadline: deadline, limits: options.responseLimits,
          observer: { record.note($0, at: $1) })
        connection.stopObserving()
        connection.dialRecord = record
        opened(connection, as: id)
      } catch {
        failed(error, record, as: id)
      }
    }
    own.state.places[id.index] = .dialing(task)
  }

  private func opened(_ connection: Connection, as id: PoolMachine.ConnectionID) {
    guard own.state.decide({ machine, _ in machine.isDialing(id) }) else { return connection.close() }
    guard connection.isIdle else { return failed(.connectionClosed, connection.dialRecord ?? DialRecord(), as: id) }
    own.state.places[id.index] = .open(connection)
    connection.watch(by: IdleWatch(self, id))
    let now = loop.now
    own.state.decide { $0.dialSucceeded(id, now: now, into: &$1) }
    connection.wasKeptUnused = own.state.decide { machine, _ in !machine.isRunning(id) }
    perform()
  }

  private func failed(_ error: TransportError, _ record: DialRecord, as id: PoolMachine.ConnectionID) {
    guard own.state.decide({ machine, _ in machine.isDialing(id) }) else { return }
    own.state.places[id.index] = .empty
    own.state.dialFailure = (error, record)
    let now = loop.now
    let isOurs = if case .unavailable = error { true } else { false }
    own.state.decide { $0.dialFailed(id, isOurs: isOurs, now: now, into: &$1) }
    perform()
    own.state.dialFailure = nil
  }

  /// Something happens on a connection that nobody uses.
  fileprivate func becameReadable(_ id: PoolMachine.ConnectionID) {
    guard own.state.decide({ machine, _ in machine.isPresent(id) }),
      case .open(let connection) = own.state.places[id.index],
      connection.isIdle
    else { return }
    connection.lookForEnd()
    if !connection.isIdle { closed(id) }
  }

  /// The server has closed an idle connection, or sent what nobody had asked for.
  private func closed(_ id: PoolMachine.ConnectionID) {
    guard own.state.decide({ machine, _ in machine.isPresent(id) }) else { return }
    own.state.places[id.index] = .empty
    let now = loop.now
    own.state.decide { $0.connectionClosed(id, now: now, into: &$1) }
    perform()
  }

  /// Closes the connections that nobody uses. The others serve no further request.
  public func renewConnections() {
    own.state.decide { $0.presentConnectionsUnwanted(into: &$1) }
    perform()
  }

  /// Closes what nobody uses, fails who waits, and begins nothing any more. What is running ends by itself.
  public func shutDown() {
    own.state.decide { $0.shutDown(into: &$1) }
    perform()
    stopTimer()
  }

  /// With more idle connections than this each lets go of its latest response.
  private static let rememberingIdleMax = 64

  // MARK: - Decisions

  private func perform() {
    // What is woken here runs later: nobody adds an action meanwhile.
    var index = 0
    while index < own.state.actions.count {
      perform(own.state.actions[index])
      index += 1
    }
    // (It keeps its room, and does not ask for it.)
    while !own.state.actions.isEmpty { own.state.actions.removeLast() }
    let deadline = own.state.decide { machine, _ in machine.timer }
    guard deadline < own.state.timer?.deadline ?? .never else { return }
    stopTimer()
    own.state.timer = (deadline, loop.startTimer(deadline) { [self] in timerFired() })
  }

  private func stopTimer() {
    guard let timer = own.state.timer else { return }
    own.state.timer = nil
    loop.stopTimer(timer.timer)
  }

  private func timerFired() {
    stopTimer()
    let now = loop.now
    own.state.decide { $0.timerFired(now: now, into: &$1) }
    perform()
  }

  private func perform(_ action: PoolMachine.Action) {
    switch action {
    case .run(let ticket, let id): settle(ticket, .running(id))
    case .fail(let ticket, let failure):
      own.state.entries[own.state.entriesByTicket[ticket.index]].failedDial = own.state.dialFailure?.record
      settle(ticket, .failed(transportError(failure)))
    case .dial(let id, let endpoint):
      while own.state.places.count <= id.index { own.state.places.append(.empty) }
      guard let endpoint = own.state.endpointsByID[endpoint.index] else { return }
      dial(id, to: endpoint)
    case .close(let id):
      let place = own.state.places[id.index]
      own.state.places[id.index] = .empty
      switch place {
      case .open(let connection): connection.close()
      case .dialing(let task):
        task.cancel()
        own.state.givenUp.append((id, task))
      case .empty: break
      }
    case .forget(let id):
      guard let endpoint = own.state.endpointsByID[id.index] else { return }
      own.state.endpointsByID[id.index] = nil
      endpoint.id = nil
      own.state.endpoints[endpoint.route] = nil
    }
  }

  private func settle(_ ticket: PoolMachine.Ticket, _ state: EntryState) {
    let index = own.state.entriesByTicket[ticket.index]
    own.state.entries[index].state = state
    wake(index)
  }

  private func transportError(_ failure: PoolMachine.Failure) -> TransportError {
    switch failure {
    case .dialFailed: own.state.dialFailure?.error ?? .internalInconsistency
    case .tooManyWaiting: .tooManyWaiting
    case .closed: .localMisuse(.poolShutDown)
    }
  }

  // MARK: - Books

  private func number(of endpoint: Endpoint) -> PoolMachine.EndpointID {
    if let id = endpoint.id { return id }
    // Another one may have taken its place since it was forgotten.
    if let id = own.state.endpoints[endpoint.route]?.id { return id }
    let id = own.state.machine.addEndpoint()
    endpoint.id = id
    own.state.endpoints[endpoint.route] = endpoint
    while own.state.endpointsByID.count <= id.index { own.state.endpointsByID.append(nil) }
    own.state.endpointsByID[id.index] = endpoint
    return id
  }

  private func takeEntry() -> Int {
    if let index = own.state.freeEntries.popLast() { return index }
    own.state.entries.append(Entry())
    return own.state.entries.count - 1
  }

  private func releaseEntry(_ index: Int) {
    own.state.entries[index].state = .free
    own.state.entries[index].failedDial = nil
    own.state.freeEntries.append(index)
  }
}

/// Looks after an idle connection on behalf of its pool.
private final class IdleWatch: ChannelWatcher {
  private let pool: Pool
  private let id: PoolMachine.ConnectionID

  init(_ pool: Pool, _ id: PoolMachine.ConnectionID) {
    self.pool = pool
    self.id = id
  }

  func becameReadable() { pool.becameReadable(id) }
}
