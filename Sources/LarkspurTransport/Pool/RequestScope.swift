import LarkspurBytes
import LarkspurHTTP
import LarkspurIO

/// What a pool's requests are cancelled by, one after another: any thread may cancel, once and for all.
///
/// A base class for what makes such requests: an object more would take longer to make than all that it does.
open class RequestScope: @unchecked Sendable {
  public final let pool: Pool
  // The loop's.
  final private(set) var isCancelled = false
  final private var isBusy = false
  /// When the request that goes on at present was made.
  final private(set) var requested = Deadline.never
  /// What it runs on, and the number of its exchange there.
  final private var connection: Connection?
  final private var number: UInt64 = 0
  /// The pool's entry for it, while it waits for a connection.
  final var entry: Int?
  /// Whether the entry came by `ask`, and has not been looked at since.
  public final internal(set) var isAsking = false
  /// Replaced as a whole: what nobody changes in place is not guarded against two who do, each time.
  final var begun: BegunRequest?
  /// Who waits before the request leaves.
  final var pause: Waiter?
  /// Nothing is to be sent, and no connection to be taken.
  final private(set) var isHeld = false
  /// Who waits for the end of that.
  final private var held: Waiter?

  /// Whether `metrics` are wanted.
  public final let collectsMetrics: Bool
  /// One for each try of each request, in their order.
  public final internal(set) var metrics: [ExchangeMetrics] = []

  /// Whom the latest request was for, if it has failed: as far as it had come.
  public final var failedPeer: SocketAddress? {
    get { peer }
    set { peer = newValue }
  }
  final private var peer: SocketAddress?

  /// Those that have come since the last call.
  public final func takeMetrics() -> [ExchangeMetrics] {
    defer { metrics = [] }
    return metrics
  }

  /// Where its requests go. (Subclasses elsewhere need an initialiser that is public, with public types.)
  public struct Setting {
    let pool: Pool
    let collectsMetrics: Bool

    public init(of pool: Pool, collectsMetrics: Bool) {
      self.pool = pool
      self.collectsMetrics = collectsMetrics
    }
  }

  /// A scope without requests.
  public init(_ setting: Setting) {
    pool = setting.pool
    collectsMetrics = setting.collectsMetrics
  }

  public convenience init(of pool: Pool, collectsMetrics: Bool = false) {
    self.init(Setting(of: pool, collectsMetrics: collectsMetrics))
  }

  public final func cancel() {
    pool.loop.post { [self] in
      isCancelled = true
      pool.cancel(self)
    }
  }

  /// Holds back what has not been sent, until `letGo`. On the loop.
  public final func hold() {
    isHeld = true
    connection?.holdBack(number)
  }

  /// Lets go what is held back. On the loop.
  public final func letGo() {
    isHeld = false
    connection?.goOn(number)
    held.take()?.wake()
  }

  /// Waits while everything is held back, unless it is cancelled.
  final func whileHeld() async {
    while isHeld, !isCancelled { await Waiter.suspend { held = $0 } }
  }

  /// False: there is a request already.
  final func begin(at now: Deadline) -> Bool {
    guard !isBusy else { return false }
    isBusy = true
    requested = now
    return true
  }

  final func end() { isBusy = false }

  /// The entry that came by `ask`, once.
  final func takeAsking() -> Int? {
    defer { isAsking = false }
    return isAsking ? entry : nil
  }

  final func runs(on connection: Connection, _ number: UInt64) {
    self.connection = connection
    self.number = number
  }

  final func runsNowhere() {
    // Let go of it when nothing is being changed here.
    var last: Connection?
    swap(&last, &connection)
  }

  final func endPause() { pause.take()?.wake() }

  /// What waits for nothing but its owner goes on, to find that it is cancelled.
  final func endWaits() {
    endPause()
    held.take()?.wake()
  }

  final func cancelRunning() { connection?.cancel(number) }
}

/// Requests that have been sent by `beginNow` or `sendNow`, up to their responses' heads.
extension RequestScope {
  /// Whether there is one. `Pool.begin` goes on with it where it has to be waited for.
  public final var hasBegun: Bool { begun != nil }

  /// Its exchange, if the response's head is there. Nil: `work` is done when it is worth asking again. What it throws is for
  /// `Pool.begin` to look at.
  public final func answer(for work: any LoopCallback) throws(TransportError) -> RunningExchange? {
    if let failure = begun?.failure { throw failure }
    guard let connection = begun?.connection, let number = begun?.number, let id = begun?.id else {
      throw .connectionClosed
    }
    do throws(TransportError) {
      guard let exchange = try connection.head(of: number, for: work) else { return nil }
      if begun?.mayBeUnanswered(on: connection) == true { throw .connectionClosed }
      begun = nil
      if failedPeer != nil { failedPeer = nil }
      return RunningExchange(exchange, on: id, in: self)
    } catch {
      var failed = begun
      failed?.failure = error
      begun = failed
      throw error
    }
  }

  /// Nobody wants the answer.
  public final func giveUp() {
    guard let given = takeBegun() else { return }
    if let connection = given.connection { pool.ended(connection, given.id, given.number, in: self) }
    end()
  }

  final func takeBegun() -> BegunRequest? {
    defer { if begun != nil { begun = nil } }
    return begun
  }
}

/// A request of a pool's that has been sent; or that could not be. The connection is its own, or it is behind others there.
struct BegunRequest {
  let id: PoolMachine.ConnectionID
  let order: UInt64
  /// Nil: it had been closed.
  let connection: Connection?
  /// The connection was asked for as one that nobody had used.
  let wantsFresh: Bool
  /// Of the exchange. Nil: it has not begun.
  var number: UInt64?
  var isAlone = true
  private let isRepeatable: Bool
  private let isIdempotent: Bool
  /// Why there is no answer to be had. (Errors are large, and rare.)
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
    id: PoolMachine.ConnectionID, order: UInt64, connection: Connection?, wantsFresh: Bool, isRepeatable: Bool,
    isIdempotent: Bool
  ) {
    self.id = id
    self.order = order
    self.connection = connection
    self.wantsFresh = wantsFresh
    self.isRepeatable = isRepeatable
    self.isIdempotent = isIdempotent
  }

  /// Whether the head that has come may not be its answer, and it may be sent once more.
  @inline(__always)
  func mayBeUnanswered(on connection: Connection) -> Bool {
    connection.mayHaveBeenLate && !wantsFresh && isRepeatable && (isIdempotent || connection.holdsBody)
  }
}

/// A request of a pool's from its response's head on: while it is held, the connection is its own. It belongs to the loop's
/// thread.
public struct RunningExchange: ~Copyable {
  public let exchange: Exchange
  private let id: PoolMachine.ConnectionID
  private let scope: RequestScope

  @inline(__always)
  init(_ exchange: Exchange, on id: PoolMachine.ConnectionID, in scope: RequestScope) {
    self.exchange = exchange
    self.id = id
    self.scope = scope
  }

  /// Gives the connection back.
  public consuming func end() {}

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
