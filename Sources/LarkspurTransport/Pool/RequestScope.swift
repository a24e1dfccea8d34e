import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// What a pool's requests are cancelled by, one after another: any thread may cancel, once and for all.
package final class RequestScope: @unchecked Sendable {
  package let pool: Pool
  // The loop's.
  private(set) var isCancelled = false
  private var isBusy = false
  /// When the request that goes on at present was made.
  private(set) var requested = Deadline.never
  /// What it runs on, and the number of its exchange there.
  private var connection: Connection?
  private var number: UInt64 = 0
  /// The pool's entry for it, while it waits for a connection.
  var entry: Int?
  /// Whether that came by `ask`, and nobody has looked at it since.
  var isAsking = false
  /// Who waits before the request leaves.
  var pause: Waiter?
  /// Nothing is to be sent, and no connection to be taken.
  private(set) var isHeld = false
  /// Who waits for the end of that.
  private var held: Waiter?

  /// Whether `metrics` are wanted.
  let collectsMetrics: Bool
  /// One for each try of each request, in their order.
  package internal(set) var metrics: [ExchangeMetrics] = []

  /// Whom the latest request was for, if it has failed: as far as it had come.
  package var failedPeer: SocketAddress? {
    get { peer }
    set { peer = newValue }
  }
  private var peer: SocketAddress?

  /// Those that have come since the last call.
  package func takeMetrics() -> [ExchangeMetrics] {
    defer { metrics = [] }
    return metrics
  }

  package init(of pool: Pool, collectsMetrics: Bool = false) {
    self.pool = pool
    self.collectsMetrics = collectsMetrics
  }

  package func cancel() {
    pool.loop.post { [self] in
      isCancelled = true
      pool.cancel(self)
    }
  }

  /// Holds back what has not been sent, until `letGo`. On the loop.
  package func hold() {
    isHeld = true
    connection?.holdBack(number)
  }

  /// Lets go what is held back. On the loop.
  package func letGo() {
    isHeld = false
    connection?.goOn(number)
    held.take()?.wake()
  }

  /// Waits while everything is held back, unless it is cancelled.
  func whileHeld() async {
    while isHeld, !isCancelled { await Waiter.suspend { held = $0 } }
  }

  /// False: there is a request already.
  func begin(at now: Deadline) -> Bool {
    guard !isBusy else { return false }
    isBusy = true
    requested = now
    return true
  }

  func end() { isBusy = false }

  /// The entry that came by `ask`, once.
  func takeAsking() -> Int? {
    defer { isAsking = false }
    return isAsking ? entry : nil
  }

  func runs(on connection: Connection, _ number: UInt64) {
    self.connection = connection
    self.number = number
  }

  func runsNowhere() {
    // Let go of it when nothing is being changed here.
    var last: Connection?
    swap(&last, &connection)
  }

  func endPause() { pause.take()?.wake() }

  /// What waits for nothing but its owner goes on, to find that it is cancelled.
  func endWaits() {
    endPause()
    held.take()?.wake()
  }

  func cancelRunning() { connection?.cancel(number) }
}

/// A request of a pool's that has been sent, up to its response's head; or that could not be. The connection is its own, or it is
/// behind others there.
package struct BegunRequest: ~Copyable {
  let id: PoolMachine.ConnectionID
  let order: UInt64
  /// Nil: it had been closed.
  let connection: Connection?
  /// The connection was asked for as one that nobody had used.
  let wantsFresh: Bool
  /// Of the exchange. Nil: it has not begun.
  var number: UInt64?
  var isAlone = true
  /// Why there is no answer to be had.
  package var failure: TransportError?

  /// The exchange, if the response's head is there. Nil: `work` is done when it is worth asking again. What it throws is for
  /// `Pool.begin` to look at.
  package func answer(for work: any LoopWork, in scope: RequestScope) throws(TransportError) -> RunningExchange? {
    if let failure { throw failure }
    guard let connection, let number else { throw .connectionClosed }
    guard let exchange = try connection.head(of: number, for: work) else { return nil }
    // (What was sent by `beginNow` or `sendNow` may be sent again.)
    if !wantsFresh, connection.mayHaveBeenLate { throw .connectionClosed }
    if scope.failedPeer != nil { scope.failedPeer = nil }
    return RunningExchange(exchange, on: id, in: scope)
  }

  /// Nobody wants the answer.
  package func giveUp(in scope: RequestScope) {
    if let connection { scope.pool.ended(connection, id, number, in: scope) }
    scope.end()
  }
}

/// A request of a pool's from its response's head on: while it is held, the connection is its own. It belongs to the loop's
/// thread.
package struct RunningExchange: ~Copyable {
  package let exchange: Exchange
  private let id: PoolMachine.ConnectionID
  private let scope: RequestScope

  @inline(__always)
  init(_ exchange: Exchange, on id: PoolMachine.ConnectionID, in scope: RequestScope) {
    self.exchange = exchange
    self.id = id
    self.scope = scope
  }

  /// Gives the connection back.
  package consuming func end() {}

  deinit {
    guard !scope.pool.loop.isCurrent else { return scope.pool.ended(exchange, id, in: scope) }
    let late = Late(exchange: exchange, id: id, scope: scope)
    scope.pool.loop.post { late.scope.pool.ended(late.exchange, late.id, in: late.scope) }
  }

  /// On its way back to the loop.
  private struct Late: @unchecked Sendable {
    let exchange: Exchange
    let id: PoolMachine.ConnectionID
    let scope: RequestScope
  }
}
