import LarkspurBytes
import LarkspurHTTP

/// How fast a connection may go, and how long it may stand still.
///
/// It is looked at only when something is limited (`ConnectionCore.isTimed`). Deadlines are told to the channel when a wait
/// begins, and never taken back: one that moves on with each byte costs a store.
struct Pace {
  // Nanoseconds: a duration takes twice the room, and is long to convert.
  private var sendMax = UInt64.max
  private var firstByteMax = UInt64.max
  private var idleMax = UInt64.max
  private(set) var total = Deadline.never
  private(set) var continueDeadline = Deadline.never
  /// When something has moved last, or somebody began to ask.
  private var progress = Deadline.never
  private var hasFirstByte = false
  private var isAsked = false
  /// Which time is the present wait's.
  private(set) var limit = Timeouts.Limit.total

  /// Nil for most connections.
  private var rates: Rates?

  private final class Rates {
    var sending: TokenBucket?
    var receiving: TokenBucket?

    init(sending: TokenBucket?, receiving: TokenBucket?) {
      self.sending = sending
      self.receiving = receiving
    }
  }

  mutating func begin(_ timeouts: Timeouts, total: Deadline, at now: Deadline) {
    sendMax = timeouts.sendMax
    firstByteMax = timeouts.firstByteMax
    idleMax = timeouts.idleMax
    self.total = total
    continueDeadline = now.advanced(byNanoseconds: timeouts.expectationMax)
    progress = now
    hasFirstByte = false
    isAsked = true
    limit = .total
  }

  // MARK: - Rates

  /// Whether a rate is limited.
  var isLimited: Bool { rates != nil }

  mutating func limit(sending: Int?, receiving: Int?, at now: Deadline) {
    guard sending != nil || receiving != nil else { return rates = nil }
    rates = Rates(
      sending: sending.map { TokenBucket(bytesPerSecond: $0, now: now) },
      receiving: receiving.map { TokenBucket(bytesPerSecond: $0, now: now) })
  }

  func sendingAllowance(at now: Deadline) -> Int { rates?.sending?.available(at: now) ?? .max }

  func receivingAllowance(at now: Deadline) -> Int { rates?.receiving?.available(at: now) ?? .max }

  /// Until when nothing may be sent. Nil: something may.
  func sendingPause(at now: Deadline) -> Deadline? { Self.pause(rates?.sending, at: now) }
  func receivingPause(at now: Deadline) -> Deadline? { Self.pause(rates?.receiving, at: now) }

  private static func pause(_ bucket: TokenBucket?, at now: Deadline) -> Deadline? {
    guard let bucket, bucket.available(at: now) == 0 else { return nil }
    return bucket.refill
  }

  // MARK: - Facts

  mutating func progressed(at now: Deadline) { progress = now }

  mutating func sent(_ count: Int, at now: Deadline) {
    rates?.sending?.take(count, at: now)
    progress = now
  }

  mutating func received(_ count: Int, isSending: Bool, at now: Deadline) {
    rates?.receiving?.take(count, at: now)
    // A server that talks without taking anything makes no progress.
    guard !isSending else { return }
    hasFirstByte = true
    progress = now
  }

  /// Somebody asks for the body. How long nobody did is not the server's fault.
  mutating func asked(at now: Deadline) {
    if !isAsked { progress = now }
    isAsked = true
  }

  mutating func answered() { isAsked = false }

  // MARK: - Waiting

  /// When a wait that begins now ends as a failure, and why: `limit`. `stands`: there is nothing to send, and that is not
  /// the server's fault.
  mutating func deadline(in phase: TransportError.Phase, stands: Bool, pause: Deadline?) -> Deadline {
    let (nanoseconds, limit): (UInt64, Timeouts.Limit) =
      switch phase {
      case .sending: (stands ? .max : sendMax, .send)
      case .awaitingHead where !hasFirstByte: (firstByteMax, .firstByte)
      default: (idleMax, .idle)
      }
    let own = max(progress, pause ?? progress).advanced(byNanoseconds: nanoseconds)
    self.limit = own < total ? limit : .total
    return min(own, total)
  }
}

extension ConnectionCore {
  mutating func limit(sending: Int?, receiving: Int?) {
    pace.limit(sending: sending, receiving: receiving, at: loop.now)
    isTimed = isTimed || pace.isLimited
  }

  /// Lets the body leave if the server has had its time to say 100 (Continue).
  mutating func checkExpectation() {
    if pace.continueDeadline <= loop.now { endExpectation() }
  }

  /// Lets the body leave if it waits for 100 (Continue).
  mutating func endExpectation() {
    if sender == .awaiting100Continue { sender = .body }
  }

  /// Says when the wait that begins now is to end. False: it is not for reading.
  mutating func prepareWait(for channel: Channel, writing: Bool) -> Bool {
    let receivingPause = pace.receivingPause(at: loop.now)
    var sendingPause: Deadline?
    var continueDeadline = Deadline.never
    switch sender {
    case .done: break
    case .queue, .body: sendingPause = pace.sendingPause(at: loop.now)
    case .awaiting100Continue: continueDeadline = pace.continueDeadline
    }
    channel.setAlarm(min(receivingPause ?? .never, sendingPause ?? .never, continueDeadline))
    // What the server does not take any more is not being sent.
    let isUnsent = phase == .sending && sender == .done
    let phase: TransportError.Phase = machine.isSendingOnly ? .sending : isUnsent ? .awaitingHead : phase
    channel.setDeadline(
      pace.deadline(
        in: phase, stands: !writing && sendingPause == nil, pause: phase == .sending ? sendingPause : receivingPause))
    return receivingPause == nil
  }
}
