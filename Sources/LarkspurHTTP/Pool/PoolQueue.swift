/// Requests waiting for a connection: the higher priority first, and the oldest first among equals.
///
/// The entry of a withdrawn request stays in the queue and is skipped. Such entries are removed together once they are
/// the majority, so that a withdrawal takes amortized constant time.
struct PoolQueue: Sendable {
  struct Request: Hashable, Sendable {
    var id: PoolMachine.RequestID
    var priority: UInt8
    var isPipelinable: Bool
  }

  private var requests: [Request] = []
  private var first = 0
  /// Number of waiting requests, without the withdrawn ones.
  private(set) var count = 0

  mutating func insert(_ request: Request) {
    var index = requests.count
    // A repeated request keeps its sequence number, and goes before all later requests of its priority.
    while index > first, isBefore(request, requests[index - 1]) { index -= 1 }
    requests.insert(request, at: index)
    count += 1
  }

  private func isBefore(_ one: Request, _ other: Request) -> Bool {
    one.priority == other.priority ? one.id.sequenceNumber < other.id.sequenceNumber : one.priority > other.priority
  }

  /// Returns the first waiting request.
  mutating func peek(_ requestTable: PoolRequestTable) -> Request? {
    guard count > 0 else { return nil }
    while first < requests.count {
      if requestTable.isWaiting(requests[first].id) { return requests[first] }
      dropFirst()
    }
    return nil
  }

  /// Removes and returns the first waiting request.
  mutating func take(_ requestTable: PoolRequestTable) -> Request? {
    guard let request = peek(requestTable) else { return nil }
    count -= 1
    dropFirst()
    return request
  }

  /// Removes and returns all waiting requests with a sequence number below `sequenceNumber`.
  mutating func takeAll(before sequenceNumber: UInt64, _ requestTable: PoolRequestTable) -> [Request] {
    let waiting = requests[first...].filter { requestTable.isWaiting($0.id) }
    requests = waiting.filter { $0.id.sequenceNumber >= sequenceNumber }
    first = 0
    count = requests.count
    return waiting.filter { $0.id.sequenceNumber < sequenceNumber }
  }

  /// Counts a withdrawn request. Call after `PoolRequestTable.withdraw`.
  mutating func withdrew(_ requestTable: PoolRequestTable) {
    count -= 1
    guard requests.count - first > 2 * count + 32 else { return }
    requests = requests[first...].filter { requestTable.isWaiting($0.id) }
    first = 0
  }

  private mutating func dropFirst() {
    first += 1
    if first == requests.count {
      requests.removeAll(keepingCapacity: true)
      first = 0
    } else if first > 32, first * 2 > requests.count {
      requests.removeFirst(first)
      first = 0
    }
  }
}

/// The IDs of a pool's requests, and the endpoint that each waiting request waits for.
struct PoolRequestTable: Sendable {
  private struct Entry {
    var generation: UInt32 = 0
    /// The index of the endpoint, or `nil` if the ID is unused or its request does not wait.
    var waitsFor: Int?
    var needsFresh = false
  }

  private var entries: [Entry] = []
  private var free: [Int] = []

  mutating func issue(sequenceNumber: UInt64) -> PoolMachine.RequestID {
    let index = free.popLast() ?? entries.count
    if index == entries.count { entries.append(Entry()) }
    entries[index].generation &+= 1
    return PoolMachine.RequestID(index: index, generation: entries[index].generation, sequenceNumber: sequenceNumber)
  }

  mutating func wait(_ requestID: PoolMachine.RequestID, at endpoint: Int, needsFresh: Bool) {
    entries[requestID.index].waitsFor = endpoint
    entries[requestID.index].needsFresh = needsFresh
  }

  /// Returns the index of the endpoint that the request waits for, or `nil` if it does not wait.
  func endpoint(awaitedBy requestID: PoolMachine.RequestID) -> Int? {
    entries[requestID.index].generation == requestID.generation ? entries[requestID.index].waitsFor : nil
  }

  func isWaiting(_ requestID: PoolMachine.RequestID) -> Bool {
    endpoint(awaitedBy: requestID) != nil
  }

  /// Frees the ID.
  mutating func release(_ requestID: PoolMachine.RequestID) {
    entries[requestID.index].waitsFor = nil
    free.append(requestID.index)
  }

  /// Frees the ID of a waiting request.
  ///
  /// - Returns: The endpoint's index and the queue of the request, or `nil` if the request does not wait.
  mutating func withdraw(_ requestID: PoolMachine.RequestID) -> (endpoint: Int, needsFresh: Bool)? {
    guard let endpoint = endpoint(awaitedBy: requestID) else { return nil }
    let needsFresh = entries[requestID.index].needsFresh
    release(requestID)
    return (endpoint, needsFresh)
  }
}
