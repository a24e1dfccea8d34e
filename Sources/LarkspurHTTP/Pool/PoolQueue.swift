/// Requests waiting for a connection: the higher priority first, and the oldest first among equals.
///
/// The entry of a withdrawn request stays in the queue and is skipped. Such entries are removed together once they are
/// the majority, so that a withdrawal takes amortized constant time.
struct PoolQueue: Sendable {
  struct Place: Hashable, Sendable {
    var ticket: PoolMachine.Ticket
    var priority: UInt8
    var isPipelinable: Bool
  }

  private var places: [Place] = []
  private var first = 0
  /// Number of waiting requests, without the withdrawn ones.
  private(set) var count = 0

  mutating func insert(_ place: Place) {
    var index = places.count
    // A repeated request keeps its old order, and goes before all later requests of its priority.
    while index > first, isBefore(place, places[index - 1]) { index -= 1 }
    places.insert(place, at: index)
    count += 1
  }

  private func isBefore(_ one: Place, _ other: Place) -> Bool {
    one.priority == other.priority ? one.ticket.order < other.ticket.order : one.priority > other.priority
  }

  /// Returns the first waiting request.
  mutating func peek(_ tickets: PoolTickets) -> Place? {
    guard count > 0 else { return nil }
    while first < places.count {
      if tickets.isWaiting(places[first].ticket) { return places[first] }
      dropFirst()
    }
    return nil
  }

  /// Removes and returns the first waiting request.
  mutating func take(_ tickets: PoolTickets) -> Place? {
    guard let place = peek(tickets) else { return nil }
    count -= 1
    dropFirst()
    return place
  }

  /// Removes and returns all waiting requests of an order below `order`.
  mutating func takeAll(before order: UInt64, _ tickets: PoolTickets) -> [Place] {
    let waiting = places[first...].filter { tickets.isWaiting($0.ticket) }
    places = waiting.filter { $0.ticket.order >= order }
    first = 0
    count = places.count
    return waiting.filter { $0.ticket.order < order }
  }

  /// Counts a withdrawn request. Call after its ticket was taken back.
  mutating func gaveUp(_ tickets: PoolTickets) {
    count -= 1
    guard places.count - first > 2 * count + 32 else { return }
    places = places[first...].filter { tickets.isWaiting($0.ticket) }
    first = 0
  }

  private mutating func dropFirst() {
    first += 1
    if first == places.count {
      places.removeAll(keepingCapacity: true)
      first = 0
    } else if first > 32, first * 2 > places.count {
      places.removeFirst(first)
      first = 0
    }
  }
}

/// The tickets of a pool's requests, and the endpoint that each waiting request waits for.
struct PoolTickets: Sendable {
  private struct Entry {
    var generation: UInt32 = 0
    /// The index of the endpoint, or `nil` if the ticket is unused or its request does not wait.
    var waitsFor: Int?
    var wantsFresh = false
  }

  private var entries: [Entry] = []
  private var free: [Int] = []

  mutating func issue(order: UInt64) -> PoolMachine.Ticket {
    let index = free.popLast() ?? entries.count
    if index == entries.count { entries.append(Entry()) }
    entries[index].generation &+= 1
    return PoolMachine.Ticket(index: index, generation: entries[index].generation, order: order)
  }

  mutating func wait(_ ticket: PoolMachine.Ticket, at endpoint: Int, wantsFresh: Bool) {
    entries[ticket.index].waitsFor = endpoint
    entries[ticket.index].wantsFresh = wantsFresh
  }

  func isWaiting(_ ticket: PoolMachine.Ticket) -> Bool {
    entries[ticket.index].generation == ticket.generation && entries[ticket.index].waitsFor != nil
  }

  /// Frees the ticket.
  mutating func release(_ ticket: PoolMachine.Ticket) {
    entries[ticket.index].waitsFor = nil
    free.append(ticket.index)
  }

  /// Frees the ticket of a waiting request.
  ///
  /// - Returns: The endpoint's index and the queue of the request, or `nil` if the request does not wait.
  mutating func takeBack(_ ticket: PoolMachine.Ticket) -> (endpoint: Int, wantsFresh: Bool)? {
    guard isWaiting(ticket), let endpoint = entries[ticket.index].waitsFor else { return nil }
    let wantsFresh = entries[ticket.index].wantsFresh
    release(ticket)
    return (endpoint, wantsFresh)
  }
}
