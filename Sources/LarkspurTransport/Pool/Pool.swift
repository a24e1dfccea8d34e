import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The connections of one loop: carries out what a `PoolMachine` decides. It belongs to its loop's thread.
///
/// ```swift
/// let endpoint = pool.endpoint(for: Route(host: "example.org", port: 80))
/// try await pool.cancelledWithTask { scope in
///   try await pool.exchange(PoolRequest(head), with: endpoint, in: scope) { exchange in
///     try await exchange.receiveBody { ... }
///   }
/// }
/// ```
///
/// A task asks for a connection, and waits if there is none; it is the same task that uses the connection then. The
/// connection is free for the next one when the task's closure returns. Connections are opened by tasks of the pool's own.
package final class Pool: @unchecked Sendable {
  /// For what is not a limit of the machine's.
  package struct Options: Sendable {
    package var limits = PoolLimits()
    /// How long opening a connection may take: looking the name up, connecting, TLS.
    package var dialMax = Duration.seconds(60)
    package var resolver = Resolver.shared
    /// Limits of the responses.
    package var responseLimits = Limits()

    package init() {}
  }

  /// A request that is waiting or running.
  struct Entry {
    fileprivate var state = EntryState.free
    fileprivate var ticket: PoolMachine.Ticket?
    /// The task, if it sleeps.
    fileprivate var waiter: Waiter?
    /// What it runs on, and the number of its exchange there.
    fileprivate var place: (connection: Connection, exchange: UInt64)?
    /// How the connection was tried to be opened that it waited for.
    fileprivate var failedDial: ConnectionMetrics?
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
    /// What the dial that is being reported has failed with.
    var dialFailure: (error: TransportError, metrics: ConnectionMetrics)?

    init(limits: PoolLimits) { machine = PoolMachine(limits: limits) }

    /// Also for questions: asked directly, the machine would be copied.
    @inline(__always)
    mutating func decide<T>(_ fact: (inout PoolMachine, inout PoolMachine.Actions) -> T) -> T {
      fact(&machine, &actions)
    }
  }

  package let loop: ClientLoop
  private let options: Options
  private let own: Confined<State>

  package init(on loop: ClientLoop, options: Options = Options()) {
    self.loop = loop
    self.options = options
    own = Confined(State(limits: options.limits))
  }

  /// Its idle connections close with it.
  deinit {
    if let timer = own.state.timer { loop.post { [loop] in loop.stopTimer(timer.timer) } }
  }

  package func endpoint(for route: Route) -> Endpoint {
    own.state.endpoints[route] ?? Endpoint(route)
  }

  /// Connections, those that are being opened included; of them idle; requests that wait.
  package var counts: (connections: Int, idle: Int, waiting: Int) {
    own.state.decide { machine, _ in (machine.connectionCount, machine.idleCount, machine.waitingCount) }
  }

  // MARK: - Requests

  /// Sends a request and lends its exchange to `consume` when the response's head is there. What `consume` leaves unread
  /// costs the connection. `scope` may cancel it, and has no other request at the same time.
  ///
  /// A connection that had served before may turn out to be dead. If nothing of the response has come then, a request
  /// that may be repeated is sent once more, over a new connection (RFC 9110 9.2.2, RFC 9112 9.3.1). Each try adds its
  /// metrics to the scope, if that wants them.
  package func exchange(
    _ request: PoolRequest, with endpoint: Endpoint, in scope: RequestScope,
    _ consume: (Exchange) async throws(TransportError) -> Void
  ) async throws(TransportError) {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    if scope.isCancelled { throw .cancelled }
    guard scope.entry == nil else { throw .localMisuse(.scopeBusy) }
    let index = takeEntry()
    scope.entry = index
    let requested = loop.now
    let deadline = request.timeouts.map { min(request.deadline, requested.advanced(by: $0.total)) } ?? request.deadline
    defer {
      if scope.collectsMetrics, let dial = own.state.entries[index].failedDial {
        var metrics = ExchangeMetrics(requested: requested)
        metrics.connection = dial
        scope.metrics.append(metrics)
      }
      scope.entry = nil
      releaseEntry(index)
    }
    var demand = PoolMachine.Demand()
    demand.priority = request.priority
    demand.isPipelinable = options.limits.pipelineDepth > 1 && request.isPipelinable
    while true {
      let failure: TransportError
      var isAlone = true
      var isBegun = false
      var isAnswered = false
      ask(index, endpoint, demand)
      if case .waiting = own.state.entries[index].state { await wait(index, deadline: deadline) }
      let id = try connection(of: index, unless: scope.isCancelled)
      // It may have been closed since it was chosen.
      if let connection = openConnection(id) {
        if let observer = request.observer { connection.observe(observer) }
        defer {
          if request.observer != nil { connection.stopObserving() }
          if scope.collectsMetrics, let place = own.state.entries[index].place,
            let metrics = connection.metrics(of: place.exchange, requested: requested)
          {
            scope.metrics.append(metrics)
          }
          release(connection, id, index)
        }
        do throws(TransportError) {
          isAlone = connection.isIdle
          let number = try connection.begin(request, deadline: deadline, isPipelined: demand.isPipelinable)
          isBegun = true
          own.state.entries[index].place = (connection, number)
          if !isAlone { try await connection.turn(of: number, deadline: deadline) }
          let exchange = try await connection.head(of: number)
          isAnswered = true
          return try await consume(exchange)
        } catch {
          // What `consume` throws may have come from anywhere.
          guard !isAnswered, !scope.isCancelled, connection.mayReplay(request, isBegun, after: error) else {
            throw scope.isCancelled ? .cancelled : error
          }
          failure = error
        }
      } else {
        failure = .connectionClosed
      }
      if demand.wantsFresh { throw failure }
      // A request that was lost behind another one goes alone next. If that fails, too, it gets a connection of its own.
      demand.wantsFresh = isAlone
      demand.isPipelinable = false
      demand.order = own.state.entries[index].ticket?.order
    }
  }

  /// Runs `operation` with a scope that is cancelled with the task. One scope serves any number of requests, one after
  /// another.
  package func cancelledWithTask<E: Error>(
    _ operation: (RequestScope) async throws(E) -> Void
  ) async throws(E) {
    let scope = RequestScope(of: self)
    let result: Result<Void, E> = await withTaskCancellationHandler {
      do throws(E) {
        return .success(try await operation(scope))
      } catch {
        return .failure(error)
      }
    } onCancel: {
      scope.cancel()
    }
    try result.get()
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

  /// What the wait has come to.
  private func connection(of index: Int, unless isCancelled: Bool) throws(TransportError) -> PoolMachine.ConnectionID {
    switch own.state.entries[index].state {
    case .running(let id):
      guard isCancelled else { return id }
      if let connection = openConnection(id) { release(connection, id, index) }
      throw .cancelled
    case .failed(let error): throw error
    case .waiting, .free: throw .internalInconsistency
    }
  }

  private func openConnection(_ id: PoolMachine.ConnectionID) -> Connection? {
    guard own.state.decide({ machine, _ in machine.isRunning(id) }),
      case .open(let connection) = own.state.places[id.index]
    else { return nil }
    return connection
  }

  /// The task does not wait for a connection any more.
  private func giveUp(_ index: Int, _ error: TransportError) {
    guard case .waiting = own.state.entries[index].state, let ticket = own.state.entries[index].ticket else { return }
    own.state.entries[index].state = .failed(error)
    own.state.decide { $0.cancelled(ticket, into: &$1) }
    perform()
    wake(index)
  }

  /// Ends what goes on at an entry.
  func cancel(_ index: Int) {
    if let place = own.state.entries[index].place { place.connection.cancel(place.exchange) }
    giveUp(index, .cancelled)
  }

  private func wake(_ index: Int) {
    guard let waiter = own.state.entries[index].waiter else { return }
    own.state.entries[index].waiter = nil
    waiter.wake()
  }

  // MARK: - Connections

  /// The exchange is over, whatever came of it.
  private func release(_ connection: Connection, _ id: PoolMachine.ConnectionID, _ index: Int) {
    if let place = own.state.entries[index].place { connection.letGo(place.exchange) }
    var ending = connection.ending
    if let place = own.state.entries[index].place, connection.isBehind(place.exchange) {
      // It has left before its turn. When that comes, the connection ends.
      ending = PoolMachine.Ending(isReusable: true, requestsLeft: 0)
    }
    if own.state.entries[index].place == nil, connection.channel != nil {
      // It was refused before it began: the connection is others', as good as it was.
      ending = PoolMachine.Ending(isReusable: true)
    }
    own.state.entries[index].place = nil
    let now = loop.now
    own.state.decide { $0.exchangeEnded(id, ending, now: now, into: &$1) }
    perform()
    connection.wakeFollowers()
    if connection.channel == nil { closed(id) }
  }

  private func dial(_ id: PoolMachine.ConnectionID, to endpoint: Endpoint) {
    let (route, loop, options) = (endpoint.route, loop, options)
    let deadline = loop.kernel.now().advanced(by: options.dialMax)
    let task = Task(executorPreference: loop) { @concurrent [self] in
      let record = DialRecord()
      do throws(TransportError) {
        let connection = try await route.connect(
          by: options.resolver, on: loop, deadline: deadline, limits: options.responseLimits,
          observer: { record.note($0, at: $1) })
        connection.stopObserving()
        connection.dialMetrics = record.metrics
        opened(connection, as: id)
      } catch {
        failed(error, record.metrics, as: id)
      }
    }
    own.state.places[id.index] = .dialing(task)
  }

  private func opened(_ connection: Connection, as id: PoolMachine.ConnectionID) {
    guard own.state.decide({ machine, _ in machine.isDialing(id) }), connection.isIdle else {
      return connection.close()
    }
    own.state.places[id.index] = .open(connection)
    connection.watchWhileIdle { [weak self] in self?.closed(id) }
    let now = loop.now
    own.state.decide { $0.dialSucceeded(id, now: now, into: &$1) }
    connection.wasKeptUnused = own.state.decide { machine, _ in !machine.isRunning(id) }
    perform()
  }

  private func failed(_ error: TransportError, _ metrics: ConnectionMetrics, as id: PoolMachine.ConnectionID) {
    guard own.state.decide({ machine, _ in machine.isDialing(id) }) else { return }
    own.state.places[id.index] = .empty
    own.state.dialFailure = (error, metrics)
    let now = loop.now
    let isOurs = if case .unavailable = error { true } else { false }
    own.state.decide { $0.dialFailed(id, isOurs: isOurs, now: now, into: &$1) }
    perform()
    own.state.dialFailure = nil
  }

  /// The server has closed an idle connection, or sent what nobody had asked for.
  private func closed(_ id: PoolMachine.ConnectionID) {
    guard own.state.decide({ machine, _ in machine.isPresent(id) }) else { return }
    own.state.places[id.index] = .empty
    let now = loop.now
    own.state.decide { $0.connectionClosed(id, now: now, into: &$1) }
    perform()
  }

  /// Closes the connections that nobody uses.
  package func closeIdleConnections() {
    own.state.decide { $0.idleConnectionsUnwanted(into: &$1) }
    perform()
  }

  /// Closes what nobody uses, fails who waits, and begins nothing any more. What is running ends by itself.
  package func shutDown() {
    own.state.decide { $0.shutDown(into: &$1) }
    perform()
    stopTimer()
  }

  // MARK: - Decisions

  private func perform() {
    // What is woken here runs later: nobody adds an action meanwhile.
    var index = 0
    while index < own.state.actions.count {
      perform(own.state.actions[index])
      index += 1
    }
    while !own.state.actions.isEmpty { own.state.actions.removeLast() }
    let deadline = own.state.decide { machine, _ in machine.timer }
    guard deadline < own.state.timer?.deadline ?? .never else { return }
    stopTimer()
    own.state.timer = (deadline, loop.startTimer(deadline) { [weak self] in self?.timerFired() })
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
      own.state.entries[own.state.entriesByTicket[ticket.index]].failedDial = own.state.dialFailure?.metrics
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
      case .dialing(let task): task.cancel()
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
