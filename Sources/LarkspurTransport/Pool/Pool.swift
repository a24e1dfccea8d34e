import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The connections of one loop: carries out what a `PoolMachine` decides. It belongs to its loop's thread.
///
/// ```swift
/// let endpoint = pool.endpoint(for: Route(host: "example.org", port: 80))
/// try await pool.exchange(PoolRequest(head), with: endpoint) { exchange in
///   try await exchange.receiveBody { ... }
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
    /// Limits of the responses.
    package var responseLimits = Limits()

    package init() {}
  }

  /// A request that is waiting or running.
  private struct Entry {
    var generation: UInt32 = 0
    var state = State.free
    var ticket: PoolMachine.Ticket?
    /// The task, if it sleeps.
    var waiter: Waiter?
    var isCancelled = false
    /// What the running exchange can be cancelled by.
    var scope: (channel: Channel, use: Channel.Use)?
  }

  private enum State {
    case free
    case waiting
    case running(PoolMachine.ConnectionID)
    case failed(TransportError)
  }

  private enum Place {
    case empty
    case dialing(Task<Void, Never>)
    case open(Connection)
  }

  package let loop: ClientLoop
  private let options: Options
  private var machine: PoolMachine
  private var actions: PoolMachine.Actions = []
  private var endpoints: [Route: Endpoint] = [:]
  /// By the numbers of the machine's endpoints.
  private var endpointsByID: [Endpoint?] = []
  /// By the numbers of the machine's connections.
  private var places: [Place] = []
  private var entries: [Entry] = []
  private var freeEntries: [Int] = []
  /// By the numbers of the machine's tickets: whose they are.
  private var entriesByTicket: [Int] = []
  private var timer: (deadline: Deadline, timer: ClientLoop.Timer)?
  /// What the dial that is being reported has failed with.
  private var dialFailure: TransportError?

  package init(on loop: ClientLoop, options: Options = Options()) {
    self.loop = loop
    self.options = options
    machine = PoolMachine(limits: options.limits)
  }

  /// Its idle connections close with it.
  deinit {
    if let timer { loop.post { [loop] in loop.stopTimer(timer.timer) } }
  }

  package func endpoint(for route: Route) -> Endpoint {
    endpoints[route] ?? Endpoint(route)
  }

  /// Connections, those that are being opened included; of them idle; requests that wait.
  package var counts: (connections: Int, idle: Int, waiting: Int) {
    (machine.connectionCount, machine.idleCount, machine.waitingCount)
  }

  // MARK: - Requests

  /// Sends a request and lends its exchange to `consume` when the response's head is there. What `consume` leaves unread
  /// costs the connection.
  ///
  /// A connection that had served before may turn out to be dead. If nothing of the response has come then, a request
  /// that may be repeated is sent once more, over a new connection (RFC 9110 9.2.2, RFC 9112 9.3.1).
  package func exchange(
    _ request: PoolRequest, with endpoint: Endpoint,
    _ consume: (Exchange) async throws(TransportError) -> Void
  ) async throws(TransportError) {
    guard loop.isCurrent else { throw .localMisuse(.notOnLoop) }
    if Task.isCancelled { throw .cancelled }
    let (index, generation) = takeEntry()
    defer { releaseEntry(index) }
    let result: Result<Void, TransportError> = await withTaskCancellationHandler {
      do throws(TransportError) {
        return .success(try await run(request, as: index, with: endpoint, consume))
      } catch {
        return .failure(error)
      }
    } onCancel: {
      loop.post { [self] in cancel(index, generation) }
    }
    try result.get()
  }

  private func run(
    _ request: PoolRequest, as index: Int, with endpoint: Endpoint,
    _ consume: (Exchange) async throws(TransportError) -> Void
  ) async throws(TransportError) {
    var demand = PoolMachine.Demand()
    demand.priority = request.priority
    while true {
      let id = try await acquire(index, with: endpoint, demand, deadline: request.deadline)
      let failure: TransportError
      // It may have been closed since it was chosen.
      if machine.isRunning(id), case .open(let connection) = places[id.index] {
        defer { release(connection, id) }
        let scope = connection.beginScope()
        entries[index].scope = scope
        defer {
          entries[index].scope = nil
          if let scope { scope.channel.endScope(scope.use) }
        }
        let exchange: Exchange
        do throws(TransportError) {
          exchange = try await connection.send(request.head, body: request.body, deadline: request.deadline)
          return try await consume(exchange)
        } catch {
          guard connection.mayReplay(request.head, after: error) else { throw error }
          failure = error
        }
      } else {
        failure = .connectionClosed
      }
      if demand.wantsFresh { throw failure }
      demand.wantsFresh = true
      demand.order = entries[index].ticket?.order
    }
  }

  /// Waits for a connection.
  private func acquire(
    _ index: Int, with endpoint: Endpoint, _ demand: PoolMachine.Demand, deadline: Deadline
  ) async throws(TransportError) -> PoolMachine.ConnectionID {
    guard let ticket = machine.requested(number(of: endpoint), demand, now: loop.now, into: &actions) else {
      throw .internalInconsistency
    }
    entries[index].state = .waiting
    entries[index].ticket = ticket
    while entriesByTicket.count <= ticket.index { entriesByTicket.append(0) }
    entriesByTicket[ticket.index] = index
    perform()
    if case .waiting = entries[index].state { await wait(index, deadline: deadline) }
    switch entries[index].state {
    case .running(let id):
      guard entries[index].isCancelled else { return id }
      if machine.isRunning(id), case .open(let connection) = places[id.index] { release(connection, id) }
      throw .cancelled
    case .failed(let error): throw error
    case .waiting, .free: throw .internalInconsistency
    }
  }

  private func wait(_ index: Int, deadline: Deadline) async {
    let generation = entries[index].generation
    var timer: ClientLoop.Timer?
    if deadline != .never {
      timer = loop.startTimer(deadline) { [self] in giveUp(index, generation, .timedOut(.queueing)) }
    }
    if entries[index].isCancelled { giveUp(index, generation, .cancelled) }
    if case .waiting = entries[index].state { await Waiter.suspend { entries[index].waiter = $0 } }
    if let timer { loop.stopTimer(timer) }
  }

  /// The task does not wait for a connection any more.
  private func giveUp(_ index: Int, _ generation: UInt32, _ error: TransportError) {
    guard entries[index].generation == generation, case .waiting = entries[index].state,
      let ticket = entries[index].ticket
    else { return }
    entries[index].state = .failed(error)
    machine.cancelled(ticket, into: &actions)
    perform()
    wake(index)
  }

  private func cancel(_ index: Int, _ generation: UInt32) {
    guard entries[index].generation == generation else { return }
    entries[index].isCancelled = true
    if let scope = entries[index].scope { scope.channel.cancelled(scope.use) }
    giveUp(index, generation, .cancelled)
  }

  private func wake(_ index: Int) {
    guard let waiter = entries[index].waiter else { return }
    entries[index].waiter = nil
    waiter.wake()
  }

  // MARK: - Connections

  /// The exchange is over, whatever came of it.
  private func release(_ connection: Connection, _ id: PoolMachine.ConnectionID) {
    machine.exchangeEnded(id, connection.ending, now: loop.now, into: &actions)
    perform()
  }

  private func dial(_ id: PoolMachine.ConnectionID, to endpoint: Endpoint) {
    let (route, loop, options) = (endpoint.route, loop, options)
    let deadline = loop.kernel.now().advanced(by: options.dialMax)
    let task = Task(executorPreference: loop) { @concurrent [self] in
      do throws(TransportError) {
        let connection = try await Connection.open(
          host: route.host, port: route.port, security: route.security, on: loop, deadline: deadline,
          limits: options.responseLimits)
        opened(connection, as: id)
      } catch {
        failed(error, as: id)
      }
    }
    places[id.index] = .dialing(task)
  }

  private func opened(_ connection: Connection, as id: PoolMachine.ConnectionID) {
    guard machine.isDialing(id), connection.isIdle else { return connection.close() }
    places[id.index] = .open(connection)
    connection.watchWhileIdle { [weak self] in self?.closed(id) }
    machine.dialSucceeded(id, now: loop.now, into: &actions)
    perform()
  }

  private func failed(_ error: TransportError, as id: PoolMachine.ConnectionID) {
    guard machine.isDialing(id) else { return }
    places[id.index] = .empty
    dialFailure = error
    let isOurs = if case .unavailable = error { true } else { false }
    machine.dialFailed(id, isOurs: isOurs, now: loop.now, into: &actions)
    perform()
    dialFailure = nil
  }

  /// The server has closed an idle connection, or sent what nobody had asked for.
  private func closed(_ id: PoolMachine.ConnectionID) {
    guard machine.isPresent(id) else { return }
    places[id.index] = .empty
    machine.connectionClosed(id, now: loop.now, into: &actions)
    perform()
  }

  /// Closes the connections that nobody uses.
  package func closeIdleConnections() {
    machine.idleConnectionsUnwanted(into: &actions)
    perform()
  }

  /// Closes what nobody uses, fails who waits, and begins nothing any more. What is running ends by itself.
  package func shutDown() {
    machine.shutDown(into: &actions)
    perform()
    if let timer { loop.stopTimer(timer.timer) }
    timer = nil
  }

  // MARK: - Decisions

  private func perform() {
    // What is woken here runs later: nobody adds an action meanwhile.
    for index in actions.indices { perform(actions[index]) }
    actions.removeAll(keepingCapacity: true)
    guard machine.timer < timer?.deadline ?? .never else { return }
    if let timer { loop.stopTimer(timer.timer) }
    timer = (machine.timer, loop.startTimer(machine.timer) { [weak self] in self?.timerFired() })
  }

  private func timerFired() {
    if let timer { loop.stopTimer(timer.timer) }
    timer = nil
    machine.timerFired(now: loop.now, into: &actions)
    perform()
  }

  private func perform(_ action: PoolMachine.Action) {
    switch action {
    case .run(let ticket, let id): settle(ticket, .running(id))
    case .fail(let ticket, let failure): settle(ticket, .failed(transportError(failure)))
    case .dial(let id, let endpoint):
      while places.count <= id.index { places.append(.empty) }
      guard let endpoint = endpointsByID[endpoint.index] else { return }
      dial(id, to: endpoint)
    case .close(let id):
      let place = places[id.index]
      places[id.index] = .empty
      switch place {
      case .open(let connection): connection.close()
      case .dialing(let task): task.cancel()
      case .empty: break
      }
    case .forget(let id):
      guard let endpoint = endpointsByID[id.index] else { return }
      endpointsByID[id.index] = nil
      endpoint.id = nil
      endpoints[endpoint.route] = nil
    }
  }

  private func settle(_ ticket: PoolMachine.Ticket, _ state: State) {
    let index = entriesByTicket[ticket.index]
    entries[index].state = state
    wake(index)
  }

  private func transportError(_ failure: PoolMachine.Failure) -> TransportError {
    switch failure {
    case .dialFailed: dialFailure ?? .internalInconsistency
    case .tooManyWaiting: .tooManyWaiting
    case .closed: .localMisuse(.poolShutDown)
    }
  }

  // MARK: - Books

  private func number(of endpoint: Endpoint) -> PoolMachine.EndpointID {
    if let id = endpoint.id { return id }
    // Another one may have taken its place since it was forgotten.
    if let other = endpoints[endpoint.route], let id = other.id { return id }
    let id = machine.addEndpoint()
    endpoint.id = id
    endpoints[endpoint.route] = endpoint
    while endpointsByID.count <= id.index { endpointsByID.append(nil) }
    endpointsByID[id.index] = endpoint
    return id
  }

  private func takeEntry() -> (index: Int, generation: UInt32) {
    let index = freeEntries.popLast() ?? entries.count
    if index == entries.count { entries.append(Entry()) }
    entries[index].generation &+= 1
    return (index, entries[index].generation)
  }

  private func releaseEntry(_ index: Int) {
    let generation = entries[index].generation &+ 1
    entries[index] = Entry()
    entries[index].generation = generation
    freeEntries.append(index)
  }
}
