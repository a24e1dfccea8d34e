/// Requests that wait for a connection: the more important first, and first come, first served among equals.
///
/// Who gives up leaves his place behind. It is skipped, and swept away when most places are such: giving up costs the
/// same however long the queue is.
struct PoolQueue: Sendable {
  struct Place: Hashable, Sendable {
    var ticket: PoolMachine.Ticket
    var priority: UInt8
    var isPipelinable: Bool
  }

  private var places: [Place] = []
  private var first = 0
  /// How many really wait.
  private(set) var count = 0

  mutating func insert(_ place: Place) {
    var index = places.count
    // One who asks again has an old order, and comes before all who came after him.
    while index > first, isBefore(place, places[index - 1]) { index -= 1 }
    places.insert(place, at: index)
    count += 1
  }

  private func isBefore(_ one: Place, _ other: Place) -> Bool {
    one.priority == other.priority ? one.ticket.order < other.ticket.order : one.priority > other.priority
  }

  /// The first who still waits.
  mutating func peek(_ tickets: PoolTickets) -> Place? {
    guard count > 0 else { return nil }
    while first < places.count {
      if tickets.isWaiting(places[first].ticket) { return places[first] }
      dropFirst()
    }
    return nil
  }

  /// Takes out the first who still waits.
  mutating func take(_ tickets: PoolTickets) -> Place? {
    guard let place = peek(tickets) else { return nil }
    count -= 1
    dropFirst()
    return place
  }

  /// Takes out everybody who came before `order`.
  mutating func takeAll(before order: UInt64, _ tickets: PoolTickets) -> [Place] {
    let waiting = places[first...].filter { tickets.isWaiting($0.ticket) }
    places = waiting.filter { $0.ticket.order >= order }
    first = 0
    count = places.count
    return waiting.filter { $0.ticket.order < order }
  }

  /// Somebody has given up.
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

/// The tickets of a pool's requests, and what those who wait are waiting for.
struct PoolTickets: Sendable {
  private struct Entry {
    var generation: UInt32 = 0
    /// The endpoint. Nil: the ticket is nobody's, or does not wait.
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

  /// The ticket is not used any more.
  mutating func release(_ ticket: PoolMachine.Ticket) {
    entries[ticket.index].waitsFor = nil
    free.append(ticket.index)
  }

  /// Who waits gives up. Nil: he does not wait.
  mutating func takeBack(_ ticket: PoolMachine.Ticket) -> (endpoint: Int, wantsFresh: Bool)? {
    guard isWaiting(ticket), let endpoint = entries[ticket.index].waitsFor else { return nil }
    let wantsFresh = entries[ticket.index].wantsFresh
    release(ticket)
    return (endpoint, wantsFresh)
  }
}
