import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The place in the pool of requests that are made one after another: the request that is in flight, and its
/// cancellation.
///
/// `cancel` may be called from any thread. Everything else belongs to the loop.
public final class RequestSlot: @unchecked Sendable {
  /// The progress of the slot's request. The states hold no references, so that reading one does not retain anything.
  enum State {
    /// There is no request.
    case idle
    /// The request has neither a connection nor a place in the queue.
    case started
    /// A task waits in the queue, under this index of the pool's `PendingRequest`s.
    case queued(Int)
    /// A callback waits in the queue, or has not used the result of its wait.
    case subscribed(Int)
    /// The request has been sent for a callback, or could not be sent, and its response's head has not been taken.
    case sent
    /// The exchange belongs to a task, or to a `RunningExchange`.
    case running
  }

  let pool: Pool
  /// The number of the load that makes the requests, for the pool's observer. `nil` if there is none.
  public var task: Int?
  public private(set) var isCancelled = false
  /// Whether requests are held back: nothing more is sent, and no connection is taken.
  private(set) var isSuspended = false
  /// Only ever replaced, never mutated in place: that avoids exclusivity checks.
  var state = State.idle
  /// The request of the states `sent` and `running`. Only ever replaced, as `state` is.
  private var inFlight: InFlightRequest?
  /// When the current request was made.
  private(set) var requested = Deadline.never
  /// When a request last got a connection from the pool's queue, or its turn on one.
  private var leftQueueAt = Deadline(nanoseconds: 0)
  /// The task that waits before the request leaves (`Pool.waitForProof`).
  var pause: TaskContinuation?
  /// Whether the request waits for its rate limit.
  private var isPaced = false
  /// The task that waits until requests are no longer held back.
  private var suspendedTask: TaskContinuation?

  /// Whether the owner reads `metrics`.
  public let collectsMetrics: Bool
  /// The metrics of each try of each request, in their order.
  public internal(set) var metrics: [ExchangeMetrics] = []
  /// The address of the latest failed request's peer, if one was reached.
  public var failedPeer: SocketAddress?

  /// Returns the metrics that have been added since the last call.
  public func takeMetrics() -> [ExchangeMetrics] {
    guard !metrics.isEmpty else { return [] }
    defer { metrics = [] }
    return metrics
  }

  /// Creates a slot without a request.
  public init(of pool: Pool, collectsMetrics: Bool = false) {
    self.pool = pool
    self.collectsMetrics = collectsMetrics
  }

  public func cancel() {
    pool.loop.post { [self] in
      isCancelled = true
      pool.cancel(self)
    }
  }

  /// Holds back what has not been sent, until `resume`. Call it on the loop.
  public func suspend() {
    isSuspended = true
    if let (connection, number) = exchange { connection.suspendSending(number) }
  }

  /// Resumes what `suspend` has held back. Call it on the loop.
  public func resume() {
    isSuspended = false
    if let (connection, number) = exchange { connection.resumeSending(number) }
    suspendedTask.take()?.resume()
  }

  /// Suspends until the rate limit lets the request leave, or it is cancelled.
  func whilePaced() async {
    isPaced = true
    await TaskContinuation.suspend { pause = $0 }
    isPaced = false
    leftQueue()
  }

  /// Suspends while requests are held back, unless the slot is cancelled.
  func whileSuspended() async {
    while isSuspended, !isCancelled { await TaskContinuation.suspend { suspendedTask = $0 } }
  }

  /// - Returns: `false` if the slot has a request already.
  func start(at now: Deadline) -> Bool {
    guard case .idle = state else { return false }
    state = .started
    requested = now
    return true
  }

  func end() {
    state = .idle
    if inFlight != nil { inFlight = nil }
  }

  /// The index of the pool's `PendingRequest` while the request is in the queue.
  private var pendingIndex: Int? {
    switch state {
    case .queued(let index), .subscribed(let index): index
    case .idle, .started, .sent, .running: nil
    }
  }

  /// The exchange of the request that has been sent.
  private var exchange: (connection: Connection, number: UInt64)? {
    switch state {
    case .sent, .running: inFlight?.exchange
    case .idle, .started, .queued, .subscribed: nil
    }
  }

  func leftQueue() { leftQueueAt = pool.loop.now }

  /// The latest moment at which a request of the slot waited for its turn: for a connection that other requests use, or
  /// for the end of others on its connection. The time in which a connection is opened for it does not belong to this
  /// wait. Read it on the loop.
  public var queuedUntil: Deadline {
    let now = pool.loop.now
    if isPaced { return now }
    if let pendingIndex { return max(pool.wait(of: pendingIndex)?.crowdedUntil ?? now, leftQueueAt) }
    guard let (connection, number) = exchange, connection.isBehind(number) else { return leftQueueAt }
    return now
  }

  /// The phase of the current request: a part of opening its connection, or of its exchange. `nil` without a request.
  /// Read it on the loop.
  public var phase: TransportError.Phase? {
    if let pendingIndex {
      guard let wait = pool.wait(of: pendingIndex), wait.crowdedUntil < pool.loop.now else { return .queueing }
      return wait.endpoint.latestDial?.phase ?? .queueing
    }
    guard let (connection, number) = exchange else { return isPaced ? .queueing : nil }
    return connection.isBehind(number) ? .queueing : connection.phase
  }

  /// Notes that the request has been sent for a callback.
  func hasSent(_ request: InFlightRequest) {
    state = .sent
    inFlight = request
  }

  /// Notes that a task continues the request, which has been sent.
  func runs(_ request: InFlightRequest) {
    state = request.exchange == nil ? .started : .running
    inFlight = request
  }

  func runsNowhere() {
    state = .started
    // The connection is released after the access to this property has ended, because its release may run other code.
    var last: InFlightRequest?
    swap(&last, &inFlight)
  }

  func endPause() { pause.take()?.resume() }

  /// Wakes the owner's waiting task, which then finds that the request is cancelled.
  func endWaits() {
    endPause()
    suspendedTask.take()?.resume()
    if let pendingIndex { pool.withdraw(pendingIndex, .cancelled) }
  }

  /// Cancels the request that has been sent, and no later one. Call it on the loop.
  public func cancelRunning() { if let (connection, number) = exchange { connection.cancel(number) } }
}

/// Requests of callbacks (`Pool.send`), up to their responses' heads.
extension RequestSlot {
  /// Whether a callback waits for a connection or for a response's head. `Pool.start` continues the request if it has to
  /// be awaited.
  public var isInFlight: Bool {
    switch state {
    case .subscribed, .sent: true
    case .idle, .started, .queued, .running: false
    }
  }

  /// Whether the request has been sent, and `answer` continues it.
  public var isSent: Bool { if case .sent = state { true } else { false } }

  /// Returns the exchange if the response's head has arrived. `Pool.start` handles the errors that this throws.
  ///
  /// - Returns: The exchange, or `nil` if the head has not arrived. `work` then runs when another call may succeed.
  public func answer(for work: any LoopCallback) throws(TransportError) -> RunningExchange? {
    guard isSent else { throw .connectionClosed }
    if let failure = inFlight?.failure { throw failure }
    guard let connection = inFlight?.connection, let number = inFlight?.number, let id = inFlight?.id else {
      throw .connectionClosed
    }
    do throws(TransportError) {
      guard let exchange = try connection.head(of: number, for: work) else { return nil }
      if connection.hasRefusedAsLate, inFlight?.mayBeRepeated(after: .refusedAsLate) == true { throw .connectionClosed }
      state = .running
      if failedPeer != nil { failedPeer = nil }
      return RunningExchange(exchange, on: id, in: self)
    } catch {
      var failed = inFlight
      failed?.failure = error
      inFlight = failed
      throw error
    }
  }

  /// Drops the request of a callback, if there is one.
  public func withdraw() {
    switch state {
    case .subscribed(let index): pool.withdrawSubscription(index, in: self)
    case .sent:
      if let request = inFlight, let connection = request.connection {
        pool.ended(connection, request.id, request.number, in: self)
      }
    case .idle, .started, .queued, .running: return
    }
    end()
  }

  /// Returns the request that has been sent for a callback, for a task to continue it.
  func takeSent() -> InFlightRequest? {
    guard isSent, let request = inFlight else { return nil }
    runs(request)
    return request
  }
}

/// A request that has been sent over a pool's connection, or could not be sent.
struct InFlightRequest {
  let id: PoolMachine.ConnectionID
  let sequenceNumber: UInt64
  /// The connection, or `nil` if it had been closed.
  let connection: Connection?
  /// The number of the exchange, or `nil` if it has not begun.
  var number: UInt64?
  var exchange: (connection: Connection, number: UInt64)? {
    if let connection, let number { (connection, number) } else { nil }
  }
  var isAlone = true
  private let attempt: RequestTry
  /// The reason why there is no response. Boxed, because errors are large and rare.
  var failure: TransportError? {
    get { failed?.error }
    set { failed = newValue.map(Failure.init) }
  }
  private var failed: Failure?

  private final class Failure {
    let error: TransportError
    init(_ error: TransportError) { self.error = error }
  }

  init(
    id: PoolMachine.ConnectionID, sequenceNumber: UInt64, connection: Connection?, attempt: RequestTry
  ) {
    self.id = id
    self.sequenceNumber = sequenceNumber
    self.connection = connection
    self.attempt = attempt
  }

  /// Whether the request may be sent once more, over another connection.
  func mayBeRepeated(after end: RequestTry.Outcome) -> Bool {
    (connection?.observed(attempt, isStarted: number != nil) ?? attempt).mayBeRepeated(after: end)
  }
}

/// A request of a pool from its response's head on. It keeps its connection until it ends. It belongs to the loop's
/// thread.
public struct RunningExchange: ~Copyable {
  public let exchange: Exchange
  private let id: PoolMachine.ConnectionID
  private let slot: RequestSlot

  @inline(__always)
  init(_ exchange: Exchange, on id: PoolMachine.ConnectionID, in slot: RequestSlot) {
    self.exchange = exchange
    self.id = id
    self.slot = slot
  }

  /// Returns the connection to the pool.
  public consuming func end() {}

  deinit {
    guard !slot.pool.loop.isCurrent else { return slot.pool.ended(exchange, id, in: slot) }
    let late = Late(exchange: exchange, id: id, slot: slot)
    slot.pool.loop.post { late.slot.pool.ended(late.exchange, late.id, in: late.slot) }
  }

  /// The end of an exchange, carried back to the loop.
  private struct Late: @unchecked Sendable {
    let exchange: Exchange
    let id: PoolMachine.ConnectionID
    let slot: RequestSlot
  }
}
