import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// The place in the pool of requests that are made one after another: the request that is in flight, and its
/// cancellation.
///
/// `cancel` may be called from any thread. Everything else belongs to the loop.
public final class RequestSlot: @unchecked Sendable {
  let pool: Pool
  private(set) var isCancelled = false
  private var isBusy = false
  /// When the present request was made.
  private(set) var requested = Deadline.never
  /// The connection that the present request runs on, and the number of its exchange there.
  private var connection: Connection?
  private var number: UInt64 = 0
  /// When a request last got a connection from the pool's queue, or its turn on one.
  private var leftQueueAt = Deadline(nanoseconds: 0)
  /// The index of the pool's `PendingRequest` while the request waits for a connection, or `nil`.
  var pendingIndex: Int?
  /// Whether `requestConnection` queued the pending request and its result has not been taken since.
  public internal(set) var isRequestingConnection = false
  /// The request that has been sent. Only ever replaced, never mutated in place: that avoids exclusivity checks.
  var inFlight: InFlightRequest?
  /// The task that waits before the request leaves (`Pool.waitForProof`).
  var pause: TaskContinuation?
  /// Whether requests are held back: nothing more is sent, and no connection is taken.
  private(set) var isSuspended = false
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
    connection?.suspendSending(number)
  }

  /// Resumes what `suspend` has held back. Call it on the loop.
  public func resume() {
    isSuspended = false
    connection?.resumeSending(number)
    suspendedTask.take()?.resume()
  }

  /// Suspends while requests are held back, unless the slot is cancelled.
  func whileSuspended() async {
    while isSuspended, !isCancelled { await TaskContinuation.suspend { suspendedTask = $0 } }
  }

  /// - Returns: `false` if the slot has a request already.
  func start(at now: Deadline) -> Bool {
    guard !isBusy else { return false }
    isBusy = true
    requested = now
    return true
  }

  func end() { isBusy = false }

  /// Returns the index of the pending request that `requestConnection` queued, once.
  func takePendingIndex() -> Int? {
    defer { isRequestingConnection = false }
    return isRequestingConnection ? pendingIndex : nil
  }

  func leftQueue() { leftQueueAt = pool.loop.now }

  /// The latest moment at which a request of the slot waited for its turn: for a connection that other requests use, or
  /// for the end of others on its connection. The time in which a connection is opened for it does not belong to this
  /// wait. Read it on the loop.
  public var queuedUntil: Deadline {
    let now = pool.loop.now
    if let pendingIndex { return max(pool.wait(of: pendingIndex)?.crowdedUntil ?? now, leftQueueAt) }
    return connection?.isBehind(number) == true ? now : leftQueueAt
  }

  /// The phase of the current request: a part of opening its connection, or of its exchange. `nil` without a request.
  /// Read it on the loop.
  public var phase: TransportError.Phase? {
    if let pendingIndex {
      guard let wait = pool.wait(of: pendingIndex), wait.crowdedUntil < pool.loop.now else { return .queueing }
      return wait.endpoint.latestDial?.phase ?? .queueing
    }
    guard let connection else { return nil }
    return connection.isBehind(number) ? .queueing : connection.phase
  }

  func runs(on connection: Connection, _ number: UInt64) {
    self.connection = connection
    self.number = number
  }

  func runsNowhere() {
    // The connection is released after the access to this property has ended, because its release may run other code.
    var last: Connection?
    swap(&last, &connection)
  }

  func endPause() { pause.take()?.resume() }

  /// Wakes the owner's waiting task, which then finds that the request is cancelled.
  func endWaits() {
    endPause()
    suspendedTask.take()?.resume()
  }

  /// Cancels the request that is in flight, and no later one. Call it on the loop.
  public func cancelRunning() { connection?.cancel(number) }
}

/// Requests that have been sent by `startNow` or `sendNow`, up to their responses' heads.
extension RequestSlot {
  /// Whether a request is in flight. `Pool.start` continues it if it has to be awaited.
  public var isInFlight: Bool { inFlight != nil }

  /// Returns the exchange if the response's head has come. `Pool.start` handles the errors that this throws.
  ///
  /// - Returns: The exchange, or `nil` if the head has not come. `work` then runs when another call may succeed.
  public func answer(for work: any LoopCallback) throws(TransportError) -> RunningExchange? {
    if let failure = inFlight?.failure { throw failure }
    guard let connection = inFlight?.connection, let number = inFlight?.number, let id = inFlight?.id else {
      throw .connectionClosed
    }
    do throws(TransportError) {
      guard let exchange = try connection.head(of: number, for: work) else { return nil }
      if connection.hasRefusedAsLate, inFlight?.mayBeRepeated(after: .refusedAsLate) == true { throw .connectionClosed }
      inFlight = nil
      if failedPeer != nil { failedPeer = nil }
      return RunningExchange(exchange, on: id, in: self)
    } catch {
      var failed = inFlight
      failed?.failure = error
      inFlight = failed
      throw error
    }
  }

  /// Drops the request that is in flight.
  public func giveUp() {
    guard let given = takeInFlight() else { return }
    if let connection = given.connection { pool.ended(connection, given.id, given.number, in: self) }
    end()
  }

  func takeInFlight() -> InFlightRequest? {
    defer { if inFlight != nil { inFlight = nil } }
    return inFlight
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
  func mayBeRepeated(after end: RequestTry.End) -> Bool {
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
