import LarkspurBytes

/// What a source has found out about a name.
public enum NameAnswer<Addresses: Sendable & Equatable>: Sendable, Equatable {
  case found(Addresses)
  /// The name does not exist, or has no address.
  case noSuchName(reason: String)
  /// Nobody could tell: another time it may be different.
  case failed(reason: String)
  /// This machine is out of something that looking up needs; the system's number for it.
  case unavailable(errno: Int32)
}

/// Decides which names are looked up when, and who gets to know what.
///
/// Theory of operation. It owns what is remembered of names, the look-ups that run, and the queue of names whose turn
/// has not come. A name has at most one look-up, however many wait for it. The queue is first come, first served.
///
/// ```
///  unknown --wanted-----------> running --answered--> remembered --expired, evicted--> unknown
///     |                         ^  ^ |\--failed----> unknown
///     |                 its turn|  | +--cancelled, nobody waits--> unknown
///     |                         |  +---cancelled, others wait: another look-up
///     +--wanted, all busy--> queued --abandoned by all--> unknown
/// ```
///
/// A running look-up that nobody waits for is to be cancelled. A source that cannot do that goes on beside the look-ups that
/// are allowed at once; those who come meanwhile join, and its answer is remembered. Failures that may pass go to those who wait and are not remembered.
///
/// It does not know: what an address is, threads, the clock, how a source works.
///
/// Invariants. Every waiter is answered, refused or has abandoned, exactly once. No name is queued while a look-up is
/// free. Every `start` is followed by one `answered` or `cancelled`; what comes for other numbers is ignored.
public struct NameMachine<Addresses: Sendable & Equatable>: Sendable {
  /// A caller's number: it has not been used before.
  public typealias Waiter = UInt64
  public typealias LookUp = UInt64

  public enum Action: Sendable, Equatable {
    case start(LookUp, HostName)
    /// Nobody waits for it any more.
    case cancel(LookUp, HostName)
    case answer(Waiter, NameAnswer<Addresses>)
    /// There is too much under way.
    case refuse(Waiter)
  }

  public typealias Actions = [Action]

  private struct Entry {
    var answer: NameAnswer<Addresses>
    var expiry: Deadline
  }

  private struct Pending {
    var waiters: Set<Waiter>
    /// Nil: queued.
    var lookUp: LookUp?
  }

  private var limits: NameLimits
  private var entries: [HostName: Entry] = [:]
  private var pending: [HostName: Pending] = [:]
  private var queue: [HostName] = []
  private var running: [LookUp: HostName] = [:]
  /// Those of them that nobody waited for, and that could not be cancelled.
  private var left: Set<LookUp> = []
  private var waiters: [Waiter: HostName] = [:]
  private var lookUpsBegun: LookUp = 0

  public init(limits: NameLimits = NameLimits()) {
    self.limits = limits
    // With none at all everybody would wait for ever.
    self.limits.lookUpsMax = max(limits.lookUpsMax, 1)
    self.limits.abandonedLookUpsMax = max(limits.abandonedLookUpsMax, 0)
  }

  /// Names that are remembered, whether their time is up or not.
  public var entryCount: Int { entries.count }
  public var waiterCount: Int { waiters.count }
  public var runningCount: Int { running.count }
  public var queuedCount: Int { queue.count }

  // MARK: - Facts

  public mutating func wanted(_ name: HostName, by waiter: Waiter, now: Deadline, into actions: inout Actions) {
    if let entry = entries[name] {
      if entry.expiry > now { return actions.append(.answer(waiter, entry.answer)) }
      entries[name] = nil
    }
    guard waiters.count < limits.waitersMax else { return actions.append(.refuse(waiter)) }
    if pending[name] != nil {
      pending[name]?.waiters.insert(waiter)
    } else if mayStart {
      start(name, for: [waiter], &actions)
    } else if queue.count < limits.queuedNamesMax {
      queue.append(name)
      pending[name] = Pending(waiters: [waiter])
    } else {
      return actions.append(.refuse(waiter))
    }
    waiters[waiter] = name
  }

  /// The waiter has gone: its time is up, or it is cancelled.
  public mutating func abandoned(by waiter: Waiter, into actions: inout Actions) {
    guard let name = waiters.removeValue(forKey: waiter), var wait = pending[name] else { return }
    wait.waiters.remove(waiter)
    pending[name] = wait
    guard wait.waiters.isEmpty else { return }
    if let lookUp = wait.lookUp { return actions.append(.cancel(lookUp, name)) }
    pending[name] = nil
    queue.removeAll { $0 == name }
  }

  public mutating func answered(
    _ lookUp: LookUp, _ answer: NameAnswer<Addresses>, now: Deadline, into actions: inout Actions
  ) {
    guard let name = running.removeValue(forKey: lookUp) else { return }
    left.remove(lookUp)
    remember(answer, of: name, now)
    // In the order in which they came: a hash table's own order differs from run to run.
    for waiter in (pending.removeValue(forKey: name)?.waiters ?? []).sorted() {
      waiters[waiter] = nil
      actions.append(.answer(waiter, answer))
    }
    startQueued(&actions)
  }

  /// The source cannot end the look-up that nobody waits for.
  public mutating func wentOn(_ lookUp: LookUp, into actions: inout Actions) {
    guard running[lookUp] != nil else { return }
    left.insert(lookUp)
    startQueued(&actions)
  }

  /// The source has ended the look-up and will not answer. Those who have come since it was told need another one.
  public mutating func cancelled(_ lookUp: LookUp, into actions: inout Actions) {
    guard let name = running.removeValue(forKey: lookUp) else { return }
    left.remove(lookUp)
    if let late = pending.removeValue(forKey: name)?.waiters, !late.isEmpty { start(name, for: late, &actions) }
    startQueued(&actions)
  }

  // MARK: - Decisions

  private var mayStart: Bool { running.count - min(left.count, limits.abandonedLookUpsMax) < limits.lookUpsMax }

  private mutating func start(_ name: HostName, for waiters: Set<Waiter>, _ actions: inout Actions) {
    lookUpsBegun += 1
    running[lookUpsBegun] = name
    pending[name] = Pending(waiters: waiters, lookUp: lookUpsBegun)
    actions.append(.start(lookUpsBegun, name))
  }

  private mutating func startQueued(_ actions: inout Actions) {
    while mayStart, !queue.isEmpty {
      let name = queue.removeFirst()
      start(name, for: pending[name]?.waiters ?? [], &actions)
    }
  }

  private mutating func remember(_ answer: NameAnswer<Addresses>, of name: HostName, _ now: Deadline) {
    let lifetime: Duration
    switch answer {
    case .found: lifetime = limits.foundLifetime
    case .noSuchName: lifetime = limits.noSuchNameLifetime
    case .failed, .unavailable: return
    }
    guard limits.entriesMax > 0 else { return }
    // The one that would be gone first goes. What has expired is such a one.
    if entries.count >= limits.entriesMax, let first = entries.min(by: { $0.value.expiry < $1.value.expiry }) {
      entries[first.key] = nil
    }
    entries[name] = Entry(answer: answer, expiry: now.advanced(by: lifetime))
  }
}
