import LarkspurBytes

/// The steps that the state leads to, whatever fact has changed it.
extension DownloadMachine {
  var isWhole: Bool { total.map { written.contains(0..<$0) } ?? false }

  /// Whether a later download can continue this one.
  var isRecordable: Bool { sources.contains { $0.validator != nil } }

  /// Takes the next steps.
  mutating func advance(_ now: Double) -> [Action] {
    time = max(time, now)
    var actions: [Action] = []
    switch phase {
    case .idle, .ended: return []
    case .discarding:
      actions += cancelLanes { _ in true }
      if work == nil { actions.append(begin(.discard, .discard)) }
    case .ending(let failure):
      actions += cancelLanes { _ in true }
      guard work == nil else { return actions }
      if !isRecordable, !written.isEmpty {
        actions.append(begin(.discard, .discard))
      } else if let action = checkpoint() {
        actions.append(action)
      } else {
        actions += finish(failure)
      }
    case .loading:
      actions += failSlowLanes(time)
      actions += stopFinishedLanes()
      guard phase == .loading else { return actions + advance(now) }
      actions += continueLanes()
      actions += diskStep()
      // Wrong bytes leave the record before right ones are written.
      if !isPaused, !isWhole, !isKeptWrong { actions += fill(time) }
      guard lanes.isEmpty, work == nil, !isPaused, !isWhole, sources.allSatisfy({ $0.failure != nil }) else { break }
      // A size that a server has once stated wrongly, and that a record may have, would end each later download.
      if isSizeDoubtful, restarts < Self.restartsMax {
        restarts += 1
        phase = .discarding
        return actions + advance(now)
      }
      return actions + fail(lastFailure, now)
    }
    return actions
  }

  private mutating func begin(_ work: Work, _ action: Action) -> Action {
    self.work = work
    return action
  }

  // MARK: - The disk

  private mutating func diskStep() -> [Action] {
    guard work == nil else { return [] }
    if let total, !isReserved, !isWhole, !isPaused { return [begin(.reserve, .reserve(total))] }
    if let action = checkpoint() { return [action] }
    guard isWhole, lanes.isEmpty, !isPaused, let total else { return [] }
    return [begin(.verify, .verify(total: total))]
  }

  /// Begins a checkpoint if it is due: if many bytes are not kept, a lane waits for it, or no lane writes.
  private mutating func checkpoint() -> Action? {
    guard isRecordable, kept != written, let version else { return nil }
    let isDue =
      lanes.isEmpty || isKeptWrong || lanes.contains(where: \.isWaiting)
      || unkeptCount >= max(rules.pieceBytes * lanes.count / 2, 1)
    guard isDue else { return nil }
    let named = sources.compactMap { source in
      source.validator.map { DownloadRecord.Source(url: source.url, validator: $0) }
    }
    let record = DownloadRecord(
      sources: named, total: version.isStated || isWhole ? version.total : nil, coding: version.coding, kept: written,
      inode: inode)
    return begin(.checkpoint(written), .checkpoint(record))
  }

  /// Whether the record on the disk names bytes that were found to be wrong.
  private var isKeptWrong: Bool { !kept.ranges.allSatisfy(written.contains) }

  private var unkeptCount: Int { max(written.count - kept.count, 0) }

  /// Number of bytes that a lane may write before the next checkpoint. For all lanes together there is a limit, too: bytes
  /// of lanes that have ended may not be kept.
  func room(_ lane: Lane) -> Int {
    guard isRecordable else { return .max }
    let range = lane.first..<max(lane.first, lane.position)
    func count(_ ranges: [Range<Int>]) -> Int { ranges.reduce(0) { $0 + $1.count } }
    let ofLane = max(count(kept.gaps(in: range)) - count(written.gaps(in: range)), 0)
    let granted = lanes.reduce(0) { $0 + $1.granted.count }
    return max(min(rules.pieceBytes - ofLane, rules.pieceBytes * lanesMax - unkeptCount - granted), 0)
  }

  private mutating func continueLanes() -> [Action] {
    guard isReserved else { return [] }
    return lanes.indices.filter { lanes[$0].isWaiting && room(lanes[$0]) > 0 }.map { index in
      lanes[index].isWaiting = false
      lanes[index].meter.restart()
      return .continue(lane: lanes[index].number)
    }
  }

  // MARK: - Beginning anew

  /// Continues from the bytes that an earlier download has kept.
  ///
  /// - Returns: Whether the record fits to the plan.
  mutating func use(_ record: DownloadRecord) -> Bool {
    let total = record.total ?? rules.expectedTotal
    guard total == rules.expectedTotal ?? total, record.kept.end <= total ?? record.kept.prefixEnd else { return false }
    for index in sources.indices {
      sources[index].validator = record.sources.first { $0.url == sources[index].url }?.validator
    }
    guard isRecordable else { return false }
    version = Version(total: total, coding: record.coding, isStated: record.total != nil)
    (written, kept) = (record.kept, record.kept)
    return true
  }

  /// Forgets the version. Failures of mirrors still count, but not those that had to do with the version.
  mutating func forget() {
    version = nil
    (written, kept) = (ByteRanges(), ByteRanges())
    (isReserved, isSizeDoubtful) = (false, false)
    for index in sources.indices {
      sources[index].validator = nil
      switch sources[index].standing {
      // Each version has the plan's size.
      case .out(.size) where rules.expectedTotal != nil: break
      case .unknown, .answered, .acceptsRanges, .out(.size), .out(.changing), .out(.notResumable):
        sources[index].standing = .unknown
      case .ignoresRanges, .out: break
      }
    }
  }

  /// Stops all lanes, and begins anew if what they have written is of no use without them.
  mutating func stopLanes() -> [Action] {
    let actions = cancelLanes { _ in true }
    if !isWhole { discardUnlessRecordable() }
    return actions
  }

  /// Without a strong validator the bytes of two responses do not fit together.
  mutating func discardUnlessRecordable() {
    if phase == .loading, version != nil, !isRecordable { phase = .discarding }
  }

  /// The number of times that wrong ranges are fetched again.
  static let roundsMax = 3

  /// Removes bytes whose hashes are wrong. If only the whole has a hash, the first half is the suspect, then the second.
  mutating func fetchAgain(_ ranges: [Range<Int>], _ now: Double) -> [Action] {
    rounds += 1
    guard let total, rounds <= (isRecordable ? Self.roundsMax : 1) else { return fail(.checksum, now) }
    var wrong = ByteRanges()
    let middle = total - total / 2
    let halves = [0..<middle, middle..<total, 0..<0]
    for range in ranges.isEmpty ? [halves[rounds - 1]] : ranges { wrong.insert(range.clamped(to: 0..<total)) }
    guard !wrong.isEmpty else { return fail(.checksum, now) }
    written.subtract(wrong)
    discardUnlessRecordable()
    return advance(now)
  }

  // MARK: - The end

  /// Ends the download, after its received bytes are kept. An earlier failure has precedence.
  mutating func fail(_ failure: DownloadFailure, _ now: Double) -> [Action] {
    switch phase {
    case .idle, .loading, .discarding: phase = .ending(failure)
    case .ending, .ended: break
    }
    return advance(now)
  }

  /// Ends the download at once.
  mutating func finish(_ failure: DownloadFailure?) -> [Action] {
    let actions = cancelLanes { _ in true }
    var failure = failure
    if case .ending(let earlier) = phase, failure != nil { failure = earlier }
    phase = .ended
    return actions + [.end(failure)]
  }
}
