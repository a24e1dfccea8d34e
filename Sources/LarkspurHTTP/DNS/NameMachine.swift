import LarkspurBytes

/// A source's answer to the look-up of a name.
public enum NameAnswer<Addresses: Sendable & Equatable>: Sendable, Equatable {
  case found(Addresses)
  /// The name does not exist, or has no address.
  case noSuchName(reason: String)
  /// The look-up failed for a reason that may pass.
  case failed(reason: String)
  /// This machine lacks a resource that the look-up needs; `errno` says which.
  case unavailable(errno: Int32)
}

/// Decides when a name is looked up, and which callers get the answer (decision 10).
///
/// Theory of operation. The machine owns the cache of answers, the running look-ups, and the queue of names that wait
/// for a look-up. A name has at most one look-up, however many callers wait for it. The queue is first come, first
/// served.
///
/// ```
///  unknown --wanted-----------> running --answered--> cached --expired, evicted--> unknown
///     |                         ^  ^ |\--failed----> unknown
///     |                 its turn|  | +--cancelled, no waiters----> unknown
///     |                         |  +---cancelled, others wait: another look-up
///     +--wanted, all busy--> queued --abandoned by all--> unknown
/// ```
///
/// When no caller waits for a running look-up any more, the machine cancels it at its source. If the source cannot, the
/// look-up continues, and up to `NameLimits.abandonedLookUpsMax` of these do not count against `NameLimits.lookUpsMax`.
/// Callers that look the name up meanwhile join the look-up, and its answer is cached. Failures that may pass go to the
/// waiting callers and are not cached.
///
/// The machine does not depend on what an address is, threads, the clock, or how a source works.
///
/// Invariants. Every waiter is answered, is refused, or abandons its name, exactly once. No name is queued while
/// another look-up may start. Every `start` is followed by one `answered` or `cancelled`; facts with other numbers are
/// ignored.
public struct NameMachine<Addresses: Sendable & Equatable>: Sendable {
  /// Number of a caller, unique for each call of `requested(_:by:now:into:)`.
  public typealias WaiterID = UInt64
  public typealias LookUp = UInt64

  public enum Action: Sendable, Equatable {
    case start(LookUp, HostName)
    /// Cancel the look-up: no caller waits for it any more.
    case cancel(LookUp, HostName)
    case answer(WaiterID, NameAnswer<Addresses>)
    /// Refuse the caller: `waitersMax` or `queuedNamesMax` is reached.
    case refuse(WaiterID)
  }

  public typealias Actions = [Action]

  private struct Entry {
    var answer: NameAnswer<Addresses>
    var expiry: Deadline
  }

  private struct Pending {
    var waiters: Set<WaiterID>
    /// The running look-up, or `nil` while the name is queued.
    var lookUp: LookUp?
  }

  private var limits: NameLimits
  private var entries: [HostName: Entry] = [:]
  private var pending: [HostName: Pending] = [:]
  private var queue: [HostName] = []
  private var running: [LookUp: HostName] = [:]
  /// The abandoned ones among `running`: their source could not cancel them.
  private var left: Set<LookUp> = []
  private var waiters: [WaiterID: HostName] = [:]
  private var lookUpsStarted: LookUp = 0

  public init(limits: NameLimits = NameLimits()) {
    self.limits = limits
    // Without any look-up, all callers would wait for ever.
    self.limits.lookUpsMax = max(limits.lookUpsMax, 1)
    self.limits.abandonedLookUpsMax = max(limits.abandonedLookUpsMax, 0)
  }

  /// Number of cached names, expired ones included.
  public var entryCount: Int { entries.count }
  public var waiterCount: Int { waiters.count }
  public var runningCount: Int { running.count }
  public var queuedCount: Int { queue.count }

  // MARK: - Facts

  public mutating func requested(_ name: HostName, by waiter: WaiterID, now: Deadline, into actions: inout Actions) {
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

  /// The waiter waits no longer: its time-out has passed, or it is cancelled.
  public mutating func abandoned(by waiter: WaiterID, into actions: inout Actions) {
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
    // In the order of the waiters' numbers, because the order of a hash table differs from run to run.
    for waiter in (pending.removeValue(forKey: name)?.waiters ?? []).sorted() {
      waiters[waiter] = nil
      actions.append(.answer(waiter, answer))
    }
    startQueued(&actions)
  }

  /// The source cannot cancel the look-up, which continues as an abandoned one.
  public mutating func wentOn(_ lookUp: LookUp, into actions: inout Actions) {
    guard running[lookUp] != nil else { return }
    left.insert(lookUp)
    startQueued(&actions)
  }

  /// The source has cancelled the look-up and will not answer. Callers that have looked the name up since then get a
  /// new look-up.
  public mutating func cancelled(_ lookUp: LookUp, into actions: inout Actions) {
    guard let name = running.removeValue(forKey: lookUp) else { return }
    left.remove(lookUp)
    if let late = pending.removeValue(forKey: name)?.waiters, !late.isEmpty { start(name, for: late, &actions) }
    startQueued(&actions)
  }

  // MARK: - Decisions

  private var mayStart: Bool { running.count - min(left.count, limits.abandonedLookUpsMax) < limits.lookUpsMax }

  private mutating func start(_ name: HostName, for waiters: Set<WaiterID>, _ actions: inout Actions) {
    lookUpsStarted += 1
    running[lookUpsStarted] = name
    pending[name] = Pending(waiters: waiters, lookUp: lookUpsStarted)
    actions.append(.start(lookUpsStarted, name))
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
    // Evict the entry that expires first, or that expired longest ago.
    if entries.count >= limits.entriesMax, let first = entries.min(by: { $0.value.expiry < $1.value.expiry }) {
      entries[first.key] = nil
    }
    entries[name] = Entry(answer: answer, expiry: now.advanced(by: lifetime))
  }
}
