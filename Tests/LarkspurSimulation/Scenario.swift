import LarkspurBytes
import LarkspurClient
import LarkspurHTTP
import LarkspurIO
import LarkspurTestSupport
import LarkspurTransport

/// A pool, its users, a network and its servers. One seed is one world.
///
/// ```
///  users (ClientScript, SubmittedScript) --> Pool, Connection --> ClientLoop --> SimulatedKernel --> SimulatedLink --> ServerSession
///        \--------------------- Oracle: what was asked, sent, answered, delivered ------/
/// ```
///
/// Every fault ends after some time: a silent server closes, and the kernel gives up a connection that the network has
/// dropped. So each request has to end by itself, and the world comes to rest.
package final class Scenario: @unchecked Sendable {
  /// The result of a world.
  package struct Report: Sendable {
    package let seed: UInt64
    /// The broken rules; empty if there are none.
    package let complaints: [String]
    package let trace: Trace
    /// The parameters that the seed has drawn, as text.
    package let setting: String
    package let requests: Int
    /// Number of attempts that a retry policy has added.
    package let repetitions: Int
    package let failures: Int
    package let connections: Int
    package let ticks: Int
    /// Number of callbacks that ran in inline ticks.
    package let inlineCallbacks: Int
    package let waits: Int
    package let idleWaitsMost: Int
    package let seconds: Int
  }

  /// The users of a world's pool.
  package enum Users: Sendable {
    case pool
    /// A client without Foundation.
    case client
    /// A client with a retry policy, whose servers fail more often.
    case retryingClient
  }

  /// A defect of a client's retry policy, for a test of the checks.
  package enum Defect: CaseIterable, Sendable {
    /// Requests that may have had an effect are repeated.
    case allMethods
    /// The budget is larger than the watch supposes.
    case overspending
  }

  enum Outcome {
    case read(Int)
    case left
    case failed(TransportError)
  }

  let seed: UInt64
  let faults: FaultProfile
  let kernel: SimulatedKernel
  let loop: ClientLoop
  let oracle = Oracle()
  let options: Pool.Options
  let names: [SimulatedNames.Name]
  private var pool: Pool?
  /// The client whose pool is used, in a world of a client.
  private var client: HTTPClient?
  /// The watch over the client's retry policy, in a world of a client that retries.
  let retries: RetryWatch?
  let endpoints: [Endpoint]
  private var random: SeededRandom
  private var scripts: [ClientScript] = []
  private var scriptsOver = 0
  private(set) var isShutDown = false
  private var failures = 0
  private var ticks = 0
  var inlineCallbacks = 0

  /// Number of ticks, in all and at one point of simulated time, that count as an endless loop.
  private static let ticksMax = 300_000
  private static let ticksAtOnceMax = 2_000
  static let privateAddresses: [SocketAddress] = [
    .ipv6(high: 0x2001_0db8_0000_0000, low: 1, scope: 0, port: 80), .ipv4(0xc633_6401, port: 80),
    .ipv6(high: 0x2001_0db8_0000_0000, low: 2, scope: 0, port: 80), .ipv4(0xc633_6402, port: 80),
  ]

  package init(seed: UInt64, users: Users = .pool, defect: Defect? = nil) throws {
    self.seed = seed
    random = SeededRandom(seed: seed)
    faults = FaultProfile(&random, users: users)
    kernel = SimulatedKernel(faults, random: random.fork())
    loop = try ClientLoop(withoutThreadOn: kernel, allowsInlineTicks: true)
    names = SimulatedNames.draw(&random)
    var options = Self.options(faults, &random)
    options.resolver = Resolver(source: SimulatedNames(names, on: kernel, loop), kernel: kernel)
    self.options = options
    let retries = users == .retryingClient ? RetryWatch(faults, oracle, kernel, defect: defect, &random) : nil
    let timeMax = retries?.drawTimeMax(faults, &random)
    let interceptors: [any HTTPClient.Interceptor] = retries.map { [$0, $0.policy] } ?? []
    self.retries = retries
    let client = users == .pool ? nil : Self.client(on: loop, options, interceptors, timeMax: timeMax)
    let pool = client?.pool ?? Pool(on: loop, options: options)
    (self.client, self.pool) = (client, pool)
    endpoints = names.map { pool.endpoint(for: Route(host: $0.text, port: 80)) }
    for address in names.flatMap(\.addresses) + Self.privateAddresses {
      kernel.add(Host(faults, oracle, on: kernel), at: address)
    }
    let span = random.pick([0, milliseconds(100), seconds(10), seconds(300)])
    let heads = ScriptHeads(hosts: names.map(\.text), users: users, timeMax: timeMax)
    for _ in 0..<random.pick([1, 3, 6, 20]) {
      scripts.append(
        try ClientScript(endpoints: names.count, within: span, faults, oracle, heads: heads, &random))
    }
    kernel.bytesTaken = { [oracle] link, offered, count in oracle.taken(offered, count, on: link) }
    kernel.linkOpened = { [unowned self] link, address in checkLimits(at: address) }
    arrange(span)
  }

  private static func options(_ faults: FaultProfile, _ random: inout SeededRandom) -> Pool.Options {
    var options = Pool.Options()
    options.limits.perEndpointMax = random.pick([1, 1, 2, 3, 6])
    options.limits.totalMax = random.pick([1, 2, 4, 256])
    if !faults.isCalm, random.chance(1, of: 8) { options.limits.waitingMax = random.number(0...5) }
    options.limits.idleMax = .nanoseconds(random.pick([0, seconds(1), seconds(60)]))
    if random.chance(1, of: 5) { options.limits.ageMax = .nanoseconds(random.time(0...seconds(5))) }
    if random.chance(1, of: 5) { options.limits.requestsMax = random.number(0...5) }
    options.limits.pipelineDepth = random.pick([1, 1, 2, 4])
    if !faults.isCalm { options.dialMax = .nanoseconds(random.pick([milliseconds(50), seconds(2), seconds(60)])) }
    return options
  }

  // MARK: - The users

  private func arrange(_ span: UInt64) {
    for index in scripts.indices { start(index) }
    while !faults.isCalm, random.chance(1, of: 4) {
      kernel.after(random.time(0...span)) { [unowned self] in
        loop.post { [unowned self] in
          kernel.note("close idle", 0)
          pool?.renewConnections()
        }
      }
    }
    guard !faults.isCalm, random.chance(1, of: 15) else { return }
    kernel.after(random.time(0...span * 2)) { [unowned self] in loop.post { [unowned self] in shutDown() } }
  }

  private func start(_ index: Int) {
    let script = scripts[index]
    kernel.after(script.start) { [unowned self] in
      switch script.way {
      case .submitted where client == nil: submit(script)
      case .inlineTask:
        loop.expectInlineJob()
        startTask(script)
      case .task, .submitted: loop.post { [unowned self] in startTask(script) }
      }
    }
  }

  private func submit(_ script: ClientScript) {
    guard let pool else { return scriptIsOver() }
    let submitted = SubmittedScript(script, in: self, over: pool)
    submitted.submit()
    guard let time = script.cancelledAfter else { return }
    kernel.after(time) { submitted.cancel() }
  }

  private func startTask(_ script: ClientScript) {
    let task = Task(executorPreference: loop) { @concurrent [unowned self] in
      await script.isPrivate ? makePrivate(script) : make(script)
      scriptIsOver()
    }
    guard let time = script.cancelledAfter else { return }
    // Cancels in the middle of the loop's work, or through the inbox while the loop waits, as another thread would.
    kernel.after(time) { [unowned self] in
      if kernel.isWaiting { loop.post { task.cancel() } } else { task.cancel() }
    }
  }

  func scriptIsOver() { scriptsOver += 1 }

  private func make(_ script: ClientScript) async {
    if let client { return await make(script, by: client) }
    guard let pool else { return }
    await pool.cancelledWithTask { slot in
      for plan in script.plans {
        let request = request(for: plan, until: deadline(of: plan))
        await run(plan, of: script) { () async throws(TransportError) in
          var outcome = Outcome.left
          try await pool.exchange(request, with: endpoints[plan.endpoint], in: slot) {
            exchange throws(TransportError) in
            outcome = try await read(exchange, plan)
          }
          return outcome
        }
      }
    }
  }

  /// Runs a script without a pool, over a connection to the fastest of several addresses.
  private func makePrivate(_ script: ClientScript) async {
    var connection: Connection?
    for plan in script.plans {
      let deadline = deadline(of: plan)
      await run(plan, of: script) { () async throws(TransportError) in
        if connection?.isIdle != true {
          connection = try await Connection.open(to: Self.privateAddresses, on: loop, deadline: deadline)
        }
        guard let connection else { throw .internalInconsistency }
        return try await connection.cancelledWithTask { () async throws(TransportError) in
          let exchange = try await connection.send(plan.head, body: plan.body, deadline: deadline)
          return try await read(exchange, plan)
        }
      }
    }
    connection?.close()
  }

  func deadline(of plan: ClientScript.Plan) -> Deadline {
    plan.timeMax.map { loop.now.advanced(byNanoseconds: $0) } ?? .never
  }

  func request(for plan: ClientScript.Plan, until deadline: Deadline) -> PoolRequest {
    var request = PoolRequest(plan.head)
    request.body = plan.body.isEmpty ? .none : .bytes(plan.body)
    request.priority = plan.priority
    request.deadline = deadline
    return request
  }

  private func run(
    _ plan: ClientScript.Plan, of script: ClientScript, _ ask: () async throws(TransportError) -> Outcome
  ) async {
    let began = began(plan)
    let outcome: Outcome
    do throws(TransportError) {
      outcome = try await ask()
    } catch {
      outcome = .failed(error)
    }
    ended(plan, of: script, began: began, outcome)
  }

  /// - Returns: The time at which the request was made.
  func began(_ plan: ClientScript.Plan) -> UInt64 {
    kernel.note("ask", plan.number, plan.endpoint)
    return kernel.time
  }

  func ended(_ plan: ClientScript.Plan, of script: ClientScript, began: UInt64, _ outcome: Outcome) {
    oracle.ended(plan.number)
    if case .slowly = plan.reading {} else { checkTime(plan, script, began: began) }
    switch outcome {
    case .read(let count): kernel.note("read", plan.number, count)
    case .left: kernel.note("left", plan.number)
    case .failed(let error):
      failures += 1
      kernel.note("failed", plan.number, code(for: error))
      check(error, of: plan, script)
    }
  }

  /// Compares a body with the bytes that the server has sent.
  struct BodyReader {
    let number: Int
    let answer: Int?
    let oracle: Oracle
    var count = 0

    mutating func take(_ piece: Span<UInt8>) {
      if let answer { oracle.delivered(piece, at: count, of: answer) }
      count += piece.count
    }

    func completed() -> Outcome {
      if let answer { oracle.completed(count, of: answer, to: number) }
      return .read(count)
    }
  }

  func reader(ofAnswer serial: String?, for plan: ClientScript.Plan) -> BodyReader {
    let answer = oracle.delivered(serial, to: plan.number)
    kernel.note("head", plan.number, answer ?? -1)
    return BodyReader(number: plan.number, answer: answer, oracle: oracle)
  }

  func read(_ exchange: Exchange, _ plan: ClientScript.Plan) async throws(TransportError) -> Outcome {
    var reader = reader(ofAnswer: exchange.value(of: "x-answer"), for: plan)
    switch plan.reading {
    case .all: while try await exchange.receiveData({ reader.take($0) }) {}
    case .collect(let bytesMax):
      let body = try await exchange.collectBody(bytesMax: bytesMax)
      reader.take(body.span)
    case .slowly(let time):
      while try await exchange.receiveData({ reader.take($0) }) { await pause(time) }
    case .parts(let most):
      for _ in 0..<most { guard try await exchange.receiveData({ reader.take($0) }) else { break } }
      return .left
    case .nothing: return .left
    case .abandon(let error): throw error
    case .closeConnection:
      exchange.connection.close()
      return .left
    case .cancel:
      exchange.canceller?.cancel()
      while try await exchange.receiveData({ reader.take($0) }) {}
      return .left
    }
    return reader.completed()
  }

  func pause(_ time: UInt64) async {
    await withCheckedContinuation { continuation in
      kernel.after(time) { [unowned self] in loop.post { continuation.resume() } }
    }
  }

  private func shutDown() {
    kernel.note("shut down", 0)
    isShutDown = true
    pool?.shutDown()
  }

  // MARK: - The world's run

  /// Runs the world to its end.
  package func run() -> Report {
    let isOver = tick { scriptsOver == scripts.count }
    oracle.check(isOver, "\(scripts.count - scriptsOver) of \(scripts.count) visits hang")
    end()
    let rests = tick { kernel.isAtRest }
    oracle.check(rests || !isOver, "the world does not come to rest")
    if isOver { checkLeftovers(pool) }
    if client != nil {
      // The end of a client posts to the loop.
      client = nil
      loop.tick()
    }
    kernel.forgetFuture()
    return Report(
      seed: seed, complaints: oracle.complaints, trace: kernel.trace, setting: "\(faults) \(options)",
      requests: oracle.requests.count, repetitions: retries?.repetitions ?? 0,
      failures: failures, connections: kernel.links.count, ticks: ticks,
      inlineCallbacks: inlineCallbacks, waits: kernel.waits,
      idleWaitsMost: kernel.idleWaitsMost, seconds: Int(kernel.time / seconds(1)))
  }

  /// Runs ticks until `isOver` returns true.
  ///
  /// - Returns: Whether `isOver` has returned true before the limits were reached.
  private func tick(until isOver: () -> Bool) -> Bool {
    var (time, ticksAtOnce) = (kernel.time, 0)
    repeat {
      loop.tick()
      ticks += 1
      ticksAtOnce = kernel.time == time ? ticksAtOnce + 1 : 0
      time = kernel.time
      if isOver() { return true }
    } while !kernel.isAtRest && ticksAtOnce < Self.ticksAtOnceMax && ticks < Self.ticksMax
      && kernel.time < SimulatedKernel.timeMax
    return false
  }

  /// Ends the pool in one of all possible ways.
  private func end() {
    switch random.number(0...3) {
    case 0: loop.post { [unowned self] in shutDown() }
    case 1: loop.post { [unowned self] in pool?.renewConnections() }
    case 2: (client, pool) = (nil, nil)
    // The pool's timers close its idle connections.
    default: break
    }
  }
}
