import LarkspurBytes
import LarkspurHTTP

/// The rate limits of a connection and the time limits of its current exchange.
///
/// Performance: a pace is consulted only if something is limited (`ConnectionCore.isTimed`). Deadlines are set on the
/// channel when a wait begins and never removed, because moving one to a later time costs a store.
struct Pace {
  // The limits in nanoseconds. Performance: a `Duration` has twice the size and is slow to convert.
  private var sendMax = UInt64.max
  private var firstByteMax = UInt64.max
  private var idleMax = UInt64.max
  private(set) var total = Deadline.never
  private(set) var continueDeadline = Deadline.never
  /// The time of the latest progress, or at which the caller began to wait for more.
  private var progress = Deadline.never
  private var hasFirstByte = false
  private var isAsked = false
  /// The limit that ends the current wait.
  private(set) var limit = Timeouts.Limit.total

  /// The lower limit of the rate, or `nil` for most exchanges. Boxed, so that connections are small.
  private var floor: Floor?

  private final class Floor {
    var value: RateFloor
    init(_ value: RateFloor) { self.value = value }
  }

  /// The rate limits that apply together. Empty for most connections.
  private var rates: [ByteRates] = []

  mutating func start(_ timeouts: Timeouts, total: Deadline, at now: Deadline) {
    sendMax = timeouts.sendMax
    firstByteMax = timeouts.firstByteMax
    idleMax = timeouts.idleMax
    self.total = total
    continueDeadline = now.advanced(byNanoseconds: timeouts.expectationMax)
    progress = now
    hasFirstByte = false
    isAsked = true
    limit = .total
    floor = timeouts.lowestRate.map { Floor(RateFloor(bytes: $0.bytes, over: $0.over, now: now)) }
  }

  // MARK: - Rates

  /// Whether a rate is limited.
  var isLimited: Bool { !rates.isEmpty }

  mutating func limit(by rates: [ByteRates]) { self.rates = rates }

  func sendingAllowance(at now: Deadline) -> Int { Self.allowance(rates, \.sending, now) }

  func receivingAllowance(at now: Deadline) -> Int { Self.allowance(rates, \.receiving, now) }

  /// Returns the time until which nothing may be sent, or `nil` if sending is allowed.
  func sendingPause(at now: Deadline) -> Deadline? { Self.pause(rates, \.sending, now) }
  /// Returns the time until which nothing may be received, or `nil` if receiving is allowed.
  func receivingPause(at now: Deadline) -> Deadline? { Self.pause(rates, \.receiving, now) }

  private typealias Direction = ReferenceWritableKeyPath<ByteRates, TokenBucket?>

  private static func allowance(_ rates: [ByteRates], _ direction: Direction, _ now: Deadline) -> Int {
    rates.reduce(.max) { min($0, $1[keyPath: direction]?.available(at: now) ?? .max) }
  }

  private static func pause(_ rates: [ByteRates], _ direction: Direction, _ now: Deadline) -> Deadline? {
    guard allowance(rates, direction, now) == 0 else { return nil }
    // Connections that share a bucket wake at the same moment, and the first one takes its bytes.
    return rates.compactMap { $0[keyPath: direction]?.refill }.max()
  }

  // MARK: - Facts

  mutating func progressed(at now: Deadline) { progress = now }

  mutating func sent(_ count: Int, at now: Deadline) {
    for rate in rates { rate.sending?.take(count, at: now) }
    progress = now
    floor?.value.moved(count, at: now)
  }

  mutating func received(_ count: Int, isSending: Bool, at now: Deadline) {
    for rate in rates { rate.receiving?.take(count, at: now) }
    // A server that sends without taking anything of the request makes no progress.
    guard !isSending else { return }
    hasFirstByte = true
    progress = now
    floor?.value.moved(count, at: now)
  }

  /// Notes that the caller waits for the body. Other time does not count for the idle limit.
  mutating func asked(at now: Deadline) {
    if !isAsked { progress = now }
    isAsked = true
  }

  mutating func answered(at now: Deadline) {
    isAsked = false
    floor?.value.pause(at: now)
  }

  // MARK: - Waiting

  /// Returns the deadline of a wait that begins now, and stores the reason for its failure in `limit`.
  ///
  /// - Parameter stands: Whether there is nothing to send, so that the `send` limit does not count.
  mutating func deadline(
    in phase: TransportError.Phase, stands: Bool, pause: Deadline?, at now: Deadline
  ) -> Deadline {
    let (nanoseconds, limit): (UInt64, Timeouts.Limit) =
      switch phase {
      case .sending: (stands ? .max : sendMax, .send)
      case .awaitingHead where !hasFirstByte: (firstByteMax, .firstByte)
      default: (idleMax, .idle)
      }
    let own = max(progress, pause ?? progress).advanced(byNanoseconds: nanoseconds)
    self.limit = own < total ? limit : .total
    guard let floor else { return min(own, total) }
    // Only the bytes of bodies, and of a request's head, are due.
    let isDue = pause == nil && (phase == .sending ? !stands : phase == .receivingBody)
    if isDue { floor.value.resume(at: now) } else { floor.value.pause(at: now) }
    if floor.value.end < min(own, total) { self.limit = .lowestRate }
    return min(own, total, floor.value.end)
  }
}

extension ConnectionCore {
  mutating func limit(by rates: [ByteRates]) {
    pace.limit(by: rates)
    isTimed = isTimed || pace.isLimited
  }

  /// Lets the body leave if the wait for `100 Continue` has lasted long enough.
  mutating func checkExpectation() {
    if pace.continueDeadline <= loop.now { endExpectation() }
  }

  /// Lets the body leave if it waits for `100 Continue`.
  mutating func endExpectation() {
    if sender == .awaiting100Continue { sender = .body }
  }

  /// Sets the channel's deadline and wake-up time for the wait that begins now.
  ///
  /// - Returns: `false` if the wait is not for reading, because of the rate limit.
  mutating func prepareWait(for channel: Channel, writing: Bool) -> Bool {
    let receivingPause = pace.receivingPause(at: loop.now)
    var sendingPause: Deadline?
    var continueDeadline = Deadline.never
    switch sender {
    case .done: break
    case .queue, .body: sendingPause = pace.sendingPause(at: loop.now)
    case .awaiting100Continue: continueDeadline = pace.continueDeadline
    }
    channel.setWakeUpTime(min(receivingPause ?? .never, sendingPause ?? .never, continueDeadline))
    // If the server takes no more of the request, the wait is for the response.
    let isUnsent = phase == .sending && sender == .done
    let phase: TransportError.Phase = machine.isSendingOnly ? .sending : isUnsent ? .awaitingHead : phase
    channel.setDeadline(
      pace.deadline(
        in: phase, stands: !writing && sendingPause == nil, pause: phase == .sending ? sendingPause : receivingPause,
        at: loop.now))
    return receivingPause == nil
  }
}
