import LarkspurBytes

/// The facts of the disk, and of lanes after their heads.
extension DownloadMachine {
  // MARK: - Lanes

  /// Asks where a piece of a lane's body goes. The write before has been reported.
  ///
  /// - Parameter count: The number of bytes of the piece.
  public mutating func space(_ number: Int, _ count: Int, now: Double) -> (Space, [Action]) {
    guard phase == .loading, let index = lanes.firstIndex(where: { $0.number == number }), lanes[index].hasHead else {
      return (.none, [])
    }
    lanes[index].granted = 0..<0
    let lane = lanes[index]
    guard count > 0 else { return (.write(skip: 0, at: lane.position, count: 0), []) }
    guard isReserved || lane.left == 0 else { return wait(index, now) }
    // Bytes that the part has are not written again.
    let holder = written.ranges.first { $0.upperBound > lane.position }
    let known = holder.map { $0.lowerBound <= lane.position ? min($0.upperBound, lane.end) : lane.position }
    let skip = min((known ?? lane.position) - lane.position, count)
    let start = lane.position + skip
    lanes[index].meter.add(skip)
    guard start < lane.end else {
      lanes[index].position = start
      // A body that is longer than its head says is worth nothing.
      if skip == 0, lane.isAtBodyEnd {
        if lane.isOpen { doubtSize() }
        let failure: DownloadFailure =
          lane.isOpen ? .size(expected: lane.end, found: start + min(count, .max - start)) : .badResponse
        return (.none, reject(index, failure, now) + advance(now))
      }
      if lane.end == lane.bodyEnd { return (.write(skip: skip, at: start, count: 0), []) }
      return (.none, cancelLane(index) + advance(now))
    }
    let next = written.ranges.first { $0.lowerBound > start }?.lowerBound ?? .max
    let room = skip < count ? room(lane) : 0
    guard skip > 0 || room > 0 else { return wait(index, now) }
    let size = min(count - skip, room, min(next, lane.end) - start)
    lanes[index].position = start + size
    lanes[index].granted = start..<(start + size)
    return (.write(skip: skip, at: start, count: size), [])
  }

  private mutating func wait(_ index: Int, _ now: Double) -> (Space, [Action]) {
    lanes[index].isWaiting = true
    return (.wait, advance(now))
  }

  /// Reports that bytes are in the part, and not necessarily on the disk.
  public mutating func wrote(_ number: Int, _ range: Range<Int>, now: Double) -> [Action] {
    guard phase == .loading, let index = lanes.firstIndex(where: { $0.number == number }) else { return [] }
    let range = range.clamped(to: lanes[index].granted)
    lanes[index].granted = 0..<0
    guard !range.isEmpty else { return [] }
    written.insert(range)
    lanes[index].meter.add(range.count)
    // A download that cannot be resumed begins anew after a failure: then a byte is no progress.
    if isRecordable { sources[lanes[index].source].failures = 0 }
    return advance(now)
  }

  /// Reports that a write of a lane has failed. The download ends, and keeps the bytes received so far.
  public mutating func writeFailed(_ number: Int, _ error: DiskError, now: Double) -> [Action] {
    lanes.contains { $0.number == number } ? fail(error.failure, now) : []
  }

  /// Reports the end of a lane's response, or that there was none.
  public mutating func ended(_ number: Int, _ end: LaneEnd, now: Double) -> [Action] {
    guard phase == .loading, let index = lanes.firstIndex(where: { $0.number == number }) else { return [] }
    switch end {
    case .badDigest: return reject(index, .checksum, now, isCancelled: false) + advance(now)
    case .failed(let isOfConnection):
      loseLane(index, .lane(number), .error(isOfConnection: isOfConnection), now)
    case .complete:
      let lane = lanes[index]
      // Without a stated size the body ends anywhere, but not before bytes that are there.
      if lane.isOpen, let total, lane.position != total {
        guard version?.isStated == true else { return missSize(index, total) + advance(now) }
        doubtSize()
        loseLane(index, .size(expected: total, found: lane.position), .error(isOfConnection: true), now)
        return advance(now)
      }
      if lane.isAtBodyEnd || lane.hasHead && lane.bodyEnd == .max && lane.position >= written.end {
        complete(index)
      } else {
        loseLane(index, .badResponse, .error(isOfConnection: true), now)
      }
    }
    return advance(now)
  }

  /// A whole body shows that the plan has another size.
  private mutating func missSize(_ index: Int, _ total: Int) -> [Action] {
    let lane = lanes.remove(at: index)
    lastFailure = .size(expected: total, found: lane.position)
    sources[lane.source].standing = .out(lastFailure)
    phase = .discarding
    return []
  }

  private mutating func complete(_ index: Int) {
    let lane = lanes.remove(at: index)
    retire(lane)
    guard lane.bodyEnd == .max else { return }
    version?.total = lane.position
    version?.isStated = true
  }

  // MARK: - The disk

  /// Reports that room was reserved, or why it was not.
  public mutating func reserved(_ error: DiskError?, now: Double) -> [Action] {
    guard work == .reserve else { return [] }
    work = nil
    isReserved = error == nil
    return error.map { fail($0.failure, now) } ?? advance(now)
  }

  /// Reports that the record of the latest checkpoint is on the disk, or why it is not. Then the earlier record stands,
  /// and no other one is written: a sync that failed may have lost bytes for good.
  public mutating func checkpointed(_ error: DiskError?, now: Double) -> [Action] {
    guard case .checkpoint(let ranges) = work else { return [] }
    work = nil
    if let error { return finish(error.failure) }
    kept = ranges
    return advance(now)
  }

  /// Reports that record and bytes are gone, or why they are not.
  public mutating func discarded(_ error: DiskError?, now: Double) -> [Action] {
    guard work == .discard else { return [] }
    work = nil
    if let error { return finish(error.failure) }
    forget()
    if phase == .discarding { phase = .loading }
    return advance(now)
  }

  /// Reports whether the part has the plan's hashes.
  public mutating func verified(_ verification: Verification, now: Double) -> [Action] {
    guard work == .verify else { return [] }
    work = nil
    switch verification {
    case .failed(let error): return fail(error.failure, now)
    case .fits:
      guard phase == .loading, !isPaused, let total else { return advance(now) }
      work = .install
      return [.install(total: total)]
    case .wrong(let ranges):
      guard phase == .loading else { return advance(now) }
      return fetchAgain(ranges, now)
    }
  }

  /// Reports that the file has its name, or why it does not.
  public mutating func installed(_ error: DiskError?, now: Double) -> [Action] {
    guard work == .install else { return [] }
    work = nil
    return finish(error?.failure)
  }
}
