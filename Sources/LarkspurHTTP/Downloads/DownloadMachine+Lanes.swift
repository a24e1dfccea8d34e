import LarkspurBytes

/// Which lane fetches which range from which mirror.
extension DownloadMachine {
  /// The number of lanes at once, as far as is known.
  var lanesMax: Int {
    guard let version, version.total != nil, version.coding == nil, isRecordable,
      sources.contains(where: { $0.standing == .acceptsRanges })
    else { return 1 }
    return rules.lanesMax
  }

  /// Begins lanes until no further one is worth it.
  mutating func fill(_ now: Double) -> [Action] {
    let earlier = lanesBegun
    while lanes.count < lanesMax, let source = source(now, avoiding: nil) {
      if let gap = lanes.isEmpty ? gaps.first : gaps.max(by: { $0.count < $1.count }) {
        begin(gap, source)
      } else if let index = widest {
        let middle = lanes[index].position + lanes[index].left / 2
        begin(middle..<lanes[index].end, source)
        lanes[index].end = middle
      } else if let index = slowest {
        lanes[index].hasTwin = true
        begin(lanes[index].range, self.source(now, avoiding: lanes[index].source) ?? source)
        lanes[lanes.count - 1].hasTwin = true
      } else {
        break
      }
    }
    // A range may have been split since its lane began.
    return lanes.indices.filter { lanes[$0].number >= earlier }.map { index in
      let lane = lanes[index]
      lanes[index].bodyEnd = lane.end
      return .request(lane: lane.number, Request(source: lane.source, fields: fields(lane)))
    }
  }

  private func fields(_ lane: Lane) -> FieldList {
    let source = sources[lane.source]
    let isPlain = version == nil && rules.lanesMax == 1 && !rules.requiresResumable
    if source.standing == .ignoresRanges || isPlain { return [] }
    return ResumePoint.conditions(
      from: lane.first, through: lane.end == .max ? nil : lane.end - 1, validator: source.validator)
  }

  private mutating func begin(_ range: Range<Int>, _ source: Int) {
    var first = range.lowerBound
    // Where the size is unknown, the byte before shows whether any bytes follow: a range without a byte cannot be asked.
    if total == nil, first > 0 { first -= 1 }
    var end = range.upperBound
    if sources[source].standing == .ignoresRanges { (first, end) = (0, total ?? .max) }
    lanes.append(
      Lane(
        number: lanesBegun, source: source, first: first, position: first, end: end, bodyEnd: end,
        meter: Meter(now: time),
        failures: sources[source].failures))
    lanesBegun += 1
  }

  /// The ranges that neither the part has nor a lane fetches.
  private var gaps: [Range<Int>] {
    var taken = written
    for lane in lanes { taken.insert(lane.range) }
    return taken.gaps(in: 0..<(total ?? .max))
  }

  /// The index of the lane with the longest remaining time, if its rest is worth two lanes.
  private var widest: Int? {
    let rates = lanes.compactMap(\.rate)
    let usual = rates.isEmpty ? 1 : max(rates.reduce(0, +) / Double(rates.count), 1)
    func seconds(_ lane: Lane) -> Double { Double(lane.left) / max(lane.rate ?? usual, 1) }
    return lanes.indices
      .filter { lanes[$0].end < .max && !lanes[$0].hasTwin && lanes[$0].left / 2 >= rules.pieceBytes }
      .max { seconds(lanes[$0]) < seconds(lanes[$1]) }
  }

  /// The share of the median rate of the other lanes below which a lane is slow.
  static let slowShare = 0.25

  /// The index of the slowest lane, if it is much slower than the others are or were.
  private var slowest: Int? {
    let candidates = lanes.indices.filter {
      lanes[$0].hasHead && !lanes[$0].hasTwin && !lanes[$0].isWaiting && lanes[$0].left > 0 && lanes[$0].rate != nil
    }
    guard let index = candidates.min(by: { lanes[$0].rate ?? 0 < lanes[$1].rate ?? 0 }), let rate = lanes[index].rate
    else { return nil }
    let others = (lanes.indices.filter { $0 != index }.compactMap { lanes[$0].rate } + completedRates).sorted()
    guard !others.isEmpty else { return nil }
    return rate < others[others.count / 2] * Self.slowShare ? index : nil
  }

  /// The mirror of the next lane: of those that are ready, the one with the fewest lanes.
  private func source(_ now: Double, avoiding avoided: Int?) -> Int? {
    let usable = sources.indices.filter { sources[$0].failure == nil }
    let accepting = usable.filter { sources[$0].standing != .ignoresRanges }
    let ready = (accepting.isEmpty ? usable : accepting).filter { index in
      sources[index].readyAt <= now && index != avoided && lanesRunning(index) < lanesMax(index, now)
    }
    // After wrong hashes the mirrors take turns.
    func rank(_ index: Int) -> (Int, Int, Int) {
      (lanesRunning(index), sources[index].failures, (index + sources.count * rounds - rounds) % sources.count)
    }
    return ready.min { rank($0) < rank($1) }
  }

  func lanesRunning(_ source: Int) -> Int { lanes.count { $0.source == source } }

  /// The number of lanes at a mirror. After a failure they are those that run, and from time to time one more.
  private func lanesMax(_ source: Int, _ now: Double) -> Int {
    let isServing = lanes.allSatisfy { $0.source != source || $0.hasHead }
    return sources[source].lanesMax.map { isServing && now >= sources[source].moreAt ? $0 + 1 : $0 }
      ?? (sources[source].standing == .acceptsRanges ? .max : 1)
  }

  // MARK: - Ends of lanes

  mutating func cancelLanes(where isMeant: (Lane) -> Bool) -> [Action] {
    let cancelled = lanes.filter(isMeant)
    lanes.removeAll(where: isMeant)
    return cancelled.map { .cancel(lane: $0.number) }
  }

  mutating func cancelLane(_ index: Int) -> [Action] { [.cancel(lane: lanes.remove(at: index).number)] }

  /// Removes a lane that has failed, and decides when its mirror is asked again, if ever.
  mutating func loseLane(
    _ index: Int, _ failure: DownloadFailure, _ attempt: RetryRules.Attempt.Failure, _ now: Double
  ) {
    let lane = lanes.remove(at: index)
    let running = lanesRunning(lane.source)
    var source = sources[lane.source]
    // Requests that were under way together fail together.
    if lane.failures == source.failures { source.failures += 1 }
    lastFailure = failure
    let (first, longest) = (rules.retry.firstDelay.inSeconds, rules.retry.delayMax.inSeconds)
    // A mirror that serves others may allow no more of them.
    source.lanesMax = max(running, 1)
    if running > 0, now >= source.moreAt {
      source.refusals += 1
      source.moreAt =
        now
        + BackOff.delay(
          failures: source.refusals, first: first, longest: longest, fixedShare: 0.5, fraction: fraction())
    }
    let delay = rules.retry.delay(
      after: .init(number: source.failures, method: "GET", failure: attempt), fraction: fraction())
    if delay == nil, running == 0 { source.standing = .out(failure) }
    source.readyAt = max(source.readyAt, now + (delay?.inSeconds ?? first))
    sources[lane.source] = source
    discardUnlessRecordable()
  }

  /// Removes a lane whose bytes are wrong, and the bytes.
  mutating func reject(
    _ index: Int, _ failure: DownloadFailure, _ now: Double, isCancelled: Bool = true
  ) -> [Action] {
    let lane = lanes[index]
    written.remove(lane.first..<max(lane.first, lane.position))
    sources[lane.source].rejections += 1
    let isOut = sources[lane.source].rejections >= rules.retry.attemptsMax
    loseLane(index, failure, .error(isOfConnection: true), now)
    if isOut { sources[lane.source].standing = .out(failure) }
    return isCancelled ? [.cancel(lane: lane.number)] : []
  }

  /// Measures the lanes, and fails those that have been slower than the lowest rate for too long.
  mutating func failSlowLanes(_ now: Double) -> [Action] {
    var slow: [Int] = []
    for index in lanes.indices {
      lanes[index].meter.pass(now)
      let lane = lanes[index]
      guard lane.hasHead, lane.meter.seconds >= rules.slowSeconds else { continue }
      lanes[index].meter.restart()
      let isSlow = lane.rate.map { $0 < Double(rules.lowestRate) } ?? false
      if isSlow, !lane.isWaiting, lane.left > 0 { slow.append(lane.number) }
    }
    for number in slow {
      guard let index = lanes.firstIndex(where: { $0.number == number }) else { continue }
      loseLane(index, .tooSlow, .error(isOfConnection: true), now)
    }
    return slow.map { .cancel(lane: $0) }
  }

  /// Stops the lanes whose rest is written, by them or by others.
  mutating func stopFinishedLanes() -> [Action] {
    let finished = lanes.filter { !$0.isAtBodyEnd && $0.granted.isEmpty && written.contains($0.range) }
    finished.forEach { retire($0) }
    return cancelLanes { lane in finished.contains { $0.number == lane.number } }
  }

  /// Takes note of a lane that has fetched its range.
  mutating func retire(_ lane: Lane) {
    guard let rate = lane.rate else { return }
    completedRates.append(rate)
    if completedRates.count > rules.lanesMax { completedRates.removeFirst() }
  }
}

extension DownloadMachine.Source {
  /// Whether a range can be asked of the mirror.
  var acceptsRequests: Bool { failure == nil && standing != .ignoresRanges }
}
