import LarkspurBytes

/// Connections that are being opened while nobody waits for them: who did has been cancelled, was out of time, or was served
/// by another one.
///
/// Most of them are there in a moment, and are kept for the next request. But one whose server never says a word would hold
/// its place for as long as opening may take, and whoever came next would wait for it in vain. So it counts for a second as
/// one that will be there; gives way to another endpoint's that needs its place then, or at once if nobody counts on it, and
/// to one of its own endpoint, which would be no faster, a little later; and is closed after ten seconds.
extension PoolMachine {
  /// How long one that nobody waits for is something.
  enum SurplusAge {
    static let counts = Duration.seconds(1)
    static let places = Duration.seconds(4)
    static let life = Duration.seconds(10)
  }

  private func isSurplus(_ index: Int, _ now: Deadline, after age: Duration) -> Bool {
    connections[index].surplusSince.map { $0.advanced(by: age) <= now } ?? false
  }

  /// How many of an endpoint have been that for so long.
  func surplusCount(of endpoint: Int, _ now: Deadline, after age: Duration) -> Int {
    guard endpoints[endpoint].surplus > 0 else { return 0 }
    return endpoints[endpoint].members.count { isSurplus($0, now, after: age) }
  }

  /// How many connections of an endpoint are being opened and are taken to succeed.
  func dialsCounted(_ endpoint: Int, _ now: Deadline) -> Int {
    endpoints[endpoint].dialing - surplusCount(of: endpoint, now, after: SurplusAge.counts)
  }

  /// Whether an endpoint has connections but those that nobody counts on.
  func isServed(_ endpoint: Int, _ now: Deadline) -> Bool {
    endpoints[endpoint].members.count > surplusCount(of: endpoint, now, after: SurplusAge.counts)
  }

  /// When fewer wait than are being opened, the oldest of these are those that nobody waits for.
  mutating func findSurplus(of endpoint: Int, _ now: Deadline) {
    while endpoints[endpoint].dialing - endpoints[endpoint].surplus > endpoints[endpoint].waitingCount {
      let wanted = endpoints[endpoint].members.filter {
        connections[$0].phase == .dialing && !connections[$0].isSurplus
      }
      guard let oldest = wanted.min(by: { connections[$0].dialedBefore < connections[$1].dialedBefore }) else { return }
      connections[oldest].surplusSince = now
      endpoints[endpoint].surplus += 1
      surplusCount += 1
      timer = min(timer, now.advanced(by: SurplusAge.counts))
    }
  }

  /// The same, and lets others have the places.
  mutating func findSurplus(of endpoint: Int, _ now: Deadline, _ actions: inout Actions) {
    findSurplus(of: endpoint, now)
    if surplusCount > 0 { roomWasMade(now, &actions) }
  }

  /// Time has passed for one that is being opened.
  mutating func growOld(_ index: Int, _ now: Deadline, _ actions: inout Actions) {
    guard let since = connections[index].surplusSince else { return }
    let ages = [SurplusAge.counts, SurplusAge.places, SurplusAge.life]
    guard let next = ages.map(since.advanced).first(where: { $0 > now }) else { return giveUpDial(index, &actions) }
    timer = min(timer, next)
  }

  /// Closes one of the endpoint's, for another one of its own. False: there is none that is old enough.
  mutating func giveUpSurplus(of endpoint: Int, _ now: Deadline, _ actions: inout Actions) -> Bool {
    endpoints[endpoint].surplus > 0
      && giveUpOldest(
        of: endpoints[endpoint].members.filter { isSurplus($0, now, after: SurplusAge.places) }, &actions) != nil
  }

  /// Closes one of any endpoint's that nobody counts on, for one of `endpoint`. False: there is none.
  mutating func giveUpSurplus(for endpoint: Int, _ now: Deadline, _ actions: inout Actions) -> Bool {
    let usable = usableSurplus(now).filter {
      connections[$0].endpoint != endpoint || isSurplus($0, now, after: SurplusAge.places)
    }
    guard let other = giveUpOldest(of: usable, &actions) else { return false }
    // Who waits there has lost his only dial, perhaps, before the timer could give him another one.
    if other != endpoint, endpoints[other].waitingCount > 0 { stall(other) }
    return true
  }

  /// The connections that are being opened, and whose places others may have.
  func usableSurplus(_ now: Deadline) -> [Int] {
    guard surplusCount > 0 else { return [] }
    return connections.indices.filter { index in
      let connection = connections[index]
      return connection.isSurplus
        && (endpoints[connection.endpoint].waitingCount == 0 || isSurplus(index, now, after: SurplusAge.counts))
    }
  }

  /// Returns whose it was.
  private mutating func giveUpOldest(of surplus: [Int], _ actions: inout Actions) -> Int? {
    let ages = surplus.map { (index: $0, since: connections[$0].surplusSince ?? .never) }
    guard let oldest = ages.min(by: { $0.since < $1.since })?.index else { return nil }
    giveUpDial(oldest, &actions)
    return connections[oldest].endpoint
  }

  private mutating func giveUpDial(_ index: Int, _ actions: inout Actions) {
    let endpoint = dialEnded(index)
    close(index, &actions)
    forgetIfUnused(endpoint, &actions)
  }

  /// It is not being opened any more. Returns the endpoint.
  mutating func dialEnded(_ index: Int) -> Int {
    let endpoint = connections[index].endpoint
    endpoints[endpoint].dialing -= 1
    if connections[index].isSurplus {
      endpoints[endpoint].surplus -= 1
      surplusCount -= 1
      connections[index].surplusSince = nil
    }
    return endpoint
  }
}
