import LarkspurBytes

/// Judges the heads of responses. `ResumePoint` and `BodyExtent` have the rules of ranges.
extension DownloadMachine {
  /// Reports the head of a lane's response. Unless an action cancels the lane, its body follows.
  public mutating func head(_ number: Int, _ head: Head, now: Double) -> [Action] {
    guard phase == .loading, let index = lanes.firstIndex(where: { $0.number == number }), !lanes[index].hasHead else {
      return []
    }
    let actions: [Action]
    switch BodyExtent(status: head.status, head.values) {
    case .other:
      loseLane(index, .status(head.status), .status(head.status, retryAfter: head.retryAfter), now)
      actions = [.cancel(lane: number)]
    case let extent: actions = version == nil ? judgeFirst(index, head, extent) : judge(index, head, extent, now)
    }
    return actions + advance(now)
  }

  /// Judges the first response of a version, which decides how it is fetched.
  private mutating func judgeFirst(_ index: Int, _ head: Head, _ extent: BodyExtent) -> [Action] {
    var found: Int?
    var bodyEnd = Int.max
    var acceptsRanges = true
    let point = head.point
    switch extent {
    // Without a strong validator no further response fits to a part.
    case .part(let range) where range.isWhole || range.bytes.lowerBound == 0 && point != nil:
      found = range.total
      bodyEnd = range.bytes.upperBound
    case .whole(let count):
      found = count ?? BodyExtent.length(head.values)
      bodyEnd = found ?? .max
      acceptsRanges = head.fields.members(named: "Accept-Ranges").contains { $0.equalsIgnoringCase("bytes") }
    default:
      // A part that cannot be used, a contradiction, or no range in an empty file: the whole is asked for, once.
      let wasAsked = sources[lanes[index].source].standing == .ignoresRanges
      return dismiss(index, wasAsked ? .out(.badResponse) : .ignoresRanges)
    }
    if rules.requiresResumable, point == nil || !acceptsRanges { return dismiss(index, .out(.notResumable)) }
    if let found, let expected = rules.expectedTotal, found != expected {
      return dismiss(index, .out(.size(expected: expected, found: found)))
    }
    version = Version(
      total: found ?? rules.expectedTotal, coding: ResumePoint.coding(of: head.values), isStated: found != nil)
    if case .whole = extent { lanes[index].isOpen = found == nil }
    accept(index, bodyEnd: min(bodyEnd, total ?? .max), point?.validator, acceptsRanges ? .acceptsRanges : .answered)
    return []
  }

  /// Judges a further response.
  private mutating func judge(_ index: Int, _ head: Head, _ extent: BodyExtent, _ now: Double) -> [Action] {
    let lane = lanes[index]
    let known = sources[lane.source].validator
    if known == nil, let failure = disagreement(head, extent, isFirst: true) { return dismiss(index, .out(failure)) }
    guard let validator = known ?? head.point?.validator, let version else {
      return dismiss(index, .out(.notResumable))
    }
    // Where the whole's size is unknown, a range begins one byte before the end of those that are there.
    let offset = version.total == nil && lane.first > 0 ? lane.first + 1 : lane.first
    let point = ResumePoint(validator: validator, offset: offset, total: version.total, coding: version.coding)
    switch point.decide(asking: lane.first, status: head.status, fields: head.values) {
    case .continueAt(_, let end, let total):
      // No more bytes than those that are there: the range was the tail.
      let isTail = version.total == nil && total == nil && end <= written.end
      self.version?.total = total ?? (isTail ? end : nil)
      if disagreement(head, extent, isFirst: false) == nil { self.version?.isStated = true }
      accept(index, bodyEnd: end, validator, .acceptsRanges)
      return []
    // A 203 was changed on its way.
    case .replace(let count)
    where head.status == 200 && head.names(validator) && ResumePoint.coding(of: head.values) == version.coding
      && count ?? .max >= written.end:
      let others = sources.indices.filter { $0 != lane.source && sources[$0].acceptsRequests }
      guard others.isEmpty else { return dismiss(index, .ignoresRanges) }
      self.version?.total = version.total ?? count
      lanes[index].first = 0
      lanes[index].position = 0
      lanes[index].end = total ?? .max
      if case .whole(nil) = extent { lanes[index].isOpen = BodyExtent.length(head.values) == nil }
      accept(index, bodyEnd: total ?? .max, validator, .ignoresRanges)
      return cancelLanes { $0.number != lane.number }
    case .replace, .startOver, .confirmLast, .deliver:
      if known == nil { return dismiss(index, .out(.badResponse)) }
      // One version, and a size or a range that does not fit.
      if head.names(validator) || extent == .nothing(total: version.total) && version.total != nil {
        let failure = disagreement(head, extent, isFirst: false) ?? .badResponse
        if case .size = failure { doubtSize() }
        loseLane(index, failure, .error(isOfConnection: true), now)
        return [.cancel(lane: lane.number)]
      }
      // A range without a version shows no change. The mirror does not repeat the tag, and so cannot show that a range fits.
      if case .part = extent, head.values("ETag").isEmpty, head.values("Last-Modified").isEmpty {
        return dismiss(index, .ignoresRanges)
      }
      return change(lane)
    }
  }

  /// A response of the version shows another size than an earlier one has stated. The plan's size, once stated, is not
  /// doubted.
  mutating func doubtSize() { if version?.isStated == false || rules.expectedTotal == nil { isSizeDoubtful = true } }

  /// Why a mirror does not have the version, or `nil` if it names the size of the version.
  ///
  /// - Parameter isFirst: Whether the mirror answers for the first time. Then the plan's size shows nothing.
  private func disagreement(_ head: Head, _ extent: BodyExtent, isFirst: Bool) -> DownloadFailure? {
    let found: Int? =
      switch extent {
      case .part(let range): range.total
      case .whole(let count): count ?? BodyExtent.length(head.values)
      case .nothing(let total): total
      case .unclear, .contradiction, .other: nil
      }
    guard let found else { return .badResponse }
    guard let total, version?.isStated == true || !isFirst else { return .notResumable }
    return found == total ? nil : .size(expected: total, found: found)
  }

  /// Lets a lane's body through.
  private mutating func accept(_ index: Int, bodyEnd: Int, _ validator: String?, _ standing: Standing) {
    lanes[index].hasHead = true
    lanes[index].bodyEnd = bodyEnd
    lanes[index].end = min(lanes[index].end, bodyEnd)
    lanes[index].meter = Meter(now: time)
    let source = lanes[index].source
    sources[source].validator = validator
    sources[source].standing = standing
    if lanesRunning(source) > sources[source].lanesMax ?? .max {
      (sources[source].lanesMax, sources[source].refusals) = (nil, 0)
    }
    // Without a size there is no room to reserve.
    if total == nil { isReserved = true }
  }

  /// Ends a lane whose response is of no use, and remembers of the mirror why.
  private mutating func dismiss(_ index: Int, _ standing: Standing) -> [Action] {
    let source = lanes[index].source
    sources[source].standing = standing
    if let failure = sources[source].failure { lastFailure = failure }
    return cancelLane(index)
  }

  /// The number of times that a download begins anew because of another version.
  static let restartsMax = 3

  /// Another version was found. If other mirrors still have the version, they continue. Otherwise all begins anew.
  private mutating func change(_ lane: Lane) -> [Action] {
    let others = sources.indices.filter {
      $0 != lane.source && sources[$0].failure == nil && sources[$0].validator != nil
    }
    if !others.isEmpty {
      sources[lane.source].standing = .out(.changing)
      lastFailure = .changing
      return cancelLanes { $0.source == lane.source }
    }
    restarts += 1
    phase = restarts > Self.restartsMax ? .ending(.changing) : .discarding
    return cancelLanes { _ in true }
  }
}
