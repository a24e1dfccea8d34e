import LarkspurBytes

/// Orphaned dials: connections that are being opened although no request waits for them any more. Their requests were
/// cancelled, ran out of time, or were served by another connection.
///
/// Most of them open in a moment and are kept for the next request. But a dial whose server never answers would count
/// against the limits for as long as opening may take, and the next request would wait for it in vain. The age of an
/// orphaned dial therefore limits its use:
///
/// - During the first second it counts as a connection that will be there, and saves a new request of its endpoint a
///   dial.
/// - A dial to another endpoint may take its place after one second, or at once if no request waits at its own
///   endpoint.
/// - A new dial to its own endpoint, which is unlikely to be faster, may take its place after four seconds.
/// - After ten seconds it is closed.
extension PoolMachine {
  /// Ages at which an orphaned dial loses a right.
  enum OrphanedDialAge {
    static let counts = Duration.seconds(1)
    static let replaceable = Duration.seconds(4)
    static let life = Duration.seconds(10)
  }

  private func isOrphaned(_ index: Int, _ now: Deadline, after age: Duration) -> Bool {
    connections[index].orphanedSince.map { $0.advanced(by: age) <= now } ?? false
  }

  /// Number of the endpoint's dials that have been orphaned for at least `age`.
  func orphanedCount(of endpoint: Int, _ now: Deadline, after age: Duration) -> Int {
    guard endpoints[endpoint].orphanedCount > 0 else { return 0 }
    return endpoints[endpoint].members.count { isOrphaned($0, now, after: age) }
  }

  /// Number of the endpoint's dials that count as connections that will be there.
  func dialsCounted(_ endpoint: Int, _ now: Deadline) -> Int {
    endpoints[endpoint].dialing - orphanedCount(of: endpoint, now, after: OrphanedDialAge.counts)
  }

  /// Whether the endpoint has connections other than dials that have been orphaned for a second or more.
  func isServed(_ endpoint: Int, _ now: Deadline) -> Bool {
    endpoints[endpoint].members.count > orphanedCount(of: endpoint, now, after: OrphanedDialAge.counts)
  }

  /// Marks the oldest dials of the endpoint as orphaned until no more dials are left unmarked than requests wait.
  mutating func markOrphaned(of endpoint: Int, _ now: Deadline) {
    while endpoints[endpoint].dialing - endpoints[endpoint].orphanedCount > endpoints[endpoint].waitingCount {
      let wanted = endpoints[endpoint].members.filter {
        connections[$0].phase == .dialing && !connections[$0].isOrphaned
      }
      guard let oldest = wanted.min(by: { connections[$0].dialedBefore < connections[$1].dialedBefore }) else { return }
      connections[oldest].orphanedSince = now
      endpoints[endpoint].orphanedCount += 1
      orphanedCount += 1
      timer = min(timer, now.advanced(by: OrphanedDialAge.counts))
    }
  }

  /// Marks orphaned dials as `markOrphaned(of:_:)` does, and lets other endpoints take their places.
  mutating func markOrphaned(of endpoint: Int, _ now: Deadline, _ actions: inout Actions) {
    markOrphaned(of: endpoint, now)
    if orphanedCount > 0 { roomWasMade(now, &actions) }
  }

  /// Closes an orphaned dial at the end of its life, or else sets the timer to its next age.
  mutating func growOld(_ index: Int, _ now: Deadline, _ actions: inout Actions) {
    guard let since = connections[index].orphanedSince else { return }
    let ages = [OrphanedDialAge.counts, OrphanedDialAge.replaceable, OrphanedDialAge.life]
    guard let next = ages.map(since.advanced).first(where: { $0 > now }) else { return closeDial(index, &actions) }
    timer = min(timer, next)
  }

  /// Closes an orphaned dial of the endpoint to make room for a new dial to that endpoint.
  ///
  /// - Returns: Whether there was one old enough.
  mutating func closeOrphaned(of endpoint: Int, _ now: Deadline, _ actions: inout Actions) -> Bool {
    endpoints[endpoint].orphanedCount > 0
      && closeOldest(
        of: endpoints[endpoint].members.filter { isOrphaned($0, now, after: OrphanedDialAge.replaceable) }, &actions)
        != nil
  }

  /// Closes an orphaned dial of any endpoint to make room for a new dial to `endpoint`.
  ///
  /// - Returns: Whether there was one that could be closed.
  mutating func closeOrphaned(for endpoint: Int, _ now: Deadline, _ actions: inout Actions) -> Bool {
    let usable = replaceableDials(now).filter {
      connections[$0].endpoint != endpoint || isOrphaned($0, now, after: OrphanedDialAge.replaceable)
    }
    guard let other = closeOldest(of: usable, &actions) else { return false }
    // The requests waiting at `other` may have lost their only dial before the timer could start another dial.
    if other != endpoint, endpoints[other].waitingCount > 0 { stall(other) }
    return true
  }

  /// Orphaned dials whose places other endpoints may take.
  func replaceableDials(_ now: Deadline) -> [Int] {
    guard orphanedCount > 0 else { return [] }
    return connections.indices.filter { index in
      let connection = connections[index]
      return connection.isOrphaned
        && (endpoints[connection.endpoint].waitingCount == 0 || isOrphaned(index, now, after: OrphanedDialAge.counts))
    }
  }

  /// Closes the dial that has been orphaned for longest.
  ///
  /// - Returns: The index of its endpoint, or `nil` if `orphaned` is empty.
  private mutating func closeOldest(of orphaned: [Int], _ actions: inout Actions) -> Int? {
    let ages = orphaned.map { (index: $0, since: connections[$0].orphanedSince ?? .never) }
    guard let oldest = ages.min(by: { $0.since < $1.since })?.index else { return nil }
    closeDial(oldest, &actions)
    return connections[oldest].endpoint
  }

  private mutating func closeDial(_ index: Int, _ actions: inout Actions) {
    let endpoint = dialEnded(index)
    close(index, &actions)
    forgetIfUnused(endpoint, &actions)
  }

  /// Takes a dial that has ended out of its endpoint's counts.
  ///
  /// - Returns: The index of the endpoint.
  mutating func dialEnded(_ index: Int) -> Int {
    let endpoint = connections[index].endpoint
    endpoints[endpoint].dialing -= 1
    if connections[index].isOrphaned {
      endpoints[endpoint].orphanedCount -= 1
      orphanedCount -= 1
      connections[index].orphanedSince = nil
    }
    return endpoint
  }
}
