import LarkspurBytes

/// Decides how a file is downloaded in pieces, over several connections and from several mirrors.
///
/// The machine deals with sizes, bytes, errors and times, and with neither files nor sockets. Its owner reports facts,
/// each by one function, and executes the actions that the function returns, in their order. Times are seconds of a
/// monotonic clock; after `nextTime` the owner calls `passTime`. Facts of a lane that has ended are ignored.
///
/// ```
///   start ──► loading ──► verify ──► install ──► ended
///               ▲  │ ▲        │ wrong hash
///   other       │  │ └────────┘                  pause: loading without lanes
///   version     │  ▼
///             discarding          ending: the last checkpoint, then ended
/// ```
///
/// At most one disk action is under way. A lane fetches a range that no other lane fetches, except for the rest of a slow
/// lane, which may be fetched twice.
///
/// Invariants:
/// - Bytes of two versions are never in the part together. Before the first byte of another version, `discard` is executed.
/// - A byte counts as kept only after `checkpointed`.
/// - A lane has at most `pieceBytes` bytes that are written and not kept, unless the download cannot be resumed.
/// - The machine ends: every failure in a row is counted, and a byte that arrives is one fewer to fetch.
public struct DownloadMachine: Sendable {
  let rules: DownloadRules
  let inode: UInt64
  let fraction: @Sendable () -> Double
  let record: DownloadRecord?
  var sources: [Source]
  var version: Version?
  /// The bytes of the version that the part has.
  public internal(set) var written = ByteRanges()
  /// The bytes that the record on the disk names. Bytes that are not in `written` were wrong.
  var kept = ByteRanges()
  var work: Work?
  var isReserved = false
  /// The number of times that another version was found.
  var restarts = 0
  /// Whether a mirror of the version has stated another size than before.
  var isSizeDoubtful = false
  /// The number of times that the hashes did not fit.
  var rounds = 0
  var lastFailure = DownloadFailure.badResponse
  /// Rates of the last lanes that completed, in bytes per second.
  var completedRates: [Double] = []
  var lanesBegun = 0
  /// The time of the latest fact.
  var time = 0.0

  /// What the machine does.
  public internal(set) var phase = Phase.idle
  /// Whether `pause` was called, and `resume` was not.
  public internal(set) var isPaused = false
  /// The requests that are under way, in the order of their beginning.
  public internal(set) var lanes: [Lane] = []

  /// Creates the machine of a download that has not begun.
  ///
  /// - Parameters:
  ///   - urls: The mirrors. The first is preferred. An action names a mirror by its index.
  ///   - record: The record beside the part, whose inode is that of the part. `nil` if there is none.
  ///   - inode: The inode of the part.
  ///   - fraction: Returns random numbers from 0 to 1, which spread the delays after failures.
  public init(
    _ rules: DownloadRules, urls: [String], record: DownloadRecord?, inode: UInt64,
    fraction: @escaping @Sendable () -> Double
  ) {
    self.rules = rules.limited
    self.record = record
    self.inode = inode
    self.fraction = fraction
    sources = urls.map { Source(url: $0) }
  }

  // MARK: - Facts for display

  /// Size of the whole in bytes, or `nil` if it is not known yet.
  public var total: Int? { version?.total }
  /// Number of bytes that the part has and the record names.
  public var keptCount: Int { kept.count }
  /// Whether a later download can continue this one, or `nil` if no head has arrived.
  public var isResumable: Bool? { version.map { _ in isRecordable } }
  /// The time after which the owner calls `passTime`, or `nil` if only facts lead on.
  public var nextTime: Double? {
    guard phase == .loading, !isPaused, !isWhole else { return nil }
    var times = sources.filter { $0.failure == nil }.flatMap { [$0.readyAt, $0.moreAt] }.filter { $0 > time }
    if !lanes.isEmpty, rules.lowestRate > 0 || lanes.count < lanesMax { times.append(time + Meter.leastSeconds) }
    return times.min()
  }

  // MARK: - The owner's wishes

  /// Begins. Called once.
  public mutating func start(now: Double) -> [Action] {
    guard phase == .idle else { return [] }
    phase = .loading
    if let record {
      if use(record) { kept = record.kept } else { phase = .discarding }
    }
    return advance(now)
  }

  /// Stops all lanes. What was written is kept, if the download can be resumed.
  public mutating func pause(now: Double) -> [Action] {
    guard !isPaused, phase == .loading || phase == .discarding else { return [] }
    isPaused = true
    return stopLanes() + advance(now)
  }

  /// Continues after `pause`.
  public mutating func resume(now: Double) -> [Action] {
    isPaused = false
    return advance(now)
  }

  /// Ends the download with `.cancelled`, unless it is being installed. What was written is kept, if the download can be
  /// resumed.
  public mutating func cancel(now: Double) -> [Action] { fail(.cancelled, now) }

  /// Reports that `nextTime` has passed. Calls at other times do no harm.
  public mutating func passTime(now: Double) -> [Action] { advance(now) }
}
